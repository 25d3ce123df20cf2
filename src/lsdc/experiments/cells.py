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
import scipy.sparse as sp
from sklearn.preprocessing import normalize

from lsdc.data.datasets import DATASETS, Dataset, load
from lsdc.data.sources import Data, describe, flat, sample_shape
from lsdc.errors import HealthWarning, InputError
from lsdc.experiments.recipes import SCALES, merged, recipe
from lsdc.experiments.tables import VARIANTS, changes
from lsdc.methods import LSDC, METHODS, Estimator
from lsdc.methods.lsdc import leading_directions
from lsdc.methods.persist import digest
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

    def restore(self, stage: str) -> list[Checkpoint]:
        kept = super().restore(stage)
        if stage == "pretext" and not kept and self._shared().exists():
            kept = [Checkpoint.read(self._shared())[0]]
            super().keep(stage, kept[0])
        return kept

    def keep(self, stage: str, checkpoint: Checkpoint) -> None:
        super().keep(stage, checkpoint)
        if stage == "pretext" and len(checkpoint.history) == self._config()["settings"]["pretext_plan"]["epochs"]:
            write_atomic(self._shared(), checkpoint.to_bytes({"stage": stage}))

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


def described(dataset: Dataset) -> dict[str, Any]:
    """What the settings of a cell depend on, and what tells one data set from another."""
    X = dataset.X
    shape, sparse = list(sample_shape(X)), bool(sp.issparse(X))
    about = {"n": int(X.shape[0]), "shape": shape, "sparse": sparse, "n_clusters": dataset.n_clusters}
    return {**about, "digest": digest(X), "unlabelled": 0 if dataset.unlabelled is None else len(dataset.unlabelled)}


def build(cell: Cell, about: dict[str, Any]) -> Estimator:
    """The estimator of a cell; for a variant on pretext features, the one that makes them."""
    variant = VARIANTS[cell.variant]
    common = {"n_clusters": about["n_clusters"], "random_state": cell.seed}
    if variant.method != "lsdc" and variant.on != "pretext":
        return METHODS[variant.method](**common, n_init=_starts(about))
    base = recipe(cell.scale, cell.dataset, tuple(about["shape"]))
    params = merged(base, changes(cell.variant, cell.dataset, cell.scale))
    if cell.samples and cell.scale == "cpu":  # its epochs are for the whole set: a part gets enough steps instead
        params["epochs"] = "auto"
        params["pretext_plan"] = {k: v for k, v in params.get("pretext_plan", {}).items() if k != "epochs"}
    return LSDC(**{**params, **common, **({"epochs": 0} if variant.on == "pretext" else {})})


def _starts(about: dict[str, Any]) -> int:
    """Starts of K-means: 20, and where each takes long, 5."""
    return 20 if about["n"] <= 20_000 else 5


def config(cell: Cell, about: dict[str, Any]) -> dict[str, Any]:
    """Everything that decides a cell's result, with nothing left at ``auto``: to notice a file of another time."""
    model, variant = build(cell, about), VARIANTS[cell.variant]
    if isinstance(model, LSDC):
        settings = resolve(model.get_params(), tuple(about["shape"]), about["n"], about["sparse"]).model_dump(
            mode="json"
        )
    else:
        settings = {"n_clusters": model.n_clusters}
    starts = {"n_init": _starts(about)} if variant.method == "kmeans" else {}
    found = {"method": variant.method, "on": variant.on, "behaviour": model.behaviour, "settings": settings}
    return {**found, **starts, "data": about}


def has_pretext(cell: Cell, about: dict[str, Any]) -> bool:
    """Whether a cell trains a network before it clusters."""
    return bool(config(cell, about)["settings"].get("pretext", "none") != "none")


KEYS = (
    *("dataset", "title", "n", "variant", "scale", "seed", "scores", "alive", "sizes", "seconds", "warnings"),
    *("config", "environment", "class_names", "confusion", "confusion_confident", "history"),
)
NAMED = ("dataset", "variant", "scale", "seed")


