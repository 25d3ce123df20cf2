"""Data sets by name: ``load(name)`` gives samples, labels for evaluation, and the names of the classes."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits, make_blobs, make_moons

from lsdc.data.benchmarks import cifar10, cifar100_20, mnist, reuters10k, stl10
from lsdc.data.cache import Watch, quiet
from lsdc.data.download import watched
from lsdc.data.reading import Dataset
from lsdc.errors import unknown

__all__ = ["DATASETS", "Dataset", "load"]


def digits(root: Path) -> Dataset:
    """1,797 handwritten digits of 8x8 pixels, bundled with scikit-learn."""
    bunch = load_digits()
    return Dataset("digits", bunch.images.astype(np.float32), bunch.target, tuple("0123456789"))


def blobs(root: Path) -> Dataset:
    """2,000 points in 16 dimensions around 5 centres."""
    X, y = make_blobs(2000, 16, centers=5, random_state=0)
    return Dataset("blobs", X.astype(np.float32), y, tuple("01234"))


def two_moons(root: Path) -> Dataset:
    """2,000 points on two interleaved half circles."""
    X, y = make_moons(2000, noise=0.05, random_state=0)
    return Dataset("two-moons", X.astype(np.float32), y, ("upper", "lower"))


DATASETS: dict[str, Callable[[Path], Dataset]] = {
    "digits": digits,
    "blobs": blobs,
    "two-moons": two_moons,
    "mnist": mnist,
    "cifar10": cifar10,
    "cifar100-20": cifar100_20,
    "stl10": stl10,
    "reuters10k": reuters10k,
}


def load(name: str, root: str | Path = "", watch: Watch = quiet) -> Dataset:
    """A data set by name; ``root`` is where downloads are kept, and ``watch`` is called with their progress."""
    if name not in DATASETS:
        raise unknown("data set", name, DATASETS)
    with watched(watch):
        return DATASETS[name](Path(root).expanduser())
