"""The paper's data sets, read from their official files; train and test together, as clustering has no split."""

import io
import pickle
import struct
import zipfile
from collections.abc import Callable
from math import prod
from os.path import isfile
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.io import loadmat

from lsdc.data.arrays import check_indices
from lsdc.data.budget import check_memory
from lsdc.data.download import BROKEN, OfficialFiles, content, fetch, find, verify
from lsdc.data.official import (
    CIFAR10,
    CIFAR10_CLASSES,
    CIFAR10_PYTHON,
    CIFAR100,
    CIFAR100_PYTHON,
    CIFAR100_SUPERCLASSES,
    DIGITS,
    MNIST,
    STL10,
    STL10_CLASSES,
)
from lsdc.data.reading import Dataset
from lsdc.errors import InputError

Part = tuple[np.ndarray, np.ndarray]  # images, labels
REUTERS = ("reuters10k.npz", "reuters10k.mat", "X.npy", "reuters10k_rcv1.npz")  # the first one present is read
REUTERS_PICKLES = ("reuters10k.npy", "reutersidf10k.npy")
REUTERS_URL = (
    "https://github.com/slim1017/VaDE/raw/eca52b4b57e32a68f578de7a54eda5d39907b0fe/dataset/reuters10k/reuters10k.mat"
)
UNPICKLE = (
    "python -c \"import numpy as n; d = n.load(r'{}', allow_pickle=True).item(); "
    "n.savez(r'{}', data=d['data'], label=d['label'])\""
)


def mnist(root: Path, source: OfficialFiles = MNIST) -> Dataset:
    """MNIST: 70,000 handwritten digits of 28x28 pixels (downloaded, 11 MB)."""
    files = _load(source, root, lambda name, found: read_idx(found, 3 if "idx3" in name else 1))
    X, y = _joined(source, _pairs(files), range(10))
    return Dataset("mnist", X, y, DIGITS, title="MNIST")


def cifar10(root: Path, sources: tuple[OfficialFiles, ...] = (CIFAR10, CIFAR10_PYTHON)) -> Dataset:
    """CIFAR-10: 60,000 colour images of 32x32 pixels in 10 classes (downloaded, 162 MB)."""
    X, y = _cifar(root, sources, 1, "labels", range(10))
    return Dataset("cifar10", X, y, CIFAR10_CLASSES, title="CIFAR-10")


def cifar100_20(root: Path, sources: tuple[OfficialFiles, ...] = (CIFAR100, CIFAR100_PYTHON)) -> Dataset:
    """CIFAR-100-20: 60,000 colour images of 32x32 pixels in 20 superclasses (downloaded, 161 MB)."""
    X, y = _cifar(root, sources, 2, "coarse_labels", range(20))
    return Dataset("cifar100-20", X, y, CIFAR100_SUPERCLASSES, title="CIFAR-100-20")


def stl10(root: Path, source: OfficialFiles = STL10) -> Dataset:
    """STL-10: 13,000 colour images of 96x96 pixels in 10 classes, and 100,000 unlabelled ones (downloaded, 2.6 GB)."""
    files = _load(source, root, lambda name, found: read_stl(found) if "X" in name else found)
    X, y = _joined(source, _pairs(files), range(1, 11))
    path = next(iter(files)).with_name("unlabeled_X.bin")
    try:  # these 2.8 GB were checked with the archive's md5
        unlabelled = read_stl(np.memmap(path, np.uint8, "r")) if isfile(path) else None
    except BROKEN as error:
        raise source.error(path, error) from None
    title = "STL-10" if unlabelled is not None else "STL-10 (without its unlabelled images)"
    return Dataset("stl10", X, y, STL10_CLASSES, title=title, unlabelled=unlabelled)


