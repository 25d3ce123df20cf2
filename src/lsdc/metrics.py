"""How good a clustering is, given labels it never saw (section 4, evaluation metrics). numpy and scipy only."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment

UNASSIGNED = -1  # the label of samples that are in no cluster
CONFIDENT = 0.9  # a sample is confident if its largest probability is above this (section 4)


class Scores(NamedTuple):
    """The scores of one clustering, as tables show them."""

    acc: float
    nmi: float
    ari: float
    confident_share: float
    confident_acc: float

    def as_json(self) -> dict[str, float | None]:
        """The scores by name, with null for those that are not defined."""
        return {name: None if np.isnan(value) else value for name, value in self._asdict().items()}


def _codes(values: Sequence[Any] | ArrayLike) -> NDArray[np.int64]:
    """Whole numbers from 0 for any hashable labels, in order of first appearance."""
    items = values.tolist() if hasattr(values, "tolist") else list(values)  # type: ignore[arg-type]
    index: dict[Any, int] = {}
    return np.fromiter((index.setdefault(item, len(index)) for item in items), np.int64, len(items))


def contingency(y: Sequence[Any] | ArrayLike, labels: Sequence[Any] | ArrayLike) -> NDArray[np.int64]:
    """Counts of (class, cluster), classes and clusters in order of first appearance."""
    a, b = _codes(y), _codes(labels)
    if len(a) != len(b):
        raise ValueError(f"y and labels must have the same length, got {len(a)} and {len(b)}")
    if not len(a):
        raise ValueError("y and labels are empty")
    return crosstab(a, b, (int(a.max()) + 1, int(b.max()) + 1))


def crosstab(rows: NDArray[np.int64], columns: NDArray[np.int64], shape: tuple[int, int]) -> NDArray[np.int64]:
    """How often each pair of row and column occurs, both numbered from 0."""
    table = np.zeros(shape, np.int64)
    np.add.at(table, (rows, columns), 1)
    return table


def _matched(y: Sequence[Any] | ArrayLike, labels: Sequence[Any] | ArrayLike) -> NDArray[np.bool_]:
    """Whether each sample is right under the best one-to-one relabelling of clusters to classes."""
    table = contingency(y, labels)
    classes, clusters = linear_sum_assignment(-table)
    class_of = np.full(table.shape[1], -1)
    class_of[clusters] = classes
    return np.asarray(class_of[_codes(labels)] == _codes(y))


def clustering_accuracy(y: Sequence[Any] | ArrayLike, labels: Sequence[Any] | ArrayLike) -> float:
    """ACC: the share of samples right under the best one-to-one relabelling (Hungarian algorithm, section 4)."""
    return float(_matched(y, labels).mean())


def confident_accuracy(
    y: Sequence[Any] | ArrayLike,
    labels: Sequence[Any] | ArrayLike,
    confidence: ArrayLike,
    threshold: float = CONFIDENT,
) -> tuple[float, float]:
    """Share of the samples with confidence above ``threshold``, and their accuracy (nan if there is none).

    The relabelling is the one of all samples, so ignoring a hard class cannot improve the matching.
    """
    sure = np.asarray(confidence) > threshold
    right = _matched(y, labels)
    return float(sure.mean()), float(right[sure].mean()) if sure.any() else float("nan")


def nmi(y: Sequence[Any] | ArrayLike, labels: Sequence[Any] | ArrayLike) -> float:
    """Normalised mutual information, by the arithmetic mean of the entropies."""
    joint = contingency(y, labels) / len(_codes(y))
    a, b = joint.sum(1), joint.sum(0)
    entropies = -(a * np.log(a)).sum() - (b * np.log(b)).sum()
    if entropies == 0:
        return 1.0  # one class and one cluster: the same partition
    seen = joint > 0
    information = (joint[seen] * np.log(joint[seen] / np.outer(a, b)[seen])).sum()
    return float(min(max(2 * information / entropies, 0.0), 1.0))


def ari(y: Sequence[Any] | ArrayLike, labels: Sequence[Any] | ArrayLike) -> float:
    """Adjusted Rand index."""
    table = contingency(y, labels).astype(np.float64)
    n = table.sum()

    def pairs(counts: NDArray[np.float64]) -> float:
        return float((counts * (counts - 1) / 2).sum())

    both, a, b = pairs(table), pairs(table.sum(1)), pairs(table.sum(0))
    expected = a * b / max(n * (n - 1) / 2, 1)
    if (a + b) / 2 == expected:
        return 1.0  # both put everything together, or everything apart
    return float((both - expected) / ((a + b) / 2 - expected))


def confusion(y: ArrayLike, labels: ArrayLike, kept: ArrayLike) -> NDArray[np.int64]:
    """Counts of (class, cluster) among the kept samples, both numbered from 0.

    Clusters stand in the order of the classes with which the best relabelling of *all* samples matches them, so that
    the diagonal holds what is right.
    """
    y, labels, kept = np.asarray(y, np.int64), np.asarray(labels, np.int64), np.asarray(kept, bool)
    size = int(max(y.max(), labels.max())) + 1
    order = linear_sum_assignment(-crosstab(y, labels, (size, size)))[1]
    return crosstab(y[kept], labels[kept], (size, size))[: int(y.max()) + 1, order]


def cluster_sizes(labels: ArrayLike, n_clusters: int) -> NDArray[np.int64]:
    """Samples in each of the clusters 0 .. n_clusters - 1."""
    assigned = np.asarray(labels, np.int64)
    return np.bincount(assigned[assigned != UNASSIGNED], minlength=n_clusters)


def unassigned(labels: ArrayLike, confidence: ArrayLike, share: float) -> NDArray[np.int64]:
    """Labels with -1 for a ``share`` of the samples, rounded down: those of the lowest confidence."""
    result, sure = np.array(labels, np.int64), np.asarray(confidence)
    result[np.argsort(sure, kind="stable")[: int(share * len(sure))]] = UNASSIGNED
    return result


def score(
    y: Sequence[Any] | ArrayLike,
    labels: Sequence[Any] | ArrayLike,
    confidence: ArrayLike,
) -> Scores:
    """All scores of a result."""
    share, accuracy = confident_accuracy(y, labels, confidence)
    return Scores(clustering_accuracy(y, labels), nmi(y, labels), ari(y, labels), share, accuracy)
