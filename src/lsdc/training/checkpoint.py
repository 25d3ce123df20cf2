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

from lsdc.errors import InputError


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
    """What ``write_tensors`` wrote; a file that is not whole, or not ours, is refused in one line."""
    try:
        with safe_open(path, framework="pt") as file:
            header = json.loads((file.metadata() or {})["lsdc"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except (SafetensorError, KeyError, ValueError, OSError) as error:
        reason = "no lsdc header" if isinstance(error, KeyError) else str(error).splitlines()[0]
        raise InputError(f"{path}: not a file written by lsdc, or cut short ({reason})") from None
    if not isinstance(header, dict):
        raise InputError(f"{path}: not a file written by lsdc (its header is no object)")
    return tensors, header


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
            optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
        except (RuntimeError, ValueError, KeyError) as error:
            raise InputError(f"the checkpoint does not fit this network ({str(error).splitlines()[0]})") from None

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
        return cls(parts["weights"], parts["optimizer"], header.pop("history", [])), header
