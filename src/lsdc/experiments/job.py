"""One fit of many: a data source, a method, its parameters and a seed, run once and kept as a JSON file."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.preprocessing import normalize

from lsdc.data.dataset import Reading
from lsdc.data.datasets import Dataset
from lsdc.data.files import open_data
from lsdc.data.sources import Data, describe, flat
from lsdc.errors import InputError, Unsuitable
from lsdc.experiments import measure, results, sharing
from lsdc.experiments.measure import Monitor
from lsdc.methods import LSDC, METHODS, Estimator, KMeans
from lsdc.methods.lsdc import leading_directions
from lsdc.runs.environment import environment


@dataclass(frozen=True)
class Source:
    """Where the data is, so that every process can open it for itself."""

    data: str
    reading: Reading = field(default_factory=Reading)
    samples: int | None = None  # of the data set, where it is not all of them

    def open(self, root: Path) -> Dataset:
        """The data set or a part of it, the same for every seed, with labels as whole numbers."""
        dataset = open_data(self.data, root, **vars(self.reading))
        if dataset.y is not None:
            names, y = np.unique(dataset.y, return_inverse=True)
            dataset = replace(dataset, y=y, class_names=dataset.class_names or tuple(map(str, names)))
        return dataset if self.samples is None else _part(dataset, self.samples)


def _part(dataset: Dataset, samples: int) -> Dataset:
    n = dataset.X.shape[0]
    if not samples < n:
        raise InputError(f"{dataset.name}: has {n:,} samples, so a part of it must be smaller than {samples:,}")
    rows = np.sort(np.random.default_rng(0).choice(n, samples, replace=False))
    y = None if dataset.y is None else dataset.y[rows]
    title = f"{dataset.title or dataset.name}, {samples:,} of {n:,}"
    return replace(dataset, X=dataset.X[rows], y=y, title=title, ids=None)


def inputs_of(dataset: Dataset) -> Data:
    """The samples as every method gets them, texts as tf-idf; refused if they are none."""
    return KMeans()._data(dataset, reset=True)


@dataclass(frozen=True)
class Job:
    """A method with a seed on a data set; ``facts`` say which one it is in the file of its result."""

    name: str  # of its file and of its run folder
    group: str  # the jobs that differ in the seed alone: a refusal is one for all of them
    source: Source
    method: str
    params: Mapping[str, Any]  # of the estimator; where the method runs on a pretext, of LSD-C, which makes it
    facts: Mapping[str, Any]
    on: str = "inputs"  # what the method runs on: inputs, features of LSD-C's pretext, leading directions
    starts: Mapping[str, Any] = field(default_factory=dict)  # of K-means in tables; beside the settings in its file
    optional: bool = True  # whether a method that cannot take the data is left out; else it ends everything

    @property
    def seed(self) -> int:
        """The seed of everything random in it."""
        return int(self.params["random_state"])

    def file(self, out: Path) -> Path:
        """Where its result is kept."""
        return out / "cells" / f"{self.name}.json"

    def folder(self, out: Path) -> Path:
        """Where it runs; of use only while it does, and to look at afterwards."""
        return out / "runs" / self.name

    def build(self) -> Estimator:
        """The estimator that is fitted first: the method's, or LSD-C's where the method runs on its pretext."""
        if self.on == "pretext":
            return LSDC(**{**self.params, "epochs": 0})
        return METHODS[self.method](**self.params, **self.starts)

    def check(self, about: dict[str, Any]) -> None:
        """Raise ``InputError`` for a parameter that cannot be on the data described."""
        try:
            self.build().resolved(tuple(about["shape"]), about["n"], about["sparse"])
        except Unsuitable:
            pass  # left out when its turn comes
        except InputError as error:
            raise InputError(f"{self.method}: {error}") from None

    def config(self, about: dict[str, Any]) -> dict[str, Any]:
        """Everything that decides the result, with nothing left at ``auto``: to notice a file of another time."""
        model = self.build()
        settings = {k: v for k, v in results.settings_of(model, about).items() if k not in self.starts}
        decided = {"method": self.method, "on": self.on, "behaviour": model.behaviour, "settings": settings}
        return {**decided, **self.starts, "data": about}

    def pretext(self, about: dict[str, Any]) -> str:
        """Jobs of the same key share a pretext; empty if there is none."""
        model = self.build()
        try:
            settings = results.settings_of(model, about)
        except InputError:  # it has none, and will say why when its turn comes
            return ""
        shared = {"method": model.method, "seed": self.seed, "settings": settings, "data": about}
        return sharing.pretext_key(shared) if sharing.has_pretext(settings) else ""

    def checked(self, result: dict[str, Any], file: Path) -> dict[str, Any]:
        """The content of a file, if it is that of this job."""
        if any(result.get(name) != value for name, value in self.facts.items()):
            raise results.not_one(file)
        return result

    def read(self, out: Path) -> dict[str, Any]:
        """Its result."""
        return self.checked(results.parsed(self.file(out)), self.file(out))

    def read_if_done(self, out: Path, about: dict[str, Any]) -> dict[str, Any] | None:
        """The result if there is one; one made with other settings or data is refused, not overwritten."""
        if not (file := self.file(out)).exists():
            return None
        return results.of_today(file, self.read(out), lambda: self.config(about))

    def work(self, root: Path, out: Path, device: str = "auto", monitor: Monitor | None = None) -> dict[str, Any]:
        """Run it, from where an interrupted run of it stopped, and write its file."""
        dataset, known = self.source.open(root), environment()
        inputs = inputs_of(dataset)
        about = results.described(dataset, inputs)
        model = self.build().set_params(device=device)
        run, settings = sharing.SharingRun(self.folder(out)), results.settings_of(model, about)
        resume = results.is_interrupted(run, model, settings, about)
        run.overwrite = not resume  # what is there of another time is of no use
        X = dataset if self.on != "directions" else directions(dataset.X, self.seed)
        spent, said = measure.timed(model, X, run, resume, monitor)
        history = measure.curves(model)
        if self.on == "pretext":
            X, said = model.transform(dataset.X), []
            model, more = self._on_features(X)
            spent += more
        result = {
            **self.facts,
            "data": self.source.data,
            "title": dataset.title or dataset.name,
            "n": about["n"],
            **measure.clusters(model),
            **spent.as_dict(),
            "peak_mb": measure.peak_mb(),
            "warnings": said,
            "config": self.config(about),
            "environment": known,
            **measure.scores(model, X, dataset, inputs, self.seed),
            "history": history,
        }
        results.save(self.file(out), result)
        return result

    def _on_features(self, f: np.ndarray) -> tuple[Estimator, measure.Spent]:
        """The method on features that a pretext left, and what it took."""
        wall, cpu = time.perf_counter(), time.process_time()
        common = {name: self.params[name] for name in ("n_clusters", "random_state")}
        model = METHODS[self.method](**common, **self.starts).fit(f)
        return model, measure.Spent(time.perf_counter() - wall, time.process_time() - cpu)


def directions(X: Any, seed: int) -> np.ndarray:
    """Samples by their angle in the inputs' leading directions: where LSD-C looks for neighbours of documents."""
    data = Data(X, describe(X))
    return normalize(flat(data) @ leading_directions(data, seed).numpy())  # type: ignore[no-any-return]
