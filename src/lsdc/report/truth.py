"""A run against labels it never saw."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lsdc.metrics import CONFIDENT, Scores, crosstab, score
from lsdc.report.facts import Facts
from lsdc.report.figures import Curve, curve
from lsdc.report.matrix import Counts, Match, Matrix, matrix

MISTAKES = 8


@dataclass(frozen=True)
class Against:
    """The comparison with the labels."""

    scores: Scores
    matrices: list[Matrix]
    coverage: Curve
    mistakes: list[tuple[str, int, int]]  # class, cluster, samples
    mostly: dict[int, tuple[str, float]]  # the largest class of each cluster, and its share


def against(facts: Facts, y: NDArray[np.generic], class_names: tuple[str, ...]) -> Against:
    """Confusions of all and of confident samples, and accuracy against coverage."""
    classes, codes = _classes(y, class_names)
    shape = (len(classes), facts.n_clusters)
    table, match, sure = crosstab(codes, facts.labels, shape), None, facts.confidence > CONFIDENT
    match = Match.of(table)
    kept = crosstab(codes[sure], facts.labels[sure], shape)
    columns = [str(k) for k in range(facts.n_clusters)]
    drawn = [
        matrix("All samples", table, classes, columns, match),
        matrix("Confident samples", kept, classes, columns, match),
    ]
    right = np.array([match.column_of.get(c, -1) for c in range(len(classes))])[codes] == facts.labels
    return Against(
        score(y, facts.labels, facts.confidence),
        [m for m in drawn if m],
        _coverage(right, facts.confidence),
        _mistakes(table, match, classes),
        {k: (classes[int(c.argmax())], float(c.max() / c.sum())) for k, c in enumerate(table.T) if c.any()},
    )


def _classes(y: NDArray[np.generic], class_names: tuple[str, ...]) -> tuple[list[str], Counts]:
    """The names of the classes that occur, and the class number of each sample."""
    values, codes = np.unique(y.astype(str) if y.dtype.kind == "O" else y, return_inverse=True)
    numbered = y.dtype.kind in "iu" and int(values[0]) >= 0 and int(values[-1]) < len(class_names)
    return [class_names[int(v)] if numbered else str(v) for v in values], codes.astype(np.int64)


def _mistakes(table: Counts, match: Match, classes: list[str]) -> list[tuple[str, int, int]]:
    """The most frequent mistakes: samples of a class outside the cluster it matches."""
    wrong = table.copy()
    wrong[list(match.column_of), list(match.column_of.values())] = 0
    order = np.argsort(-wrong, axis=None, kind="stable")[:MISTAKES]
    places = zip(*np.unravel_index(order, wrong.shape), strict=True)
    return [(classes[c], int(k), int(wrong[c, k])) for c, k in places if wrong[c, k]]


def _coverage(right: NDArray[np.bool_], confidence: NDArray[np.float64]) -> Curve:
    """The accuracy of the most confident 5 %, 6 %, ..., all of the samples."""
    order = np.argsort(-confidence, kind="stable")
    accuracy = np.cumsum(right[order]) / np.arange(1, len(right) + 1)
    at = np.unique(np.ceil(np.linspace(0.05, 1, 96) * len(right)).astype(int)) - 1
    low = min(float(np.floor(10 * accuracy[at].min()) / 10), 0.9)
    return curve("Accuracy of the most confident", at, accuracy[at], ("the surest 5%", "all samples"), (low, 1.0))
