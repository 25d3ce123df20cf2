"""Features for neighbours and splits, and a two-dimensional map of the samples."""

import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from sklearn.cluster import SpectralClustering
from sklearn.decomposition import PCA

from lsdc.errors import HealthWarning, InputError
from lsdc.functional import nearest, nearest_among
from lsdc.methods.layout import MAPPED, plane
from lsdc.runs.tensors import read_tensors, write_tensors

NAME = "explorer.safetensors"  # in the run folder, so that a run is laid out once and needs its data only once
N_DIRECTIONS = 32
SPLIT = 3_000  # samples of a cluster whose graph is cut in two; the others follow their nearest
NEIGHBOURS = 10


class Places(NamedTuple):
    """Features (n, d), every row of length one, and positions on a map (n, 2) from 0 to 1."""

    features: np.ndarray
    places: np.ndarray


def directions(f: np.ndarray) -> np.ndarray:
    """Standardised features along their leading directions, scaled to length one."""
    f = np.asarray(f, np.float32)
    f = (f - f.mean(0)) / (f.std(0) + 1e-6)
    found = PCA(min(N_DIRECTIONS, *f.shape), random_state=0).fit_transform(f)
    norms = np.linalg.norm(found, axis=1, keepdims=True)
    return np.asarray(found / np.maximum(norms, 1e-9), np.float32)


def mapped(f: np.ndarray) -> np.ndarray:
    """A map on which neighbours stay neighbours: some samples are laid out, the others lie among their nearest."""
    n, rng = len(f), np.random.default_rng(0)
    some = np.sort(rng.permutation(n)[:MAPPED])
    places = np.empty((n, 2), np.float32)
    places[some] = plane(f[some])
    others = np.setdiff1d(np.arange(n), some)
    if len(others):
        near = nearest_among(torch.from_numpy(f[others]), torch.from_numpy(f[some]), 3).indices.numpy()
        around = places[some][near].mean(1) + rng.normal(0, 0.004, (len(others), 2))
        places[others] = np.clip(around, 0, 1)
    return places


def neighbours(f: np.ndarray, i: int, k: int) -> np.ndarray:
    """The samples nearest to sample ``i``, nearest first."""
    near = f @ f[i]
    near[i] = -np.inf
    k = min(k, len(f) - 1)
    some = np.argpartition(-near, k - 1)[:k] if k else np.empty(0, np.int64)
    return some[np.argsort(-near[some], kind="stable")]


def halves(f: np.ndarray) -> np.ndarray:
    """Which samples form the smaller part when the neighbour graph of a cluster is cut in two."""
    if len(f) < 2:
        raise InputError("a cluster of one sample cannot be split")
    rng = np.random.default_rng(0)
    some = np.sort(rng.permutation(len(f))[:SPLIT])
    part = _cut(f[some])
    if len(some) < len(f):
        near = nearest_among(torch.from_numpy(f), torch.from_numpy(f[some]), 1).indices[:, 0].numpy()
        part = part[near]
    return part if 2 * part.sum() <= len(part) else ~part


def _cut(f: np.ndarray) -> np.ndarray:
    n, k = len(f), min(NEIGHBOURS, len(f) - 1)
    if n <= 3 or (f == f[0]).all():
        return np.arange(n) >= (n + 1) // 2
    links = np.zeros((n, n), np.float32)
    links[np.arange(n)[:, None], nearest(torch.from_numpy(f), k).indices.numpy()] = 1
    with warnings.catch_warnings(action="ignore"):  # a graph in several pieces is all the easier to cut
        found = SpectralClustering(2, affinity="precomputed", assign_labels="cluster_qr", random_state=0)
        part = found.fit_predict((links + links.T) / 2) == 1
    return part if 0 < part.sum() < n else np.arange(n) >= n // 2


def stored_layout(folder: Path, model: str, n: int) -> Places | None:
    """The stored layout, if it belongs to this model."""
    try:
        tensors, header = read_tensors(folder / NAME)
        f, places = tensors["features"], tensors["places"]
    except (InputError, KeyError):
        return None
    fits = header.get("model") == model and f.shape[:1] == (n,) and f.ndim == 2 and places.shape == (n, 2)
    return Places(f.float().numpy(), places.float().numpy()) if fits else None


def store_layout(folder: Path, model: str, places: Places) -> None:
    """Store the layout for next time; a full disk is only a warning."""
    tensors = {name: torch.from_numpy(np.ascontiguousarray(part)) for name, part in places._asdict().items()}
    try:
        write_tensors(folder / NAME, tensors, {"model": model})
    except (OSError, ValueError) as error:
        message = f"{folder / NAME}: not written ({error}); the map will be computed again next time"
        warnings.warn(message, HealthWarning, stacklevel=1)
