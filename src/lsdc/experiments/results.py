"""Results as files: what they contain, and whether they match the current settings and data."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Self

import numpy as np
import scipy.sparse as sp
from pydantic import BaseModel, ConfigDict, Field, model_validator

from lsdc.data.datasets import Dataset
from lsdc.data.digest import digest, same_data
from lsdc.data.sources import Data
from lsdc.errors import InputError
from lsdc.methods import Estimator
from lsdc.runs.atomic import write_atomic
from lsdc.runs.folder import Run, is_run
from lsdc.runs.untrusted import read_json, records

Figure = Annotated[float, Field(allow_inf_nan=False)]
Counts = list[list[Annotated[int, Field(ge=0)]]]


class Result(BaseModel):
    """What tables and figures need from a result's file."""

    model_config = ConfigDict(strict=True)

    title: str
    n: int = Field(ge=1)
    seed: int
    scores: dict[str, Figure | None]
    alive: int
    sizes: list[Annotated[int, Field(ge=0)]] = Field(min_length=1)
    seconds: Figure
    cpu_seconds: Figure | None = None  # unknown for older files and for fits in several processes
    peak_mb: Figure | None = None
    warnings: list[str]
    config: dict[str, Any]
    environment: dict[str, Any]
    history: list[Any]
    labels: str | None = None
    class_names: list[str] = []
    confusion: Counts = []
    confusion_confident: Counts = []

    @model_validator(mode="after")
    def _fits(self) -> Self:
        labels = self.n if self.labels is None else len(self.labels.split())
        tables = (self.confusion, self.confusion_confident)
        widths, heights = {len(row) for table in tables for row in table}, {len(table) for table in tables}
        if (sum(self.sizes), labels) != (self.n, self.n) or len(widths) > 1 or heights != {len(self.class_names)}:
            raise ValueError("its parts are inconsistent")
        if self.labels is not None and "silhouette" in self.scores:
            return self
        if not self.class_names or any(self.scores.get(name) is None for name in ("acc", "nmi", "ari")):
            raise ValueError("it has no scores")
        return self


def data_facts(dataset: Dataset, inputs: Data) -> dict[str, Any]:
    """What settings depend on, and what identifies a data set; labels count, as they decide the scores."""
    labels = None if dataset.y is None else hashlib.sha256(np.asarray(dataset.y, np.int64).tobytes()).hexdigest()[:16]
    return {
        "n": len(inputs),
        "shape": list(inputs.spec.shape),
        "sparse": bool(sp.issparse(inputs.X)),
        "n_clusters": dataset.n_clusters,
        "digest": digest(inputs.X, inputs.spec.scale),
        "unlabelled": 0 if dataset.unlabelled is None else len(dataset.unlabelled),
        "labels": labels,
    }


def settings_of(model: Estimator, data: dict[str, Any]) -> dict[str, Any]:
    """Everything that decides a fit on some data, except the seed."""
    return model.resolved(tuple(data["shape"]), data["n"], data["sparse"])


def is_interrupted(folder: Run, model: Estimator, settings: dict[str, Any], data: dict[str, Any]) -> bool:
    """Whether a folder holds an interrupted run of exactly this fit."""
    if not is_run(folder.path) or not (folder.path / "checkpoint").exists():
        return False
    stored = folder.read_json("config.json")
    same = stored["settings"] == settings and stored.get("method") == model.method
    same = same and stored.get("behaviour") == model.behaviour_with(settings)
    return same and stored["seed"] == model.random_state and same_data(stored["data"].get("digest"), data["digest"])


def parsed(file: Path) -> dict[str, Any]:
    """The content of a result's file, validated."""
    try:
        result = read_json(file)
        Result.model_validate(result)
        records(file, result["history"])
        if not isinstance(result["config"]["data"], dict):
            raise ValueError
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise not_a_result(file) from None
    return result


def not_a_result(file: Path) -> InputError:
    """The error for a file that is not a result, or belongs to another job."""
    return InputError(
        f"{file}: not a result that lsdc wrote for this table; remove it, or choose another output folder"
    )


def current(file: Path, result: dict[str, Any], now: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """The result, if it was made with the settings of ``now``; an outdated one is refused, not overwritten."""
    try:
        different = difference(*_comparable(result["config"], now()))
    except (KeyError, TypeError):
        different = "data"
    if different:
        raise InputError(f"{file}: made with other settings ({different}); remove it, or choose another output folder")
    return result


def _comparable(before: dict[str, Any], now: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Fill in what older files lack: labels (those of the paper's data sets) and what a method ran on (the inputs)."""
    data = {"labels": now["data"].get("labels"), **before["data"]}
    return {"on": "inputs", **before, "data": data}, now


def difference(before: Any, now: Any, name: str = "") -> str:
    """The first difference between two settings, in words; empty if they are equal."""
    if isinstance(before, dict) and isinstance(now, dict):
        places = (difference(before.get(k), now.get(k), k) for k in {**before, **now})
        return next(filter(None, places), "")
    same = before == now or (name == "digest" and same_data(before, now))
    return "" if same else f"{name} was {before!r}, is {now!r}"


def save(file: Path, result: dict[str, Any]) -> None:
    """Write a result's file atomically."""
    file.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(file, (json.dumps(result, indent=1) + "\n").encode())
