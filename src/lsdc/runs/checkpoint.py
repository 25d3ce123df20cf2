"""The state of a stage as one safetensors file: tensors, and JSON in its header. No pickle.

Random numbers, the order of the samples and the learning rate follow from the seed and the position (see ``rng``),
and the counters of the health checks from the history, so none of these is stored.
"""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from lsdc.errors import InputError, reason
from lsdc.runs.tensors import read_tensors, tensors_from_bytes, tensors_to_bytes
from lsdc.runs.untrusted import records

FORMAT = 2  # incremented by changes that older code cannot read or would misread


def has_collapsed(history: list[dict[str, Any]]) -> bool:
    """Whether the last epoch left all samples in one cluster."""
    return bool(history) and "collapsed" in history[-1].get("health", ())


def check_slots(state: dict[int, dict[str, Tensor]], optimizer: torch.optim.Optimizer) -> None:
    """Raise ``ValueError`` for the state of another optimiser or of other parameters."""
    wanted = {"momentum_buffer"} if isinstance(optimizer, torch.optim.SGD) else {"step", "exp_avg", "exp_avg_sq"}
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    for index, slots in state.items():
        if not 0 <= index < len(parameters) or slots.keys() != wanted:
            raise ValueError(f"the optimiser's state {index} belongs to another optimiser")
        for name, tensor in slots.items():
            if tensor.shape != (() if name == "step" else parameters[index].shape):
                raise ValueError(f"the optimiser's {index}.{name} has shape {tuple(tensor.shape)}")
            if not tensor.is_floating_point() or (name == "step" and tensor < 0):
                raise ValueError(f"the optimiser's {index}.{name} has invalid values")


@dataclass(frozen=True)
class Checkpoint:
    """The state of a stage: everything needed to continue from there.

    ``history`` holds the records of finished epochs; ``step``, ``sums`` and ``seconds`` describe the unfinished one,
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
        """Whether training can go back to it: the end of an epoch whose clusters had not collapsed."""
        return self.step == 0 and not has_collapsed(self.history)

    def copy(self) -> "Checkpoint":
        """A copy whose tensors no longer change."""
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
        """The content of one safetensors file; ``header`` says which run it belongs to."""
        groups = {"weights": self.weights, "optimizer": self.optimizer, "sums": self.sums}
        tensors = {f"{kind}/{name}": tensor for kind, group in groups.items() for name, tensor in group.items()}
        best = min(self.history, key=lambda record: float(record["loss"]), default=None)
        state = {"format": FORMAT, "history": self.history, "step": self.step, "seconds": self.seconds}
        state |= {"retries": self.retries, "best": best and {"epoch": best["epoch"], "loss": best["loss"]}}
        return tensors_to_bytes(tensors, {**header, **state})

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
            raise InputError(
                f"{name}: written by another version of lsdc (format {header.get('format')!r}, not {FORMAT})"
            )
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
