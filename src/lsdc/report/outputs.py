"""The model's outputs for part of the samples: enough for the map and the doubtful ones, however large the data."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lsdc.data.reading import Dataset
from lsdc.methods.layout import MAPPED


@dataclass(frozen=True)
class Outputs:
    """Features ``f`` and probabilities ``p`` of the samples ``rows``; the first ``mapped`` of these are on the map."""

    rows: NDArray[np.int64]
    f: NDArray[np.float32]
    p: NDArray[np.float32]
    mapped: int


def picked(labels: NDArray[np.int64], n_clusters: int, most: int = MAPPED) -> NDArray[np.int64]:
    """A reproducible random choice of samples, with a few from every cluster."""
    if len(labels) <= most:
        return np.arange(len(labels))
    rng = np.random.default_rng(0)
    order = rng.permutation(len(labels))
    few = max(1, min(20, most // (2 * n_clusters)))
    by_cluster = order[np.argsort(labels[order], kind="stable")]
    starts = np.searchsorted(labels[by_cluster], np.arange(n_clusters))
    place = np.arange(len(labels)) - starts[labels[by_cluster]]
    some = by_cluster[place < few]
    rest = order[~np.isin(order, some)]
    return np.sort(np.concatenate([some, rest])[:most])


def doubtful(labels: NDArray[np.int64], confidence: NDArray[np.float64], each: int) -> NDArray[np.int64]:
    """The ``each`` least confident samples of every cluster."""
    order = np.lexsort((confidence, labels))
    place = np.arange(len(labels)) - np.searchsorted(labels[order], labels[order])
    return order[place < each]


def outputs(model: Any, dataset: Dataset, mapped: NDArray[np.int64], more: NDArray[np.int64]) -> Outputs:
    """A fitted model's outputs for the samples on the map and some more."""
    rows = np.concatenate([mapped, np.setdiff1d(more, mapped)])
    X = dataset.X
    part = replace(dataset, X=[X[i] for i in rows] if isinstance(X, list) else X[rows])
    return Outputs(rows, model.transform(part), model.predict_proba(part), len(mapped))