def reuters10k(root: Path) -> Dataset:
    """Reuters-10K: 10,000 news stories as tf-idf vectors in 4 classes (put it into reuters10k/ yourself)."""
    folder = root / "reuters10k"
    there = [folder / name for name in (*REUTERS, *REUTERS_PICKLES) if isfile(folder / name)]
    get = f"get {REUTERS_URL} and put it into {folder}"
    if not there:
        raise InputError(f"{folder}: contains none of {', '.join(REUTERS)}; {get}")
    path = there[0]
    if path.name in REUTERS_PICKLES:
        how = UNPICKLE.format(path, path.with_name(REUTERS[0]))
        raise InputError(
            f"{path}: is a pickle, which can run any code, so it is not opened; if you trust it, convert it: {how}"
        )
    try:
        X, y, names = read_documents(_arrays(path))
    except Exception as error:  # loadmat raises almost anything on damaged files
        reason = " ".join(str(error).split()) or type(error).__name__
        raise InputError(f"{path}: cannot be read ({reason}); {get}") from None
    title = "RCV1-10K (rebuilt)" if path.name == "reuters10k_rcv1.npz" else "Reuters-10K"
    return Dataset("reuters10k", X, y, names, title=title)


def read_idx(found: np.ndarray, ndim: int) -> np.ndarray:
    """The array of an idx file: two zeros, 8 for bytes, the number of axes, their lengths, the values."""
    start = 4 + 4 * ndim
    header = found[:start].tobytes()
    if header[:4] != bytes([0, 0, 8, ndim]):
        raise ValueError(f"not an idx file of {ndim} axes (it begins with {header[:4]!r})")
    if len(header) < start:
        raise ValueError(f"truncated after {len(header)} bytes")
    shape = struct.unpack(f">{ndim}I", header[4:])
    if len(found) != start + prod(shape):
        raise ValueError(f"{len(found):,} bytes, but its header promises {start + prod(shape):,}")
    return found[start:].reshape(shape)


def read_cifar(found: np.ndarray, n_labels: int) -> Part:
    """Images (n, 3, 32, 32) and the first of their labels, from records of label bytes and 3,072 pixels."""
    rows = _records(found, n_labels + 3072)
    return rows[:, n_labels:].reshape(-1, 3, 32, 32), rows[:, 0]


def read_cifar_pickle(found: np.ndarray, key: str) -> Part:
    """Images (n, 3, 32, 32) and labels, from the Python version; unpickles arrays, strings, lists and dicts only."""
    try:
        batch = _Unpickler(io.BytesIO(found.data), encoding="bytes").load()
        images, labels = batch[b"data"], np.array(batch[key.encode()], np.int64)
        return images.reshape(-1, 3, 32, 32), labels
    except (pickle.UnpicklingError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise ValueError(f"not a batch of CIFAR images ({error})") from None


def read_stl(found: np.ndarray) -> np.ndarray:
    """Images (n, 3, 96, 96), which the files hold column by column."""
    return _records(found, 3 * 96 * 96).reshape(-1, 3, 96, 96).transpose(0, 1, 3, 2)


def read_documents(arrays: dict[str, Any]) -> tuple[Any, np.ndarray, tuple[str, ...]]:
    """Samples in single precision (sparse ones stay sparse), labels from 0, and the names of the classes."""
    if {"data", "indices", "indptr", "shape"} <= arrays.keys():
        check_indices(arrays)
        X = sp.csr_matrix((arrays["data"], arrays["indices"], arrays["indptr"]), shape=arrays["shape"])
        X.check_format(full_check=True)
    else:
        X = next((arrays[key] for key in ("X", "data") if key in arrays), None)
    y = next((arrays[key] for key in ("y", "Y", "label") if key in arrays), None)
    if X is None or y is None:
        raise ValueError(f"needs arrays X (or data) and y (or label), found {', '.join(arrays) or 'none'}")
    X = sp.csr_matrix(X, dtype=np.float32) if sp.issparse(X) else np.asarray(X, np.float32)
    if X.ndim != 2 or np.size(y) != X.shape[0]:
        raise ValueError(f"samples of shape {X.shape}, but labels of shape {np.shape(y)}")
    values, y = np.unique(np.ravel(y).astype(np.int64), return_inverse=True)
    names = arrays["classes"][values] if "classes" in arrays else values
    return X, y.astype(np.int64), tuple(str(name) for name in names)


class _Unpickler(pickle.Unpickler):
    """Builds arrays and refuses everything else a pickle can ask for."""

    KNOWN = {  # noqa: RUF012
        ("numpy.core.multiarray", "_reconstruct"): np.empty(0).__reduce__()[0],
        ("numpy", "ndarray"): np.ndarray,
        ("numpy", "dtype"): lambda kind, *flags: np.dtype(kind, *map(bool, flags)),  # they are 0 and 1; numpy 2.4 warns
    }

    def find_class(self, module: str, name: str) -> Any:
        """Look up what a pickle calls by name."""
        if (module, name) not in self.KNOWN:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}")
        return self.KNOWN[module, name]


