"""The state of a stage as one safetensors file: tensors, and JSON in its header. No pickle.

Random numbers, the order of the samples and the learning rate follow from the seed and the position (see ``rng``),
the counters of the health checks from the history, so these need no place in it.
"""

import errno
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load as from_bytes
from safetensors.torch import save as to_bytes
from torch import Tensor, nn

from lsdc.errors import InputError, reason
from lsdc.training.health import has_collapsed
from lsdc.training.untrusted import JSON_BYTES, parse_json, plain_file, records

TYPES = ("F64", "F32", "F16", "BF16", "I64", "I32", "I16", "I8", "U8", "BOOL")

FORMAT = 2  # of checkpoints: a change that older code cannot read, or that is read otherwise, counts it up


def write_atomic(path: Path, content: bytes) -> None:
    """Put a file in place whole or not at all; a pipe or device is written to, never replaced."""
    if path.exists() and not path.is_file():
        with path.open("wb") as special:
            special.write(content)
        return
    with whole(path, content) as place:
        place()


@contextmanager
def whole(path: Path, content: bytes) -> Iterator[Callable[[], None]]:
    """The content on disk beside ``path``; the function given puts it in place, at once and whole."""
    make_folder(path.parent)
    temporary = path.with_name(f".{path.name}.{os.urandom(4).hex()}.tmp")
    try:
        with temporary.open("xb") as file:
            file.write(content)
            file.flush()
            _sync(file.fileno())
        yield lambda: os.replace(temporary, path)
        sync_folder(path.parent)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def make_folder(folder: Path) -> None:
    """Make a folder and those above it, so that they are there after a power cut too."""
    if not folder.is_dir():
        make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        sync_folder(folder.parent)


def sync_folder(folder: Path) -> None:
    """Make sure that what was renamed in a folder is so after a power cut too."""
    if os.name == "posix" and os.access(folder, os.R_OK):
        handle = os.open(folder, os.O_RDONLY)
        try:
            _sync(handle)
        finally:
            os.close(handle)


def _sync(handle: int) -> None:
    """To the disk, on file systems that can: some have no such call for files or for folders."""
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP):
            raise


def tensors_to_bytes(tensors: dict[str, Tensor], header: dict[str, Any]) -> bytes:
    """Tensors and a JSON header as the content of one file."""
    flat = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    content = to_bytes(flat, {"lsdc": json.dumps(header)})
    if (length := int.from_bytes(content[:8], "little")) > JSON_BYTES:
        parts = sorted(header, key=lambda name: len(json.dumps(header[name])))
        raise InputError(f"{parts[-1]} is too long to be read back: {length:,} bytes, of {JSON_BYTES:,} at most")
    return content


