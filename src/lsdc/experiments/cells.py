"""One cell of a table: a data set, a variant, a scale and a seed, run once and kept as a JSON file."""

import re
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.preprocessing import normalize

from lsdc.data.datasets import DATASETS, Dataset, load
from lsdc.data.sources import Data, describe, flat
from lsdc.errors import InputError
from lsdc.experiments import measure, sharing
from lsdc.experiments.engine import Monitor
from lsdc.experiments.recipes import SCALES, merged, recipe
from lsdc.experiments.results import described, has_scores, is_interrupted, of_today, parsed, save, settings_of
from lsdc.experiments.tables import VARIANTS, changes
from lsdc.methods import LSDC, METHODS, Estimator
from lsdc.methods.lsdc import leading_directions
from lsdc.runs.environment import environment


@dataclass(frozen=True)
class Cell:
    """What is run: everything else follows from it and the recipes."""

    dataset: str
    variant: str
    scale: str
    seed: int
    samples: int | None = None  # of the data set, where it is not all of them

    @property
    def name(self) -> str:
        """The name of its file and of its run folder."""
        size = f"-{self.samples}" if self.samples else ""
        return f"{self.dataset}{size}-{self.scale}-{self.variant}-seed{self.seed}"

    @classmethod
    def named(cls, name: str) -> "Cell | None":
        """The inverse of ``name``."""
        sets, scales, variants = ("|".join(map(re.escape, names)) for names in (DATASETS, SCALES, VARIANTS))
        found = re.fullmatch(rf"({sets})(?:-(\d+))?-({scales})-({variants})-seed(\d+)", name)
        if not found:
            return None
        dataset, samples, scale, variant, seed = found.groups()
        return cls(dataset, variant, scale, int(seed), int(samples) if samples else None)

    @property
    def group(self) -> str:
        """The cells that differ in the seed alone."""
        return self.name.removesuffix(f"-seed{self.seed}")

    @property
    def optional(self) -> bool:
        """Whether the table is made without it if its method cannot take the data."""
        return VARIANTS[self.variant].method not in ("lsdc", "kmeans")

    def file(self, out: Path) -> Path:
        """Where its result is kept."""
        return out / "cells" / f"{self.name}.json"

    def folder(self, out: Path) -> Path:
        """Where it runs; of use only while it does, and to look at afterwards."""
        return out / "runs" / self.name

    def work(self, root: Path, out: Path, device: str, monitor: Monitor) -> dict[str, Any]:
        """Run it."""
        return run(self, root, out, device, monitor)


def opened(name: str, root: Path, samples: int | None = None) -> Dataset:
    """A data set, or a sample of it, the same for every seed."""
    dataset = load(name, root)
    n = dataset.X.shape[0]
    if samples is None:
        return dataset
    if not samples < n:
        raise InputError(f"--samples {samples}: {name} has {n:,} samples; give fewer, or leave the option out")
    rows = np.sort(np.random.default_rng(0).choice(n, samples, replace=False))
    y = None if dataset.y is None else dataset.y[rows]
    title = f"{dataset.title or dataset.name}, {samples:,} of {n:,}"
    return replace(dataset, X=dataset.X[rows], y=y, title=title, ids=None)


def build(cell: Cell, about: dict[str, Any]) -> Estimator:
    """The estimator of a cell; for a variant on pretext features, the one that makes them."""
    variant = VARIANTS[cell.variant]
    common = {"n_clusters": about["n_clusters"], "random_state": cell.seed}
    if variant.method != "lsdc" and variant.on != "pretext":
        return METHODS[variant.method](**common, **_more(variant.method, about))
    base = recipe(cell.scale, cell.dataset, tuple(about["shape"]))
    params = merged(base, changes(cell.variant, cell.dataset, cell.scale))
    if cell.samples and cell.scale == "cpu":  # its epochs are for the whole set: a part gets enough steps instead
        params["epochs"] = "auto"
        params["pretext_plan"] = {k: v for k, v in params.get("pretext_plan", {}).items() if k != "epochs"}
    return LSDC(**{**params, **common, **({"epochs": 0} if variant.on == "pretext" else {})})


