"""A map of samples, for the report and the explorer: neighbours attract each other, all others repel."""

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.decomposition import PCA

from lsdc.functional import nearest

MAPPED = 5000  # samples on a map of large data
NEIGHBOURS = 15
DIRECTIONS = 32  # leading directions of the features: more change the picture little and take longer
STEPS = 500
OTHERS = 5  # that push a point in each step
FARTHEST = 4.0  # that a point moves in one step by one other


def plane(f: NDArray[np.float32]) -> NDArray[np.float64]:
    """Positions (n, 2) from 0 to 1, the same every time.

    The forces are those of UMAP with a = b = 1; in each step a point meets one neighbour and a few others. It starts
    from the leading directions, so that distant groups stay apart.
    """
    n, rng = len(f), np.random.default_rng(0)
    x = f.astype(np.float64) - f.mean(0, dtype=np.float64)
    if n < 4 or not x.any():
        return np.stack([np.linspace(0, 1, n), np.full(n, 0.5)], axis=1)
    if min(x.shape) > DIRECTIONS:
        x = PCA(DIRECTIONS, random_state=0).fit_transform(x)
    near = nearest(torch.from_numpy(x), min(NEIGHBOURS, n - 1)).indices.numpy()
    y = _begin(x) + rng.normal(0, 0.01, (n, 2))  # equal samples must not share one position
    for step in range(STEPS):
        y += (1 - step / STEPS) * _forces(y, near, rng)
    return _fitted(y)


def _begin(f: NDArray[np.float64]) -> NDArray[np.float64]:
    y = PCA(min(2, f.shape[1]), random_state=0).fit_transform(f)
    y = np.pad(y, ((0, 0), (0, 2 - y.shape[1])))
    return np.asarray(10 * y / np.abs(y).max())


def _forces(y: NDArray[np.float64], near: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.float64]:
    """The step of each point: towards one neighbour, which also moves, and away from some others."""
    n = len(y)
    partner = near[np.arange(n), rng.integers(near.shape[1], size=n)]
    apart = y - y[partner]
    pull = np.clip(2 * apart / (1 + np.square(apart).sum(1, keepdims=True)), -FARTHEST, FARTHEST)
    apart = y[:, None] - y[rng.integers(n, size=(n, OTHERS))]
    square = np.square(apart).sum(2, keepdims=True)
    push = np.clip(2 * apart / ((0.001 + square) * (1 + square)), -FARTHEST, FARTHEST).sum(1)
    back = [np.bincount(partner, pull[:, axis], n) for axis in (0, 1)]
    return np.asarray(push - pull + np.stack(back, axis=1))


def _fitted(y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Positions scaled to the unit square, each axis by itself, so that a few outliers do not squeeze the rest."""
    low, high = np.quantile(y, [0.002, 0.998], axis=0)
    return np.asarray(np.clip((y - low) / np.maximum(high - low, 1e-9), 0, 1) * 0.94 + 0.03)
