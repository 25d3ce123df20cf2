"""NumPy files: .npy, and .npz archives, dense or in SciPy's sparse format; never a pickle."""

import struct
import tokenize
import warnings
import zipfile
import zlib
from collections.abc import Callable
from contextlib import suppress
from lzma import LZMAError
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import scipy.sparse as sp

from lsdc.data.budget import RATIO, check_memory
from lsdc.data.reading import Dataset, Reading
from lsdc.errors import InputError, reason

# what numpy and zipfile raise on damaged files, whose headers are Python literals
BROKEN = (
    ValueError,
    TypeError,
    KeyError,
    IndexError,
    SyntaxError,
    OverflowError,
    EOFError,
    OSError,
    RuntimeError,
    MemoryError,
    tokenize.TokenError,
    zipfile.BadZipFile,
    zlib.error,
    LZMAError,
    struct.error,
)
IN_MEMORY = 2**28  # bytes of a .npy file that is read whole; a mapped file that is cut short would end the process
INDICES = ("shape", "indices", "indptr", "row", "col", "coords", "offsets")  # of scipy's sparse formats


def numbers(path: Path, **options: Any) -> np.ndarray:
    """The array of numbers in a .npy file."""
    X = None
    with suppress(*BROKEN), warnings.catch_warnings(action="ignore"):  # about the program that wrote the file
        X = np.load(path, allow_pickle=False, **options)
    if not isinstance(X, np.ndarray) or X.ndim == 0:
        raise InputError(f"{path}: not an array of numbers, or the file is truncated")
    if X.dtype.kind not in "buifUS":
        kind = "named fields" if X.dtype.names else "dates or times" if X.dtype.kind in "mM" else str(X.dtype)
        raise InputError(f"{path}: not an array of numbers: it holds {kind}; convert it to real numbers first")
    return X


def read_npy(path: Path, reading: Reading) -> Dataset:
    """An array; a large one stays on disk and is read batch by batch, so its file must not change meanwhile."""
    X = numbers(path, mmap_mode="r" if path.stat().st_size > IN_MEMORY else None)
    if X.dtype.kind in "US":
        raise InputError(f"{path}: not an array of numbers")
    return Dataset(str(path), X)


def read_npz(path: Path, reading: Reading) -> Dataset:
    """The named array, else ``X`` or the only one, with labels ``y`` if there are any; also SciPy's sparse format."""
    arrays = _arrays(path)
    there = ", ".join(f"{name} {array.shape}" for name, array in arrays.items()) or "none"
    if reading.array is not None and reading.array not in arrays and not reading.matched:
        raise InputError(f"{path}: no array {reading.array!r}; it has {there}; choose one of them", "array")
    y = arrays.pop("y", None) if reading.array != "y" else None
    if reading.array in arrays:
        X = arrays[str(reading.array)]
    elif "format" in arrays:
        X = _sparse(path, arrays, lambda: sp.load_npz(path))
    elif {"data", "indices", "indptr", "shape"} <= arrays.keys():
        parts = (arrays["data"], arrays["indices"], arrays["indptr"])
        X = _sparse(path, arrays, lambda: sp.csr_matrix(parts, shape=arrays["shape"]))
    elif "X" in arrays or len(arrays) == 1:
        X = arrays["X"] if "X" in arrays else next(iter(arrays.values()))
    else:
        raise InputError(f"{path}: no array is named 'X'; it has {there}; choose one of them", "array")
    if X.ndim == 0 or X.dtype.kind not in "buif":
        raise InputError(f"{path}: the samples must be an array of numbers; the file has {there}")
    return labelled(path, X, y)


def _arrays(path: Path) -> dict[str, np.ndarray]:
    """All arrays of an archive; refuses one that unpacks to far more than its size or names files outside it."""
    try:
        with path.open("rb") as stream, zipfile.ZipFile(stream) as archive:
            names, size = archive.namelist(), sum(entry.file_size for entry in archive.infolist())
        check_memory(path, size)
        if wrong := [name for name in names if name.startswith("/") or ".." in PurePosixPath(name).parts]:
            raise InputError(f"{path}: contains a file named {wrong[0]!r}, which points outside the archive")
        with warnings.catch_warnings(action="ignore"), np.load(path, allow_pickle=False) as file:
            return {name: np.asarray(file[name]) for name in file.files}
    except InputError:
        raise
    except BROKEN:
        raise InputError(f"{path}: not an archive of arrays, or the file is truncated") from None


def check_indices(arrays: dict[str, np.ndarray]) -> None:
    """Raise ``ValueError`` for parts of a sparse matrix that would crash scipy or fill the memory."""
    if wrong := [name for name in INDICES if name in arrays and arrays[name].dtype.kind not in "iu"]:
        raise ValueError(f"{wrong[0]} are not whole numbers")
    ends = np.ravel(arrays.get("indptr", 0)).astype(np.int64)
    if not ends.size or ends.min() < 0 or (np.diff(ends) < 0).any():  # scipy checks nothing else if the last one is -1
        raise ValueError("indptr must rise from 0")
    shape = [int(length) for length in np.ravel(arrays["shape"])]
    if sum(shape) > max(2**20, RATIO * sum(array.nbytes for array in arrays.values())):
        raise ValueError(f"its shape {tuple(shape)} is far larger than its content")


def _sparse(path: Path, arrays: dict[str, np.ndarray], build: Callable[[], Any]) -> sp.csr_matrix:
    """A sparse matrix with all indices in range; scipy would read and write out of bounds."""
    try:
        check_indices(arrays)
        X = build()
        if X.dtype.kind not in "buif":
            raise ValueError(f"it holds {X.dtype} instead of numbers")
        if hasattr(X, "check_format"):
            X.check_format(full_check=True)
        return sp.csr_matrix(X)
    except (*BROKEN, AttributeError, NotImplementedError) as error:
        raise InputError(f"{path}: not a valid sparse matrix ({reason(error)})") from None


def labelled(path: Path, X: Any, y: Any, ids: Any = None) -> Dataset:
    """A data set, with labels for evaluation if the file has them."""
    if y is None:
        return Dataset(str(path), X, ids=ids)
    n = len(X) if isinstance(X, list) else X.shape[0]
    if y.shape != (n,):
        raise InputError(f"{path}: {n} samples, but labels y of shape {y.shape}")
    return Dataset(str(path), X, y, tuple(str(name) for name in np.unique(y)), ids)