def parse(file: Path) -> dict[str, Any]:
    """The content of a cell's file."""
    try:
        result: dict[str, Any] = json.loads(file.read_text())
        cell = Cell.named(file.stem)
        named = cell is None or all(result[key] == getattr(cell, key) for key in NAMED)
        whole = set(KEYS) <= result.keys() and all(
            isinstance(result["scores"][k], float) for k in ("acc", "nmi", "ari")
        )
        if not named or not whole or not isinstance(result["config"]["data"], dict):
            raise ValueError
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise InputError(f"{file}: not a result written by lsdc reproduce; remove it or choose another --out") from None
    return result


def read(cell: Cell, out: Path, about: dict[str, Any] | None = None) -> dict[str, Any] | None:
    """The result of a cell if it was run; one made with other settings or data is refused, not overwritten."""
    file = cell.file(out)
    if not file.exists():
        return None
    result = parse(file)
    try:
        different = difference(result["config"], config(cell, about or result["config"]["data"]))
    except (KeyError, TypeError):
        different = "data"
    if different:
        raise InputError(f"{file}: made with other settings ({different}); remove it or choose another --out")
    return result


def difference(before: Any, now: Any, name: str = "") -> str:
    """The first place at which two settings differ, in words; empty if they are the same."""
    if isinstance(before, dict) and isinstance(now, dict):
        places = (difference(before.get(k), now.get(k), k) for k in {**before, **now})
        return next(filter(None, places), "")
    return "" if before == now else f"{name} was {before!r}, is {now!r}"


def directions(X: Any, seed: int) -> np.ndarray:
    """Samples by their angle in the inputs' leading directions: where LSD-C looks for neighbours of documents."""
    data = Data(X, describe(X))
    return normalize(flat(data) @ leading_directions(data, seed).numpy())  # type: ignore[no-any-return]


def _is_interrupted(cell: Cell, decided: dict[str, Any], out: Path) -> bool:
    """Whether the cell's folder holds a beginning of just this cell."""
    folder = CellRun(cell.folder(out))
    if (VARIANTS[cell.variant].method != "lsdc" and VARIANTS[cell.variant].on != "pretext") or not is_run(folder.path):
        return False
    stored = folder.read_json("config.json")
    same = [stored.get(key) == decided[key] for key in ("behaviour", "settings")]
    return all(same) and stored["seed"] == cell.seed and stored["data"].get("digest") == decided["data"]["digest"]


def run(
    cell: Cell, root: Path, out: Path, device: str = "auto", monitor: Callable[[Progress], None] | None = None
) -> dict[str, Any]:
    """Run a cell, from where an interrupted run of it stopped, and write its file."""
    dataset, known = opened(cell.dataset, root, cell.samples), environment()
    if dataset.y is None:
        raise InputError(f"{cell.dataset}: has no labels to measure against")
    about, variant = described(dataset), VARIANTS[cell.variant]
    decided = config(cell, about)
    model = build(cell, about).set_params(device=device)
    resume = _is_interrupted(cell, decided, out)
    folder = CellRun(cell.folder(out), overwrite=not resume)  # what is there of another time is of no use
    X = dataset if variant.on != "directions" else directions(dataset.X, cell.seed)
    started = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", HealthWarning)
        model.fit(X, monitor=monitor, **({"resume": folder} if resume else {"run": folder}))
    said = [str(w.message) for w in caught if issubclass(w.category, HealthWarning)]
    history = model.history_
    spent = sum(record["seconds"] for record in history) or time.perf_counter() - started  # of a resumed run too
    if variant.on == "pretext":
        X, said, started = model.transform(dataset.X), [], time.perf_counter()
        model = METHODS[variant.method](n_clusters=model.n_clusters, n_init=_starts(about), random_state=cell.seed)
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
        "config": decided,
        "environment": known,
        "class_names": list(dataset.class_names),
        "confusion": confusion(dataset.y, model.labels_, np.ones_like(sure)).tolist(),
        "confusion_confident": confusion(dataset.y, model.labels_, sure).tolist(),
        "history": [{key: record[key] for key in CURVES if key in record} for record in history],
    }
    cell.file(out).parent.mkdir(parents=True, exist_ok=True)
    write_atomic(cell.file(out), (json.dumps(result, indent=1) + "\n").encode())
    return result
