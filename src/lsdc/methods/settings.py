"""The settings of deep methods: what "auto" means, which names exist, and how long to train."""

import math
from collections.abc import Mapping
from typing import Any

from pydantic import Field, NonNegativeInt, PositiveInt

from lsdc.errors import InputError, unknown
from lsdc.nn.network import FITTED, auto_backbone
from lsdc.training.plan import Frozen, Plan, validated

UNFIT = {
    "images": tuple(name for name in FITTED if name != "patches"),
    "vectors": ("resnet18", "vgg4", "vgg6", "patches", "ricap", "cutmix"),
}  # parts, by kind of data
PRETEXT_PLAN = {"optimizer": "adam", "lr": 1e-3, "weight_decay": 0.0, "schedule": "cosine"}


class Settings(Frozen):
    """Everything that decides a fit. Parts given as functions appear by their names."""

    n_clusters: PositiveInt
    n_init: int = Field(1, ge=1, le=10_000)
    backbone: str
    width: float = Field(gt=0, le=16)
    n_frozen: NonNegativeInt = 0
    augment: str
    pretext: str
    pretext_plan: Plan
    plan: Plan


def common_defaults(shape: tuple[int, ...]) -> dict[str, Any]:
    """What "auto" means unless a method says otherwise."""
    grey_or_colour = "affine" if shape[0] == 1 else "crop-flip"  # small movements; shifts and mirrors
    return {
        "backbone": auto_backbone(shape),
        "width": 0.25,
        "augment": grey_or_colour if len(shape) == 3 else "noise",
        "n_init": 1,
        "pretext": "none",
        "pretext_steps": 700,
        "pretext_least": 10,
        "optimizer": "adam",
        "weight_decay": 0.0,
        "schedule": "cosine",
    }


def is_auto(value: Any) -> bool:
    """Whether a parameter is left to the method."""
    return isinstance(value, str) and value == "auto"


def is_own(value: Any) -> bool:
    """Whether a name stands for a function that was passed as a part (see ``as_json``)."""
    return isinstance(value, str) and ":" in value


def known_name(kind: str, value: Any, table: Mapping[str, Any]) -> None:
    """Refuse an unknown name."""
    if not isinstance(value, str) or value not in table:
        raise unknown(kind, value, table)


def epochs_for(steps: int, n: int, batch_size: int, least: int = 10) -> int:
    """Enough epochs for a number of steps, and at least ``least``."""
    return max(least, math.ceil(steps / max(n // batch_size, 1)))


def pretext_plan(n: int, batch_size: int, values: dict[str, Any]) -> Plan:
    """The plan of the pretext: the usual one with the user's changes."""
    changes = values["pretext_plan"] or {}
    if not isinstance(changes, dict):
        raise InputError(f"pretext_plan must be a dict such as {{'epochs': 20}}, got {changes!r}")
    epochs = epochs_for(values["pretext_steps"], n, batch_size, values["pretext_least"])
    return validated(Plan, {**PRETEXT_PLAN, "epochs": epochs, "batch_size": batch_size, **changes}, "pretext_plan.")
