"""One fit of many: data, method, parameters and seed, run once, with the result kept as a JSON file."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.preprocessing import normalize

from lsdc.data.cache import Watch, quiet
from lsdc.data.datasets import Dataset
from lsdc.data.files import open_data
from lsdc.data.reading import Reading
from lsdc.data.sources import Data, flat, spec_of
from lsdc.errors import InputError, Unsuitable
from lsdc.experiments import measure, results, sharing
from lsdc.experiments.measure import Monitor
from lsdc.methods import LSDC, METHODS, Estimator, KMeans
from lsdc.runs.environment import environment
from lsdc.training.rng import derive

PRETEXT_BEHAVIOUR = 5  # incremented when the same settings give other pretext features
N_LEADING = 20  # directions, for K-means on latent semantic analysis


@dataclass(frozen=True)
class Source:
    """Where the data is, so that every process can open it."""

    data: str
    reading: Reading = field(default_factory=Reading)
    samples: int | None = None  # how many, if not all

    def open(self, root: Path, watch: Watch = quiet) -> Dataset:
        """The data set or a part of it, the same for every seed, with labels as whole numbers."""
        dataset = open_data(self.data, root, watch, **vars(self.reading))
        if dataset.y is not None:
            names, y = np.unique(dataset.y, return_inverse=True)
            dataset = replace(dataset, y=y, class_names=dataset.class_names or tuple(map(str, names)))
        return dataset if self.samples is None else _part(dataset, self.samples)


def _part(dataset: Dataset, samples: int) -> Dataset:
    n = dataset.X.shape[0]
    if not samples < n:
        raise InputError(f"{dataset.name}: has only {n:,} samples; choose fewer than that instead of {samples:,}")
    rows = np.sort(np.random.default_rng(0).choice(n, samples, replace=False))
    y = None if dataset.y is None else dataset.y[rows]
    title = f"{dataset.title or dataset.name}, {samples:,} of {n:,}"
    return replace(dataset, X=dataset.X[rows], y=y, title=title, ids=None)


def inputs_of(dataset: Dataset) -> Data:
    """The samples as methods get them, texts as tf-idf; anything else is refused."""
    return KMeans()._data(dataset, reset=True)


@dataclass(frozen=True)
class Job:
    """A method with a seed on a data set; ``facts`` identify it in its result's file."""

    name: str  # of its file and of its run folder
    group: str  # the jobs that differ in the seed only; they are left out together
    source: Source
    method: str
    params: Mapping[str, Any]  # of the estimator, or of LSD-C where the method runs on its pretext
    facts: Mapping[str, Any]
    on: str = "inputs"  # what the method runs on: inputs, features of LSD-C's pretext, leading directions
    starts: Mapping[str, Any] = field(default_factory=dict)  # of K-means in tables; stored next to the settings
    optional: bool = True  # whether to leave the method out if it cannot handle the data; otherwise that is an error

    @property
    def seed(self) -> int:
        """The seed of everything random in it."""
        return int(self.params["random_state"])

    def file(self, out: Path) -> Path:
        """Where its result is kept."""
        return out / "cells" / f"{self.name}.json"

    def folder(self, out: Path) -> Path:
        """Its run folder; needed only while it runs, and for inspection afterwards."""
        return out / "runs" / self.name

    def build(self) -> Estimator:
        """The estimator that is fitted first: the method's, or LSD-C's where the method runs on its pretext."""
        if self.on == "pretext":
            return LSDC(**{**self.params, "epochs": 0})
        return METHODS[self.method](**self.params, **self.starts)

    def check(self, data: dict[str, Any]) -> None:
        """Raise ``InputError`` for a parameter that is invalid on this data."""
        try:
            self.build().resolved(tuple(data["shape"]), data["n"], data["sparse"])
        except Unsuitable:
            pass  # the job is left out when its turn comes
        except InputError as error:
            raise error.within(self.method) from None

    def config(self, data: dict[str, Any]) -> dict[str, Any]:
        """Everything that decides the result, with every ``auto`` replaced, to recognise outdated files."""
        model = self.build()
        settings = {k: v for k, v in results.settings_of(model, data).items() if k not in self.starts}
        behaviour = PRETEXT_BEHAVIOUR if self.on == "pretext" else model.behaviour_with(settings)
        decided = {"method": self.method, "on": self.on, "behaviour": behaviour, "settings": settings}
        return {**decided, **self.starts, "data": data}

    def pretext(self, data: dict[str, Any]) -> str:
        """The key of the pretext; jobs with the same key share it. Empty if there is none."""
        model = self.build()
        try:
            settings = results.settings_of(model, data)
        except InputError:  # the error is reported when the job's turn comes
            return ""
        shared = {"method": model.method, "seed": self.seed, "settings": settings, "data": data}
        return sharing.pretext_key(shared) if sharing.has_pretext(settings) else ""

    def checked(self, result: dict[str, Any], file: Path) -> dict[str, Any]:
        """The content of a file, if it belongs to this job."""
        if any(result.get(name) != value for name, value in self.facts.items()):
            raise results.not_a_result(file)
        return result

    def read(self, out: Path) -> dict[str, Any]:
        """Its result."""
        return self.checked(results.parsed(self.file(out)), self.file(out))

    def read_if_done(self, out: Path, data: dict[str, Any]) -> dict[str, Any] | None:
        """The result, if there is one; a result of other settings or data is refused, not overwritten."""
        if not (file := self.file(out)).exists():
            return None
        return results.current(file, self.read(out), lambda: self.config(data))

    def work(self, root: Path, out: Path, device: str = "auto", monitor: Monitor | None = None) -> dict[str, Any]:
        """Run the job, resuming an interrupted run of it, and write its file."""
        dataset, known = self.source.open(root), environment()
        inputs = inputs_of(dataset)
        data = results.data_facts(dataset, inputs)
        model = self.build().set_params(device=device)
        run, settings = sharing.SharingRun(self.folder(out)), results.settings_of(model, data)
        resume = results.is_interrupted(run, model, settings, data)
        run.overwrite = not resume  # outdated files there are of no use
        X = dataset if self.on != "directions" else lsa(dataset.X, self.seed)
        spent, warned = measure.timed(model, X, run, resume, monitor)
        history = measure.curves(model)
        if self.on == "pretext":
            X, warned = model.transform(dataset.X), []
            model, more = self._on_features(X)
            spent += more
        result = {
            **self.facts,
            "data": self.source.data,
            "title": dataset.title or dataset.name,
            "n": data["n"],
            **measure.clusters(model),
            **spent.as_dict(),
            "peak_mb": measure.peak_mb(),
            "warnings": warned,
            "config": self.config(data),
            "environment": known,
            **measure.scores(model, X, dataset, inputs, self.seed),
            "history": history,
        }
        results.save(self.file(out), result)
        return result

    def _on_features(self, f: np.ndarray) -> tuple[Estimator, measure.Spent]:
        """The method fitted on a pretext's features, and the time it took."""
        wall, cpu = time.perf_counter(), time.process_time()
        common = {name: self.params[name] for name in ("n_clusters", "random_state")}
        model = METHODS[self.method](**common, **self.starts).fit(f)
        return model, measure.Spent(time.perf_counter() - wall, time.process_time() - cpu)


def lsa(X: Any, seed: int) -> np.ndarray:
    """Samples by their angle in the inputs' 20 leading singular directions: latent semantic analysis."""
    x = flat(Data(X, spec_of(X)))
    found = TruncatedSVD(min(N_LEADING, *x.shape), random_state=derive(seed, "directions") % 2**32).fit(x)
    return normalize(x @ found.components_.T.astype(np.float32))  # type: ignore[no-any-return]
