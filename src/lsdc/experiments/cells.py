"""One cell of a table: a data set, a variant, a scale and a seed, run once and kept as a JSON file."""

import hashlib
import json
import re
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.preprocessing import normalize

from lsdc.data.datasets import DATASETS, Dataset, load
from lsdc.data.sources import Data, describe, flat, sample_shape
from lsdc.errors import HealthWarning, InputError
from lsdc.experiments.recipes import SCALES, merged, recipe_for
from lsdc.experiments.tables import VARIANTS, changes
from lsdc.methods import LSDC, METHODS, Estimator
from lsdc.methods.lsdc import leading_directions
from lsdc.methods.persist import plain
from lsdc.methods.settings import resolve
from lsdc.metrics import confusion, score
from lsdc.training.checkpoint import Checkpoint, write_atomic
from lsdc.training.health import clusters_alive
from lsdc.training.loop import Progress
from lsdc.training.run import Run, environment, is_run

CURVES = ("stage", "epoch", "loss", "pair", "consistency", "accuracy", "alive", "confident", "density", "seconds")


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

    def file(self, out: Path) -> Path:
        """Where its result is kept."""
        return out / "cells" / f"{self.name}.json"

    def folder(self, out: Path) -> Path:
        """Where it runs; of use only while it does, and to look at afterwards."""
        return out / "runs" / self.name


class CellRun(Run):
    """A run that takes its pretext from another cell that had the same one, and leaves its own for others."""

    def restore(self, stage: str) -> Checkpoint | None:
        kept = super().restore(stage)
        if stage == "pretext" and kept is None and self._shared().exists():
            kept, _ = Checkpoint.read(self._shared())
            kept.write(self._checkpoint(stage), {"fingerprint": self.fingerprint, "stage": stage})
            with (self.path / "metrics.jsonl").open("a") as file:
                file.writelines(json.dumps(record) + "\n" for record in kept.history)
        return kept

    def keep(self, stage: str, checkpoint: Checkpoint) -> None:
        super().keep(stage, checkpoint)
        if stage == "pretext" and len(checkpoint.history) == self._config()["settings"]["pretext_plan"]["epochs"]:
            checkpoint.write(self._shared(), {"stage": stage})

    def _config(self) -> dict[str, Any]:
        return self.read_json("config.json")

    def _shared(self) -> Path:
        return self.path.parent / "pretexts" / f"{pretext_key(self._config())}.safetensors"


