"""Which clusters are near each other: where the probability outside a sample's own cluster goes."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

MERGE = 0.1  # mean probability in both directions that suggests a merge
PAIRS = 8


class Pair(NamedTuple):
    """Two clusters, and the mean probability that the samples of one give to the other."""

    a: int
    b: int
    share: float


def nearness(labels: NDArray[np.int64], p: NDArray[np.float32]) -> NDArray[np.float64]:
    """(K, K): in row a the mean probability that the samples of cluster a give to each other cluster."""
    n_clusters = p.shape[1]
    total = np.zeros((n_clusters, n_clusters))
    np.add.at(total, labels, p)
    result = total / np.maximum(np.bincount(labels, minlength=n_clusters), 1)[:, None]
    np.fill_diagonal(result, 0)
    return result


def nearest_pairs(near: NDArray[np.float64], least: float = 0.005) -> list[Pair]:
    """The pairs that are nearest to each other, nearest first."""
    both = np.triu((near + near.T) / 2, 1)
    order = np.argsort(-both, axis=None, kind="stable")[:PAIRS]
    pairs = [Pair(int(a), int(b), float(both[a, b])) for a, b in zip(*np.unravel_index(order, both.shape), strict=True)]
    return [pair for pair in pairs if pair.share >= least]
