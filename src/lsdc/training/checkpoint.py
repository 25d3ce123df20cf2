"""The state of a stage as one safetensors file: tensors, and JSON in its header. No pickle.

Random numbers are derived from the seed and the position (see ``rng``), the learning rate from the position, so
weights, optimiser and history are the whole state.
"""

import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_bytes
from torch import Tensor, nn

from lsdc.errors import InputError, reason
from lsdc.training.untrusted import JSON_BYTES, parse_json, plain_file, records

TYPES = ("F64", "F32", "F16", "BF16", "I64", "I32", "I16", "I8", "U8", "BOOL")


def write_atomic(path: Path, content: bytes) -> None:
    """Put a file in place whole or not at all; a pipe or device is written to, never replaced."""
    if path.exists() and not path.is_file():
        with path.open("wb") as special:
            special.write(content)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def write_tensors(path: Path, tensors: dict[str, Tensor], header: dict[str, Any]) -> None:
    """Tensors and a JSON header in one file, written atomically."""
    flat = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    write_atomic(path, to_bytes(flat, {"lsdc": json.dumps(header)}))


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """What ``write_tensors`` wrote, tensors as views of the file; one that is not whole, or not ours, is refused."""
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
    tensor: Tensor = file.get_tensor(name)
    if tensor.is_floating_point() and tensor.numel():
        low, high = tensor.aminmax()  # no copy of the tensor is made, as isfinite would
        if not (torch.isfinite(low) and torch.isfinite(high)):
            raise ValueError(f"{name} holds values that are not finite")
    return tensor


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
    """Weights, optimiser and the records so far, at the end of an epoch."""

    weights: dict[str, Tensor]
    optimizer: dict[str, Tensor]
    history: list[dict[str, Any]]

    @classmethod
    def of(cls, module: nn.Module, optimizer: torch.optim.Optimizer, history: list[dict[str, Any]]) -> "Checkpoint":
        state = optimizer.state_dict()["state"]
        tensors = {
            f"{index}.{name}": value
            for index, slots in state.items()
            for name, value in slots.items()
            if isinstance(value, Tensor)
        }
        return cls(module.state_dict(), tensors, list(history))

    def load_into(self, module: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        """Restore a module and its optimiser."""
        try:
            module.load_state_dict(self.weights)
            state: dict[int, dict[str, Tensor]] = {}
            for key, tensor in self.optimizer.items():
                index, name = key.split(".", 1)
                state.setdefault(int(index), {})[name] = tensor
            check_slots(state, optimizer)
            optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
        except (RuntimeError, ValueError, KeyError) as error:
            raise InputError(f"the checkpoint does not fit this network ({reason(error)})") from None

    def write(self, path: Path, header: dict[str, Any]) -> None:
        """One file; ``header`` says which run it belongs to."""
        tensors = {f"weights/{k}": v for k, v in self.weights.items()}
        tensors |= {f"optimizer/{k}": v for k, v in self.optimizer.items()}
        write_tensors(path, tensors, {**header, "history": self.history})

    @classmethod
    def read(cls, path: Path) -> tuple["Checkpoint", dict[str, Any]]:
        """The checkpoint of a file, and its header."""
        tensors, header = read_tensors(path)
        parts: dict[str, dict[str, Tensor]] = {"weights": {}, "optimizer": {}}
        for key, tensor in tensors.items():
            kind, _, name = key.partition("/")
            parts.setdefault(kind, {})[name] = tensor
        return cls(parts["weights"], parts["optimizer"], records(path, header.pop("history", []))), header
