"""How a stage is trained: a frozen, validated plan, with the learning rate as a function of time."""

import math
from typing import Any, Literal, TypeVar

import torch
from pydantic import BaseModel, ConfigDict, Field, PositiveInt, ValidationError
from torch import nn

from lsdc.errors import InputError, shown, unknown

Optimizer = Literal["sgd", "adam", "adamw"]
Schedule = Literal["constant", "steps", "cosine"]


class Frozen(BaseModel):
    """The base of all settings: immutable, complete, finite, and strict about names."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


S = TypeVar("S", bound=Frozen)


def validated(settings: type[S], values: dict[str, Any], prefix: str = "") -> S:
    """Settings from values; the first bad one is named in one line."""
    try:
        return settings(**values)
    except ValidationError as error:
        first = error.errors()[0]
        field = prefix + ".".join(map(str, first["loc"]))
        if first["type"] == "extra_forbidden":
            raise unknown("setting", field, [prefix + name for name in settings.model_fields]) from None
        raise InputError(f"{field}: {first['msg'].lower()}, got {shown(first['input'])}") from None


class Plan(Frozen):
    """Epochs, batches, optimiser and schedule of one stage."""

    epochs: int = Field(ge=0, le=10**5)  # so that the records fit into a file
    batch_size: int = Field(256, ge=2, le=2**31)  # batch norm and pairs need two samples
    optimizer: Optimizer = "sgd"
    lr: float = Field(0.1, gt=0, le=1000)
    momentum: float = Field(0.9, ge=0, lt=1)
    weight_decay: float = Field(5e-4, ge=0, le=1000)
    schedule: Schedule = "constant"
    milestones: tuple[PositiveInt, ...] = ()
    gamma: float = Field(0.1, gt=0, le=1)
    warmup: float = Field(0.0, ge=0, le=1e6)

    def lr_at(self, t: float) -> float:
        """The learning rate at time ``t``, in epochs."""
        if t < self.warmup:
            return self.lr * (t + 1e-3) / self.warmup
        if self.schedule == "steps":
            return self.lr * self.gamma ** sum(t >= m for m in self.milestones)
        if self.schedule == "cosine":
            done = (t - self.warmup) / max(self.epochs - self.warmup, 1e-9)
            return self.lr * 0.5 * (1 + math.cos(math.pi * min(done, 1.0)))
        return self.lr

    def build_optimizer(self, module: nn.Module) -> torch.optim.Optimizer:
        """The optimiser over everything in ``module`` that is not frozen."""
        parameters = [p for p in module.parameters() if p.requires_grad]
        if self.optimizer == "sgd":
            return torch.optim.SGD(parameters, self.lr, self.momentum, weight_decay=self.weight_decay)
        build = torch.optim.Adam if self.optimizer == "adam" else torch.optim.AdamW
        return build(parameters, self.lr, weight_decay=self.weight_decay)