def _more(method: str, about: dict[str, Any]) -> dict[str, int]:
    """What a table sets in a method other than LSD-C: starts of K-means are 20, and where each takes long, 5."""
    return {"n_init": 20 if about["n"] <= 20_000 else 5} if method == "kmeans" else {}


def config(cell: Cell, about: dict[str, Any]) -> dict[str, Any]:
    """Everything that decides a cell's result, with nothing left at ``auto``: to notice a file of another time."""
    model, variant = build(cell, about), VARIANTS[cell.variant]
    starts = _more(variant.method, about)
    # the starts of K-means stand beside its settings, as in the files there are
    settings = {name: value for name, value in settings_of(model, about).items() if name not in starts}
    found = {"method": variant.method, "on": variant.on, "behaviour": model.behaviour, "settings": settings}
    return {**found, **starts, "data": about}


def pretext(cell: Cell, about: dict[str, Any]) -> str:
    """Cells of the same key share a pretext; empty if they have none."""
    model = build(cell, about)
    settings = settings_of(model, about)
    shared = {"method": model.method, "seed": cell.seed, "settings": settings, "data": about}
    return sharing.pretext_key(shared) if sharing.has_pretext(settings) else ""


PARTS = ("dataset", "variant", "scale", "class_names", "confusion", "confusion_confident")  # beside ``results.Result``
NAMED = ("dataset", "variant", "scale", "seed")


def parse(file: Path) -> dict[str, Any]:
    """The content of a cell's file."""

    def whole(result: dict[str, Any]) -> bool:
        cell = Cell.named(file.stem)
        named = cell is None or all(result[key] == getattr(cell, key) for key in NAMED)
        return named and result.keys() >= set(PARTS) and has_scores(result)

    return parsed(file, "reproduce", whole)


def read(cell: Cell, out: Path, about: dict[str, Any] | None = None) -> dict[str, Any] | None:
    """The result of a cell if it was run; one made with other settings or data is refused, not overwritten."""
    file = cell.file(out)
    if not file.exists():
        return None
    result = parse(file)
    return of_today(file, result, lambda: config(cell, about or result["config"]["data"]))


def directions(X: Any, seed: int) -> np.ndarray:
    """Samples by their angle in the inputs' leading directions: where LSD-C looks for neighbours of documents."""
    data = Data(X, describe(X))
    return normalize(flat(data) @ leading_directions(data, seed).numpy())  # type: ignore[no-any-return]


def run(cell: Cell, root: Path, out: Path, device: str = "auto", monitor: Monitor | None = None) -> dict[str, Any]:
    """Run a cell, from where an interrupted run of it stopped, and write its file."""
    dataset, known = opened(cell.dataset, root, cell.samples), environment()
    if dataset.y is None:
        raise InputError(f"{cell.dataset}: has no labels to measure against")
    about, variant = described(dataset), VARIANTS[cell.variant]
    decided = config(cell, about)
    model = build(cell, about).set_params(device=device)
    resume = is_interrupted(sharing.CellRun(cell.folder(out)), model, settings_of(model, about), about)
    folder = sharing.CellRun(cell.folder(out), overwrite=not resume)  # what is there of another time is of no use
    X = dataset if variant.on != "directions" else directions(dataset.X, cell.seed)
    spent, said = measure.timed(model, X, folder, resume, monitor)
    history = measure.curves(model)
    if variant.on == "pretext":
        X, said, started = model.transform(dataset.X), [], time.perf_counter()
        common = {"n_clusters": model.n_clusters, "random_state": cell.seed}
        model = METHODS[variant.method](**common, **_more(variant.method, about)).fit(X)
        spent += time.perf_counter() - started
    peak = measure.peak_mb()
    result = {
        "dataset": cell.dataset,
        "title": dataset.title or dataset.name,
        "n": len(dataset.y),
        "variant": cell.variant,
        "scale": cell.scale,
        "seed": cell.seed,
        **measure.clusters(model),
        "seconds": round(spent, 1),
        "peak_mb": peak,
        "warnings": said,
        "config": decided,
        "environment": known,
        **measure.against_labels(model, X, dataset),
        "history": history,
    }
    save(cell.file(out), result)
    return result