def pretext_key(config: dict[str, Any]) -> str:
    """A name for everything that decides how a pretext ends."""
    settings, data = config["settings"], config["data"]
    network = {name: settings["architecture"][name] for name in ("backbone", "width", "augment")}
    parts = [
        config["seed"],
        [data.get(name) for name in ("n", "shape", "digest", "pretext_n", "pretext_digest")],
        network,
    ]
    text = json.dumps([*parts, settings["pretext"], settings["pretext_plan"]], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


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


def build(cell: Cell, dataset: Dataset) -> Estimator:
    """The estimator of a cell; for a variant on pretext features, the one that makes them."""
    variant = VARIANTS[cell.variant]
    common = {"n_clusters": dataset.n_clusters, "random_state": cell.seed}
    if variant.method != "lsdc" and variant.on != "pretext":
        return METHODS[variant.method](**common, n_init=_starts(dataset))
    params = merged(recipe_for(cell.scale, dataset), changes(cell.variant, cell.dataset, cell.scale))
    if cell.samples and cell.scale == "cpu":  # its epochs are for the whole set: a part gets enough steps instead
        params["epochs"] = "auto"
        params["pretext_plan"] = {k: v for k, v in params.get("pretext_plan", {}).items() if k != "epochs"}
    return LSDC(**{**params, **common, **({"epochs": 0} if variant.on == "pretext" else {})})


def _starts(dataset: Dataset) -> int:
    """Starts of K-means: 20, and where each takes long, 5."""
    return 20 if dataset.X.shape[0] <= 20_000 else 5


def has_pretext(cell: Cell, dataset: Dataset) -> bool:
    """Whether the recipe of a cell trains a network before it clusters."""
    params = build(cell, dataset).get_params()
    return "pretext" in params and resolve(params, sample_shape(dataset.X), 2).pretext != "none"


def config(cell: Cell, dataset: Dataset) -> dict[str, Any]:
    """What decides a cell's result, for its file and to notice that a file is of another time."""
    params = plain(build(cell, dataset).get_params())
    del params["device"], params["random_state"]
    return json.loads(json.dumps({"method": VARIANTS[cell.variant].method, "params": params}))  # type: ignore[no-any-return]


def parse(file: Path) -> dict[str, Any]:
    """The content of a cell's file."""
    try:
        result: dict[str, Any] = json.loads(file.read_text())
        if not isinstance(result["scores"]["acc"], float) or not isinstance(result["config"]["params"], dict):
            raise TypeError
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(f"{file}: not a result written by lsdc reproduce; remove it or choose another --out") from None
    return result


def read(cell: Cell, dataset: Dataset, out: Path) -> dict[str, Any] | None:
    """The result of a cell if it was run; one made with other settings is refused, not overwritten."""
    file = cell.file(out)
    if not file.exists():
        return None
    result = parse(file)
    before, now = result["config"], config(cell, dataset)
    if before != now:
        was, given = before["params"], now["params"]
        differs = [key for key in {**was, **given} if was.get(key) != given.get(key)]
        what = (
            f"{differs[0]} was {was.get(differs[0])!r}, is {given.get(differs[0])!r}" if differs else "another method"
        )
        raise InputError(f"{file}: made with other settings ({what}); remove it or choose another --out")
    return result


def directions(X: Any, seed: int) -> np.ndarray:
    """Samples by their angle in the inputs' leading directions: where LSD-C looks for neighbours of documents."""
    data = Data(X, describe(X))
    return normalize(flat(data) @ leading_directions(data, seed).numpy())  # type: ignore[no-any-return]


def run(
    cell: Cell, root: Path, out: Path, device: str = "auto", monitor: Callable[[Progress], None] | None = None
) -> dict[str, Any]:
    """Run a cell, from where an interrupted run of it stopped, and write its file."""
    dataset = opened(cell.dataset, root, cell.samples)
    if dataset.y is None:
        raise InputError(f"{cell.dataset}: has no labels to measure against")
    variant = VARIANTS[cell.variant]
    model = build(cell, dataset).set_params(device=device)
    folder = CellRun(cell.folder(out))
    X = dataset if variant.on != "directions" else directions(dataset.X, cell.seed)
    started = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", HealthWarning)
        model.fit(X, monitor=monitor, **({"resume": folder} if is_run(folder.path) else {"run": folder}))
    said = [str(w.message) for w in caught if issubclass(w.category, HealthWarning)]
    history = model.history_
    spent = sum(record["seconds"] for record in history) or time.perf_counter() - started  # of a resumed run too
    if variant.on == "pretext":
        X, said, started = model.transform(dataset.X), [], time.perf_counter()
        model = METHODS[variant.method](n_clusters=model.n_clusters, n_init=_starts(dataset), random_state=cell.seed)
        model.fit(X)
        spent += time.perf_counter() - started
    p = model.predict_proba(X)
    confidence = p.max(1)
    sizes = np.bincount(model.labels_, minlength=model.n_clusters)
    scores = score(dataset.y, model.labels_, confidence)._asdict()
    sure = confidence > 0.9
    result = {
        "dataset": cell.dataset,
        "title": dataset.title or dataset.name,
        "n": len(dataset.y),
        "variant": cell.variant,
        "scale": cell.scale,
        "seed": cell.seed,
        "scores": {name: None if value != value else value for name, value in scores.items()},
        "alive": clusters_alive((sizes / sizes.sum()).tolist()),
        "sizes": sizes.tolist(),
        "seconds": round(spent, 1),
        "warnings": said,
        "config": config(cell, dataset),
        "settings": model.settings_,
        "environment": environment(),
        "class_names": list(dataset.class_names),
        "confusion": confusion(dataset.y, model.labels_, np.ones_like(sure)).tolist(),
        "confusion_confident": confusion(dataset.y, model.labels_, sure).tolist(),
        "history": [{key: record[key] for key in CURVES if key in record} for record in history],
    }
    cell.file(out).parent.mkdir(parents=True, exist_ok=True)
    write_atomic(cell.file(out), (json.dumps(result, indent=1) + "\n").encode())
    return result
