"""Methods side by side on one data set: method x seed, each once, and the table written anew after each."""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from lsdc.data.dataset import Reading
from lsdc.data.datasets import Dataset
from lsdc.data.files import open_data
from lsdc.data.summary import about_reading
from lsdc.errors import InputError, printable, unknown
from lsdc.experiments import measure
from lsdc.experiments.comparison import Row, latex, markdown, plain, summarise
from lsdc.experiments.engine import Monitor, Place, State, run_all
from lsdc.experiments.parameters import settings, words
from lsdc.experiments.recipes import merged
from lsdc.experiments.results import described, has_scores, is_interrupted, of_today, parsed, save, settings_of
from lsdc.methods import METHODS, Estimator, KMeans
from lsdc.runs.atomic import write_atomic
from lsdc.runs.environment import environment
from lsdc.runs.folder import Run

BASE = "kmeans"  # always among the rows: what is below it is said to be
OWN = {
    "n_clusters": "--clusters",
    "random_state": "--seeds",
    "device": "--device",
}  # settings with options of their own


@dataclass(frozen=True)
class Source:
    """Where the data is, so that every process can open it for itself."""

    data: str
    reading: Reading = field(default_factory=Reading)

    def open(self, root: Path) -> Dataset:
        """The data set, its labels as whole numbers."""
        dataset = open_data(self.data, root, **vars(self.reading))
        if dataset.y is None:
            return dataset
        names, y = np.unique(dataset.y, return_inverse=True)
        return replace(dataset, y=y, class_names=dataset.class_names or tuple(map(str, names)))


@dataclass(frozen=True)
class Entry:
    """A method with a seed on a data set; ``changes`` are settings other than its defaults, as JSON."""

    source: Source
    method: str
    n_clusters: int
    seed: int
    changes: str = "{}"

    @property
    def name(self) -> str:
        """The name of its file and of its run folder."""
        return f"{self.method}-seed{self.seed}"

    @property
    def group(self) -> str:
        """The entries that differ in the seed alone."""
        return self.method

    @property
    def optional(self) -> bool:
        """What K-means cannot take, nothing can."""
        return self.method != BASE

    def file(self, out: Path) -> Path:
        """Where its result is kept."""
        return out / "cells" / f"{self.name}.json"

    def folder(self, out: Path) -> Path:
        """Where it runs."""
        return out / "runs" / self.name

    def build(self) -> Estimator:
        """Its estimator: what ``lsdc fit --method`` would run."""
        params = {**json.loads(self.changes), "n_clusters": self.n_clusters, "random_state": self.seed}
        return METHODS[self.method](**params)

    def check(self, about: dict[str, Any]) -> None:
        """Raise ``InputError`` for a setting that cannot be on the data described."""
        try:
            self.build()._check(tuple(about["shape"]), about["n"])
        except InputError as error:
            raise InputError(f"{self.method}: {error}") from None

    def config(self, about: dict[str, Any]) -> dict[str, Any]:
        """Everything that decides its result."""
        model = self.build()
        return {
            "method": self.method,
            "behaviour": model.behaviour,
            "settings": settings_of(model, about),
            "data": about,
        }

    def work(self, root: Path, out: Path, device: str, monitor: Monitor) -> dict[str, Any]:
        """Run it, from where an interrupted run of it stopped, and write its file."""
        dataset, known = self.source.open(root), environment()
        inputs = vectors_or_images(dataset)
        about = description(dataset, inputs)
        model = self.build().set_params(device=device)
        resume = is_interrupted(Run(self.folder(out)), model, settings_of(model, about), about)
        folder = Run(self.folder(out), overwrite=not resume)  # what is there of another time is of no use
        seconds, said = measure.timed(model, dataset, folder, resume, monitor)
        result = {
            "data": self.source.data,
            "title": dataset.title or dataset.name,
            "n": about["n"],
            "method": self.method,
            "seed": self.seed,
            **measure.clusters(model),
            "seconds": round(seconds, 2),
            "peak_mb": measure.peak_mb(),
            "warnings": said,
            "config": self.config(about),
            "environment": known,
            **_scores(model, dataset, inputs, self.seed),
            "history": measure.curves(model),
        }
        save(self.file(out), result)
        return result


def _scores(model: Estimator, dataset: Dataset, inputs: Any, seed: int) -> dict[str, Any]:
    """Against labels if there are any; else silhouettes, and the clusters themselves, to compare seeds by."""
    if dataset.y is None:
        labels = " ".join(map(str, model.labels_.tolist()))
        return {"scores": measure.silhouettes(model, dataset.X, inputs), "labels": labels}
    found = measure.against_labels(model, dataset.X, dataset)
    found["scores"]["kmeans_features_acc"] = measure.kmeans_on_features(model, dataset.X, dataset.y, seed)
    return found


def vectors_or_images(dataset: Dataset) -> Any:
    """The samples as every method gets them, texts as tf-idf; refused if they are none."""
    return KMeans()._data(dataset, reset=True).X


def description(dataset: Dataset, inputs: Any) -> dict[str, Any]:
    """What tells the data from other data, its labels included: other ones give other scores."""
    labels = None if dataset.y is None else hashlib.sha256(dataset.y.astype(np.int64).tobytes()).hexdigest()[:16]
    return {**described(replace(dataset, X=inputs)), "labels": labels}


