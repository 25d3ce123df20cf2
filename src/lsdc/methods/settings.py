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

DENSITY = 0.7  # k as a share of N/K; neighbours count both ways, which brings the density of A near 1/K
STEPS = {"image": 900, "vector": 300}
PRETEXT_STEPS = {"image": 600, "vector": 300}


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
        {"head": plain(params["head"]), **{key: plain(given[key]) for key in ("backbone", "width", "n_frozen", "augment")}},
    )
    pretext = {"epochs": epochs_for(n, plan.batch_size, PRETEXT_STEPS[kind]), **PRETEXT_PLAN}
    return validated(
        Settings,
        {
            "n_clusters": params["n_clusters"],
            "labelling": labelling,
            "composition": plain(given["composition"]),
            "consistency": params["consistency"],
            "rampup": plan.epochs / 2 if params["rampup"] == "auto" else params["rampup"],
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


def bind_similarity(similarity: Any, labelling: Labelling, n_clusters: int) -> Callable[[Tensor], Tensor]:
    """The similarity as a function of features only; an automatic k follows their number."""
    if callable(similarity):
        return similarity  # type: ignore[no-any-return]
    function = SIMILARITIES[similarity]
    options = {"tau": labelling.tau, "temperature": labelling.temperature, "k": labelling.k}
    wanted = {name: options[name] for name in inspect.signature(function).parameters if name in options}

    def label(f: Tensor) -> Tensor:
        if "k" in wanted and labelling.k is None:
            wanted["k"] = max(1, min(len(f) - 1, round(DENSITY * len(f) / n_clusters)))
        return function(f, **wanted)

    return label