def _records(found: np.ndarray, size: int) -> np.ndarray:
    if len(found) % size or not len(found):
        raise ValueError(f"{len(found):,} bytes, not a whole number of records of {size:,}")
    return found.reshape(-1, size)


def _arrays(path: Path) -> dict[str, Any]:
    """The arrays of a file by name, never unpickled."""
    if path.suffix == ".mat":
        return {name: value for name, value in loadmat(path).items() if not name.startswith("__")}
    if path.suffix == ".npy":
        return {name: np.load(path.with_name(f"{name}.npy"), allow_pickle=False) for name in ("X", "y")}
    with zipfile.ZipFile(path) as archive:
        check_memory(path, sum(entry.file_size for entry in archive.infolist()))
    with np.load(path, allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def _load(source: OfficialFiles, root: Path, parse: Callable[[str, np.ndarray], Any]) -> dict[Path, Any]:
    """The parsed files of a source, each checked against its md5."""
    folder, parts = fetch(source, root), {}
    for name, md5 in source.files.items():
        path = find(folder, name)
        try:
            found = content(path)
            if source.pickled:  # only the official bytes are ever unpickled, whatever happens to the file
                found = found.copy()
                verify(found, md5)
            parts[path] = parse(name, found)
            if not source.pickled:  # parsed first, as a wrong size says more than a wrong checksum
                verify(found, md5)
        except BROKEN as error:
            raise source.error(path, error) from None
    return parts


def _pairs(files: dict[Path, np.ndarray]) -> dict[Path, Part]:
    """Images and labels from separate files, keyed by the file of the labels."""
    paths = list(files)
    return {y: (files[X], files[y]) for X, y in zip(paths[::2], paths[1::2], strict=True)}


def _cifar(root: Path, sources: tuple[OfficialFiles, ...], n_labels: int, key: str, labels: range) -> Part:
    """The version that is present, else the first one, downloaded."""
    source = next((source for source in sources if not source.missing(source.place(root))), sources[0])
    if source.pickled:
        parts = _load(source, root, lambda name, found: read_cifar_pickle(found, key))
    else:
        parts = _load(source, root, lambda name, found: read_cifar(found, n_labels))
    return _joined(source, parts, labels)


def _joined(source: OfficialFiles, parts: dict[Path, Part], labels: range) -> Part:
    """All images, and their labels counted from 0."""
    for path, (X, y) in parts.items():
        if len(X) != len(y):
            raise source.error(path, f"{len(y):,} labels for {len(X):,} images")
        if not set(np.unique(y).tolist()) <= set(labels):
            raise source.error(path, f"labels from {y.min()} to {y.max()}, not {labels[0]} to {labels[-1]}")
    X = np.concatenate([X for X, _ in parts.values()])
    return X, np.concatenate([y for _, y in parts.values()]).astype(np.int64) - labels[0]