def tensors_from_bytes(content: bytes, name: str) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The inverse of ``tensors_to_bytes``."""
    try:
        length = int.from_bytes(content[:8], "little")
        header = json.loads(json.loads(content[8 : 8 + length])["__metadata__"]["lsdc"])
        return from_bytes(content), header
    except (SafetensorError, KeyError, ValueError, TypeError) as error:
        raise InputError(f"{name}: cannot be read ({str(error).splitlines()[0]})") from None


def write_tensors(path: Path, tensors: dict[str, Tensor], header: dict[str, Any]) -> None:
    """Tensors and a JSON header in one file, written atomically; what could not be read back is refused."""
    for name, tensor in tensors.items():
        _check_finite(name, tensor)
    write_atomic(path, tensors_to_bytes(tensors, header))


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """What ``write_tensors`` wrote, whatever becomes of the file; one that is not whole, or not ours, is refused."""
    try:
        _check_length(plain_file(path))
        with safe_open(path, framework="pt") as file:
            header = parse_json((file.metadata() or {})["lsdc"])
            tensors = {name: _read_tensor(file, name) for name in file.keys()}  # noqa: SIM118 (not a dict)
    except InputError:
        raise
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except (SafetensorError, KeyError, ValueError, OSError, RuntimeError) as error:
        said = "no lsdc header" if isinstance(error, KeyError) else reason(error)
        raise InputError(f"{path}: not a file written by lsdc, or cut short ({said})") from None
    if not isinstance(header, dict):
        raise InputError(f"{path}: not a file written by lsdc (its header is no object)")
    return tensors, header


def _check_length(path: Path) -> None:
    """Refuse a header that is longer than its file or than any of ours, before anything is allocated for it."""
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
    if length > min(path.stat().st_size - 8, JSON_BYTES):
        raise ValueError(f"its header should be {length:,} bytes long")


def _read_tensor(file: Any, name: str) -> Tensor:
    """A tensor of the file, of a plain type and with finite values only."""
    if (kind := file.get_slice(name).get_dtype()) not in TYPES:
        raise ValueError(f"{name} is of type {kind}")
    tensor: Tensor = file.get_tensor(name).clone()  # as it is, it would be a view of the file
    _check_finite(name, tensor)
    return tensor


def _check_finite(name: str, tensor: Tensor) -> None:
    if tensor.is_floating_point() and tensor.numel():
        low, high = tensor.aminmax()  # no copy of the tensor is made, as isfinite would
        if not (torch.isfinite(low) and torch.isfinite(high)):
            raise ValueError(f"{name} holds values that are not finite")


def check_slots(state: dict[int, dict[str, Tensor]], optimizer: torch.optim.Optimizer) -> None:
    """Refuse the state of another optimiser, or of one for other parameters, with a ``ValueError``."""
    wanted = {"momentum_buffer"} if isinstance(optimizer, torch.optim.SGD) else {"step", "exp_avg", "exp_avg_sq"}
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    for index, slots in state.items():
        if not 0 <= index < len(parameters) or slots.keys() != wanted:
            raise ValueError(f"the optimiser's state {index} is another's")
        for name, tensor in slots.items():
            if tensor.shape != (() if name == "step" else parameters[index].shape):
                raise ValueError(f"the optimiser's {index}.{name} has shape {tuple(tensor.shape)}")
            if not tensor.is_floating_point() or (name == "step" and tensor < 0):
                raise ValueError(f"the optimiser's {index}.{name} has impossible values")


@dataclass(frozen=True)
class Checkpoint:
    """Where a stage is: everything that going on from there depends on.

    ``history`` are the records of finished epochs; ``step``, ``sums`` and ``seconds`` tell of the one that is not,
    ``retries`` why earlier attempts were given up.
    """

    weights: dict[str, Tensor]
    optimizer: dict[str, Tensor]
    history: list[dict[str, Any]]
    step: int = 0
    sums: dict[str, Tensor] = field(default_factory=dict)
    seconds: float = 0.0
    retries: list[str] = field(default_factory=list)

    @property
    def sound(self) -> bool:
        """Whether this is a place to come back to: the end of an epoch in which the clusters had not collapsed."""
        return self.step == 0 and not has_collapsed(self.history)

    def copy(self) -> "Checkpoint":
        """The same, of tensors that stay as they are."""
        weights, optimizer, sums = (
            {name: tensor.clone() for name, tensor in group.items()}
            for group in (self.weights, self.optimizer, self.sums)
        )
        return replace(self, weights=weights, optimizer=optimizer, sums=sums, history=list(self.history))

    def load_into(self, module: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        """Restore a module and its optimiser."""
        try:
            module.load_state_dict(self.weights)
            state: dict[int, dict[str, Tensor]] = {}
            for key, tensor in self.optimizer.items():
                index, name = key.split(".", 1)
                state.setdefault(int(index), {})[name] = tensor.clone()
            check_slots(state, optimizer)
            optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
        except (RuntimeError, ValueError, KeyError) as error:
            raise InputError(f"the checkpoint does not fit this network ({reason(error)})") from None

    def to_bytes(self, header: dict[str, Any]) -> bytes:
        """One safetensors file; ``header`` says which run it belongs to."""
        groups = {"weights": self.weights, "optimizer": self.optimizer, "sums": self.sums}
        tensors = {f"{kind}/{name}": tensor for kind, group in groups.items() for name, tensor in group.items()}
        best = min(self.history, key=lambda record: float(record["loss"]), default=None)
        about = {"format": FORMAT, "history": self.history, "step": self.step, "seconds": self.seconds}
        about |= {"retries": self.retries, "best": best and {"epoch": best["epoch"], "loss": best["loss"]}}
        return tensors_to_bytes(tensors, {**header, **about})

    @classmethod
    def from_bytes(cls, content: bytes) -> tuple["Checkpoint", dict[str, Any]]:
        """The inverse of ``to_bytes``, and the header."""
        return cls._of(*tensors_from_bytes(content, "the checkpoint"), "the checkpoint")

    @classmethod
    def read(cls, path: Path) -> tuple["Checkpoint", dict[str, Any]]:
        """The checkpoint of a file, and its header."""
        return cls._of(*read_tensors(path), str(path))

    @classmethod
    def _of(cls, tensors: dict[str, Tensor], header: dict[str, Any], name: str) -> tuple["Checkpoint", dict[str, Any]]:
        if header.get("format") != FORMAT:
            raise InputError(f"{name}: of another version of lsdc (format {header.get('format')!r}, not {FORMAT})")
        parts: dict[str, dict[str, Tensor]] = {"weights": {}, "optimizer": {}, "sums": {}}
        for key, tensor in tensors.items():
            kind, _, rest = key.partition("/")
            parts.setdefault(kind, {})[rest] = tensor
        try:
            retries = [str(why) for why in header["retries"]]
            history, step, seconds = header["history"], int(header["step"]), float(header["seconds"])
            if step < 0:
                raise ValueError
        except (KeyError, TypeError, ValueError, OverflowError):
            raise InputError(f"{name}: not a checkpoint written by lsdc") from None
        history = records(Path(name), history)
        return cls(parts["weights"], parts["optimizer"], history, step, parts["sums"], seconds, retries), header


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The state of an optimiser by the number of the parameter and the name of the value."""
    state = optimizer.state_dict()["state"]
    return {
        f"{index}.{name}": value
        for index, slots in state.items()
        for name, value in slots.items()
        if isinstance(value, Tensor)
    }
