"""What is measured about a fit: time, memory, scores against labels, and scores without labels."""

import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import silhouette_score

from lsdc.data.datasets import Dataset
from lsdc.data.sources import Data, raw
from lsdc.errors import HealthWarning, InputError
from lsdc.methods import Estimator, KMeans
from lsdc.metrics import CONFIDENT, cluster_sizes, clustering_accuracy, confusion, score
from lsdc.runs.folder import Run
from lsdc.training.context import Progress
from lsdc.training.health import clusters_alive

CURVES = (
    "stage",
    "epoch",
    "loss",
    "pair",
    "consistency",
    "accuracy",
    "alive",
    "confident",
    "density",
    "seconds",
    # of other methods than LSD-C
    "changed",
    "rebuilt",
    "selected",
    "agreement",
    "clusters",
)
Monitor = Callable[[Progress], None]
SAMPLED = 2000  # rows a silhouette is computed on, as it compares all pairs
STARTS = 5  # of K-means on the features that a method learned


@dataclass(frozen=True)
class Spent:
    """Wall-clock and processor seconds; the latter are unknown for what ran in another process."""

    seconds: float
    cpu_seconds: float | None

    def __add__(self, more: "Spent") -> "Spent":
        cpu = None if self.cpu_seconds is None or more.cpu_seconds is None else self.cpu_seconds + more.cpu_seconds
        return Spent(self.seconds + more.seconds, cpu)

    def as_dict(self) -> dict[str, float | None]:
        """As stored in a result's file."""
        return {name: None if value is None else round(value, 2) for name, value in vars(self).items()}


def timed(model: Estimator, X: Any, run: Run, resume: bool, monitor: Monitor | None) -> tuple[Spent, list[str]]:
    """Fit, and return the time it took and the warnings.

    Epochs of an interrupted run, or of a pretext shared by another run, count as if they had been run now.
    """
    here: list[float] = []

    def watch(progress: Progress) -> None:
        if progress.record:
            here.append(progress.record["seconds"])
        if monitor:
            monitor(progress)

    where: dict[str, Any] = {"resume": run} if resume else {"run": run}
    wall, cpu = time.perf_counter(), time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", HealthWarning)
        model.fit(X, monitor=watch, **where)
    cpu = time.process_time() - cpu
    warned = [str(w.message) for w in caught if issubclass(w.category, HealthWarning)]
    outside = max(time.perf_counter() - wall - sum(here), 0.0)  # an epoch may have begun in another process
    whole = not resume and len(here) >= len(model.history_)
    return Spent(outside + sum(record["seconds"] for record in model.history_), cpu if whole else None), warned


def peak_mb() -> float | None:
    """The peak memory of this process in MB; None where the system does not tell (Windows)."""
    try:  # getrusage of a spawned process starts at its parent's peak, so ask Linux for its own
        line = next(x for x in Path("/proc/self/status").read_text().splitlines() if x.startswith("VmHWM"))
        return round(int(line.split()[1]) / 1024, 1)
    except (OSError, StopIteration, ValueError):
        pass
    try:
        import resource
    except ImportError:
        return None
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit, 1)


def clusters(model: Estimator) -> dict[str, Any]:
    """How many clusters are alive, and their sizes."""
    sizes = cluster_sizes(model.labels_, model.n_clusters_)
    return {"alive": clusters_alive((sizes / sizes.sum()).tolist()), "sizes": sizes.tolist()}


def scores(model: Estimator, X: Any, dataset: Dataset, inputs: Data, seed: int) -> dict[str, Any]:
    """Scores against labels if there are any; otherwise silhouettes, and the clusters, to compare seeds by."""
    if dataset.y is None:
        labels = " ".join(map(str, model.labels_.tolist()))
        return {"scores": silhouettes(model, dataset.X, _comparable(inputs)), "labels": labels}
    X = X.X if isinstance(X, Dataset) else X
    found = against_labels(model, X, dataset)
    found["scores"]["kmeans_features_acc"] = kmeans_on_features(model, X, dataset.y, seed)
    return found


def _comparable(inputs: Data) -> Any:
    """The inputs, with columns of different units brought to one scale."""
    return inputs.X / inputs.spec.scale.numpy() if inputs.spec.scale.ndim else inputs.X


def against_labels(model: Estimator, X: Any, dataset: Dataset) -> dict[str, Any]:
    """Scores and confusion matrices of all samples and of the confident ones."""
    confidence = model.predict_proba(X).max(1)
    y, sure = np.asarray(dataset.y), confidence > CONFIDENT
    return {
        "scores": dict(score(y, model.labels_, confidence).as_json()),
        "class_names": list(dataset.class_names),
        "confusion": confusion(y, model.labels_, np.ones_like(sure)).tolist(),
        "confusion_confident": confusion(y, model.labels_, sure).tolist(),
    }


def curves(model: Estimator) -> list[dict[str, Any]]:
    """The part of the history that is kept."""
    return [{key: record[key] for key in CURVES if key in record} for record in model.history_]


def kmeans_on_features(model: Estimator, X: Any, y: np.ndarray, seed: int) -> float | None:
    """The accuracy of K-means on the features a deep method learned; None for methods that learn none."""
    if not model.history_:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about features that have shrunk to fewer points than clusters
            kmeans = KMeans(model.n_clusters_, n_init=STARTS, random_state=seed).fit(model.transform(X))
    except InputError:  # the features have shrunk to a single point
        return None
    return clustering_accuracy(y, kmeans.labels_)


def silhouettes(model: Estimator, X: Any, inputs: Any) -> dict[str, float | None]:
    """The mean silhouette of the labels, on the method's own features and on the inputs, of the same 2,000 samples."""
    n = len(model.labels_)
    rows = np.sort(np.random.default_rng(0).choice(n, min(n, SAMPLED), replace=False))
    labels = model.labels_[rows]
    if not 2 <= len(np.unique(labels)) < len(rows):
        return {"silhouette": None, "silhouette_inputs": None}
    spaces = {"silhouette": model.transform(X)[rows], "silhouette_inputs": raw(inputs, rows)}
    return {name: float(silhouette_score(f.reshape(len(rows), -1), labels)) for name, f in spaces.items()}
