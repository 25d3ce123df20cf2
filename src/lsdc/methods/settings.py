"""The settings of LSD-C as small frozen objects, and how what is left at ``auto`` follows from the data."""

import inspect
import math
from collections.abc import Callable
from typing import Any, Literal

from pydantic import NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt
from torch import Tensor

from lsdc.data.augment import AUGMENTATIONS
from lsdc.errors import InputError
from lsdc.functional import COMPOSITIONS, SIMILARITIES
from lsdc.methods.base import plain
from lsdc.methods.deep import part, validated
from lsdc.nn.network import BACKBONES, HEADS, auto_backbone
from lsdc.pretext import PRETEXTS
from lsdc.training.plan import Frozen, Plan

SHARES = (0.2, 0.8)
FADE = True
STEPS = {"image": 900, "vector": 300}
PRETEXT_STEPS = {"image": 1000, "vector": 300}


class Labelling(Frozen):
    """Who belongs together: the similarity and its parameters, the space, and how many samples are compared."""

    similarity: str
    k: PositiveInt | None
    tau: float | None
    temperature: PositiveFloat
    space: Literal["features", "predictions"]
    pool: NonNegativeInt


class Architecture(Frozen):
    """The network, and how samples are shown to it."""

    backbone: str
    width: PositiveFloat
    head: str
    n_frozen: NonNegativeInt
    augment: str


class Settings(Frozen):
    """Everything that decides a fit of LSD-C. Parts given as functions appear by their names."""

    n_clusters: PositiveInt
    labelling: Labelling
    composition: str
    consistency: NonNegativeFloat
    rampup: NonNegativeFloat
    weighted: bool
    balance: NonNegativeFloat
    architecture: Architecture
    pretext: str
    pretext_plan: Plan
    plan: Plan


def resolve(params: dict[str, Any], shape: tuple[int, ...], n: int) -> Settings:
    """The parameters of the estimator, with ``auto`` replaced by what suits ``n`` samples of ``shape``."""
    kind = "image" if len(shape) == 3 else "vector"
    colour = kind == "image" and shape[0] > 1
    default = {
        "composition": "none",
        "backbone": auto_backbone(shape),
        "width": 0.25,
        "n_frozen": 0,
        "augment": "noise" if kind == "vector" else "crop-flip" if colour else "affine",
        "pretext": "autoencoder",
    }
    given = {key: default[key] if value == "auto" else value for key, value in params.items() if key in default}
    for name, table in TABLES.items():
        part(name, given.get(name, params[name]), table)
    plan = plan_for(params, n, STEPS[kind])
    labelling = validated(
        Labelling,
        {
            "similarity": plain(params["similarity"]),
            "k": None if params["k"] == "auto" else params["k"],
            **{key: params[key] for key in ("tau", "temperature", "space", "pool")},
        },
    )
    check_similarity(params["similarity"], labelling, min(n, plan.batch_size))
    architecture = validated(
        Architecture,
        {
            "head": plain(params["head"]),
            **{key: plain(given[key]) for key in ("backbone", "width", "n_frozen", "augment")},
        },
    )
    size = plan.batch_size
    pretext = {"epochs": epochs_for(n, size, PRETEXT_STEPS[kind]), "batch_size": size, **PRETEXT_PLAN}
    return validated(
        Settings,
        {
            "n_clusters": params["n_clusters"],
            "labelling": labelling,
            "composition": plain(given["composition"]),
            "consistency": params["consistency"],
            "rampup": plan.epochs / 2 if params["rampup"] == "auto" else params["rampup"],
            "weighted": params["weighted"],
            "balance": params["balance"],
            "architecture": architecture,
            "pretext": plain(given["pretext"]),
            "pretext_plan": validated(Plan, {**pretext, **(params["pretext_plan"] or {})}, "pretext_plan."),
            "plan": plan,
        },
    )


TABLES: dict[str, dict[str, Any]] = {
    "similarity": SIMILARITIES,
    "composition": COMPOSITIONS,
    "backbone": BACKBONES,
    "head": HEADS,
    "augment": AUGMENTATIONS,
    "pretext": PRETEXTS,
}
PRETEXT_PLAN = {"optimizer": "adam", "lr": 1e-3, "weight_decay": 0.0, "schedule": "cosine"}


def plan_for(params: dict[str, Any], n: int, steps: int) -> Plan:
    """The training plan of the clustering stage."""
    names = ("batch_size", "optimizer", "lr", "weight_decay", "schedule", "milestones", "epochs")
    values = {name: params[name] for name in names}
    if values["epochs"] == "auto":
        values["epochs"] = 1
        values["epochs"] = epochs_for(n, validated(Plan, values).batch_size, steps)
    return validated(Plan, values)


def epochs_for(n: int, batch_size: int, steps: int) -> int:
    """Epochs enough for a number of steps, and never fewer than ten."""
    return max(10, math.ceil(steps / max(n // batch_size, 1)))


def check_similarity(similarity: Any, labelling: Labelling, batch_size: int) -> None:
    """The similarity has what it needs, and k leaves samples unconnected."""
    if callable(similarity):
        return
    if "tau" in inspect.signature(SIMILARITIES[similarity]).parameters and labelling.tau is None:
        raise InputError(f"similarity {similarity!r} needs a threshold: give tau")
    if labelling.k is not None and labelling.k >= batch_size:
        raise InputError(f"k={labelling.k} must be smaller than the batch of {batch_size} samples")


def growth(progress: float) -> float:
    return min(max((progress - 0.3) / 0.6, 0.0), 1.0)


def bind_similarity(similarity: Any, labelling: Labelling, n_clusters: int) -> Callable[[Tensor, int, float], Tensor]:
    """The similarity as ``label(f, rows)``: A of the first ``rows`` of ``f``; an automatic k follows their number."""
    if callable(similarity):
        return lambda f, rows, progress: similarity(f)[:rows, :rows]
    function = SIMILARITIES[similarity]
    parameters = inspect.signature(function).parameters

    def label(f: Tensor, rows: int, progress: float) -> Tensor:
        grown = growth(progress)
        share = SHARES[0] + grown * (SHARES[1] - SHARES[0])
        k = labelling.k or max(1, min(len(f) - 1, round(share * len(f) / n_clusters)))
        options = {"tau": labelling.tau, "temperature": labelling.temperature, "k": k, "rows": rows}
        return function(f, **{name: options[name] for name in parameters if name in options})[:rows, :rows]

    return label