def read(entry: Entry, out: Path, about: dict[str, Any]) -> dict[str, Any] | None:
    """The result of an entry if it was run; one made with other settings or data is refused, not overwritten."""
    file = entry.file(out)
    if not file.exists():
        return None

    def whole(result: dict[str, Any]) -> bool:
        named = (result["method"], result["seed"]) == (entry.method, entry.seed)
        return named and (("silhouette" in result["scores"] and "labels" in result) or has_scores(result))

    return of_today(file, parsed(file, "compare", whole), lambda: entry.config(about))


def named(text: str) -> list[str]:
    """The methods of ``--methods``, each once."""
    methods = list(METHODS) if text.strip() == "all" else words(text, "--methods", "methods")
    for method in methods:
        if method not in METHODS:
            raise unknown("method (--methods)", method, METHODS)
    return methods


def changed(given: Sequence[str], methods: Sequence[str]) -> dict[str, dict[str, Any]]:
    """What ``--set METHOD.KEY=VALUE`` changes in each method."""
    result: dict[str, dict[str, Any]] = {}
    for word in given:
        method, dot, rest = word.partition(".")
        if not dot or "=" in method or "=" not in rest:
            raise InputError(f"--set {word}: write METHOD.KEY=VALUE")
        if method not in methods:
            raise unknown("method (--set)", method, methods)
        if (key := rest.partition("=")[0]) in OWN:
            raise InputError(f"--set {word}: the same for all methods, use {OWN[key]}")
        result[method] = merged(result.get(method, {}), settings([rest], method))
    return result


@dataclass(frozen=True)
class Comparison:
    """What is compared: the data as it was found, the methods asked for, and the entries to run."""

    title: str
    labelled: bool
    about: dict[str, Any]
    asked: tuple[str, ...]
    entries: tuple[Entry, ...]
    said: tuple[str, ...] = ()  # how the data was read

    def results(self, out: Path) -> list[dict[str, Any]]:
        """The results that are there."""
        found = (read(entry, out, self.about) for entry in self.entries)
        return [result for result in found if result is not None]


def look(
    source: Source, root: Path, methods: str, seeds: int, clusters: int | None, changes: Sequence[str] = ()
) -> Comparison:
    """Read the data and the options before anything is run."""
    asked = named(methods)
    wanted = asked if BASE in asked else [*asked, BASE]
    given = {method: json.dumps(values) for method, values in changed(changes, wanted).items()}
    dataset = source.open(root)
    n_clusters = clusters or dataset.n_clusters
    if n_clusters is None:
        raise InputError(f"--clusters is missing: {source.data} does not say how many there are (lsdc suggest-k)")
    about = description(dataset, vectors_or_images(dataset))
    entries = [Entry(source, m, n_clusters, seed, given.get(m, "{}")) for seed in range(seeds) for m in wanted]
    for entry in entries[: len(wanted)]:
        entry.check(about)
    title = f"{printable(dataset.title or dataset.name)}: {about['n']:,} samples, {n_clusters} clusters"
    return Comparison(title, dataset.y is not None, about, tuple(asked), tuple(entries), tuple(about_reading(dataset)))


def compare(
    wanted: Comparison, place: Place, watch: Callable[[State], None] = lambda state: None
) -> tuple[list[Row], State]:
    """Run the entries that are not there yet, and write OUT/compare.md, .tex and .json."""
    _check_place(place.out)
    finished = {(r["method"], r["seed"]) for r in wanted.results(place.out)}
    pending = [entry for entry in wanted.entries if (entry.method, entry.seed) not in finished]
    state = State(len(wanted.entries), len(finished))
    rows = write(wanted, place.out, state)

    def ended(state: State) -> None:
        if set(wanted.asked) <= state.left_out.keys():
            first = wanted.asked[0]
            raise InputError(f"--methods {first}: {state.left_out[first]}")
        rows[:] = write(wanted, place.out, state)

    run_all(pending, state, place, watch=watch, ended=ended)
    return rows, state


def _check_place(out: Path) -> None:
    """Refuse a folder that holds something else."""
    if not out.exists():
        return
    if not out.is_dir() or (any(out.iterdir()) and not (out / "compare.json").exists()):
        raise InputError(f"--out {out}: exists and was not written by lsdc compare; choose another place")


def write(wanted: Comparison, out: Path, state: State) -> list[Row]:
    """Write the table of the results that are there."""
    rows = summarise(wanted.results(out))
    ends = {"failed": state.failed, "left_out": state.left_out}
    content = {"title": wanted.title, "rows": [plain(row) for row in rows], **ends}
    try:
        out.mkdir(parents=True, exist_ok=True)
        for suffix, text in (
            (".json", json.dumps(content, indent=1) + "\n"),
            (".md", markdown(wanted.title, rows, wanted.labelled, state.notes)),
            (".tex", latex(wanted.title, rows, wanted.labelled, state.notes)),
        ):
            write_atomic(out / f"compare{suffix}", text.encode(errors="backslashreplace"))
    except OSError as error:
        raise InputError(f"--out {out}: cannot write there ({error.strerror})") from None
    return rows
