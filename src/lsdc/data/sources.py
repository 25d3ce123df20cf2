"""Any kind of X behind one interface: float batches on demand, the raw values untouched."""

import os
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from lsdc import parallel
from lsdc.data.images import are_files, image_files
from lsdc.errors import InputError, shown

CHANNELS = (1, 3, 4)
SMALLEST_IMAGE = 8  # three halvings must leave something
SOME_IMAGES = 256  # enough to tell the scale of their values
OTHER_SCALE = 30.0  # how many times larger or smaller; from 0 to 1 instead of 0 to 255 is more
SINGLE = np.finfo(np.float32)
CHUNK_BYTES = 64 * 2**20  # of data looked at in one go, as all of it may be larger than memory


@dataclass(frozen=True)
class Spec:
    """What a model was fitted on: images (c, h, w) or vectors (d,), and how their values are scaled."""

    shape: tuple[int, ...]
    offset: Tensor
    scale: Tensor

    @property
    def is_image(self) -> bool:
        """Whether samples are images."""
        return len(self.shape) == 3


@dataclass(frozen=True)
class Data:
    """Samples and their scaling; ``batch`` gives some of them as a float tensor."""

    X: Any
    spec: Spec

    def __len__(self) -> int:
        return int(self.X.shape[0])

    def batch(self, indices: Tensor) -> Tensor:
        """The samples at ``indices``, scaled, images as (n, c, h, w)."""
        values = raw(self.X, indices.numpy())
        if self.spec.offset.ndim:  # in double precision: single would lose small differences of large values
            values = values - self.spec.offset.numpy()
        with np.errstate(over="ignore"):  # infinite values are refused where they are used
            return torch.from_numpy(np.array(values, np.float32)) / self.spec.scale

    def chunks(self, size: int = 1024) -> Iterator[Tensor]:
        """All samples in order."""
        return (self.batch(i) for i in torch.split(torch.arange(len(self)), size))


def flat(data: Data) -> Any:
    """All samples as one matrix of scaled values, sparse if they are."""
    if sp.issparse(data.X):
        return data.X.astype(np.float32) / float(data.spec.scale)
    return torch.cat([x.flatten(1) for x in data.chunks()]).numpy()


@dataclass(frozen=True)
class Joined:
    """Two sets of samples as one, for a pretext that learns from both."""

    first: Data
    second: Data

    def __len__(self) -> int:
        return len(self.first) + len(self.second)

    def batch(self, indices: Tensor) -> Tensor:
        """The samples at ``indices``; those of the second set are numbered after the first."""
        later = indices >= len(self.first)
        result = torch.empty(len(indices), *self.first.spec.shape)
        result[~later] = self.first.batch(indices[~later])
        result[later] = self.second.batch(indices[later] - len(self.first))
        return result


def raw(X: Any, rows: Any) -> np.ndarray:
    """Some rows of X, unscaled: sparse ones made dense, images with channels first."""
    part = X[rows]
    part = part.toarray() if sp.issparse(part) else np.asarray(part)
    if part.ndim == 3:
        return part[:, None]
    return part.transpose(0, 3, 1, 2) if part.ndim == 4 and part.shape[3] in CHANNELS else part


def row_chunks(X: Any) -> Iterator[slice]:
    """Slices over the rows of X, each of bounded size once it is dense and in double precision."""
    size = max(1, CHUNK_BYTES // (8 * int(np.prod(X.shape[1:])) or 1))
    return (slice(start, start + size) for start in range(0, X.shape[0], size))


def as_array(X: Any, image_size: int = 32) -> Any:
    """Tensors as arrays, lists of images, image files or vectors as one array, columns of texts as lists."""
    if isinstance(X, Tensor):
        if X.layout != torch.strided:
            raise InputError("X is a sparse tensor; pass a scipy sparse matrix instead")
        X = X.detach().cpu()
        return (X.float() if X.dtype == torch.bfloat16 else X).numpy()
    _check_form(X)
    if isinstance(X, (list, tuple)) and any(isinstance(item, str) for item in X):
        X = _texts(list(X))
    elif isinstance(X, (list, tuple)) and len(X) and np.ndim(X[0]) >= 2:
        try:
            return np.stack([np.asarray(image) for image in X])
        except ValueError:
            raise InputError("X is a list of images of different shapes; resize them to one shape") from None
    if getattr(X, "ndim", 0) == 1 and hasattr(X, "tolist") and getattr(X.dtype, "kind", "O") in "OUT":
        values = X.tolist()  # of an array, or a data frame's column
        X = _stacked(values) if values and all(np.ndim(value) == 1 for value in values) else _texts(values) or X
    return image_files(X, image_size) if are_files(X) else X


def _check_form(X: Any) -> None:
    """Refuse a name in place of what it names, and gaps that nothing below would see."""
    if isinstance(X, (str, bytes, os.PathLike)):
        raise InputError(f"X is a single name, {shown(X)}; to read a file or folder, use lsdc.open_data")
    if X is None or (isinstance(X, (Mapping, Set, Iterator)) and not sp.issparse(X)):  # dictionaries of keys are both
        kind = "None" if X is None else f"a {type(X).__name__}"
        raise InputError(f"X is {kind}; pass an array, a data frame or a list of samples")
    if isinstance(X, np.ma.MaskedArray) and np.ma.is_masked(X):
        raise InputError(
            f"X is a masked array with {np.ma.getmaskarray(X).sum():,} values masked; fill them in (X.filled)"
        )


def _stacked(values: list[Any]) -> np.ndarray:
    """A column of vectors as one array."""
    lengths = [len(value) for value in values]
    if wrong := [i for i, length in enumerate(lengths) if length != lengths[0]]:
        raise InputError(
            f"X contains vectors of different lengths: {lengths[0]} numbers in row 0, {lengths[wrong[0]]} in row "
            f"{wrong[0]} (counting from 0)"
        )
    return np.stack([np.asarray(value) for value in values])


def _texts(values: list[Any]) -> list[Any] | None:
    """The values of a column, if all are texts or paths."""
    wrong = [i for i, value in enumerate(values) if not isinstance(value, (str, os.PathLike))]
    if wrong and len(wrong) < len(values):
        raise InputError(
            f"X contains texts, but row {wrong[0]} (counting from 0) is {shown(values[wrong[0]])}; fill it in"
        )
    return None if wrong else values


def sample_shape(X: Any) -> tuple[int, ...]:
    """(c, h, w) of images, (d,) of vectors."""
    return image_shape(X.shape) if X.ndim > 2 else (int(X.shape[1]),)


def image_shape(shape: tuple[int, ...]) -> tuple[int, int, int]:
    """(c, h, w) of an array of images (n, h, w), (n, h, w, c) or (n, c, h, w)."""
    if len(shape) == 3:
        result = (1, shape[1], shape[2])
    elif len(shape) == 4 and shape[3] in CHANNELS:
        result = (shape[3], shape[1], shape[2])
    elif len(shape) == 4 and shape[1] in CHANNELS:
        result = (shape[1], shape[2], shape[3])
    else:
        raise InputError(
            f"X has shape {shape}; images must be (n, h, w), (n, h, w, c) or (n, c, h, w) with 1, 3 or 4 channels, "
            "and vectors (n, d)"
        )
    if min(result[1:]) < SMALLEST_IMAGE:
        raise InputError(
            f"images must be at least {SMALLEST_IMAGE}x{SMALLEST_IMAGE} pixels, got X of shape {shape}; "
            "vectors must have two dimensions: (n, d)"
        )
    return result


def is_image_shape(shape: tuple[int, ...]) -> bool:
    """Whether a shape in a file is (c, h, w) of images that could have been fitted."""
    return len(shape) == 3 and shape[0] in CHANNELS and min(shape[1:]) >= SMALLEST_IMAGE


def check_finite(X: Any) -> None:
    """Refuse NaN and infinite values, and say where the first one is."""
    if sp.issparse(X):
        bad = np.flatnonzero(~(np.abs(X.data) <= SINGLE.max))
        if len(bad):
            row = int(np.searchsorted(X.indptr, bad[0], side="right")) - 1
            raise _not_finite(X.data[bad[0]], row)
        return
    if X.dtype.kind != "f":
        return
    for rows in row_chunks(X):
        part = np.asarray(X[rows]).reshape(len(X[rows]), -1)
        bad_rows, bad_columns = np.nonzero(~(np.abs(part) <= SINGLE.max))
        if len(bad_rows):
            raise _not_finite(part[bad_rows[0], bad_columns[0]], rows.start + int(bad_rows[0]))


def _not_finite(value: float, row: int) -> InputError:
    what = (
        "NaN" if np.isnan(value) else "infinity" if np.isinf(value) else f"{value:g}, which is beyond single precision,"
    )
    return InputError(f"X contains {what} in row {row} (counting from 0); remove such rows or fill them in")


def check_images(X: Any) -> Any:
    """An array of images, unchanged; anything else is refused."""
    image_shape(X.shape)
    if X.dtype.kind not in "buif":
        raise InputError(f"images must be whole or floating-point numbers, got dtype {X.dtype}")
    if not len(X):
        raise InputError("X is empty: 0 samples (a minimum of 1 is required)")
    check_finite(X)
    return np.asarray(X) if not isinstance(X, np.memmap) else X


def range_warning(X: Any, spec: Spec) -> str:
    """A warning about new images whose values are on another scale than those the model was fitted on."""
    rows = np.unique(np.linspace(0, len(X) - 1, SOME_IMAGES).astype(int))  # the first ones may all be dark
    values = np.asarray(raw(X, rows), np.float64)
    scale, size = float(spec.scale), float(np.sqrt(np.square(values).mean()))
    is_large = values.std() > OTHER_SCALE * scale  # not by size: temperatures of 300 vary by 5
    if values.min() == values.max() or (size * OTHER_SCALE > scale and not is_large):
        return ""
    return (
        f"values of X (up to {values.max():g}) are on a different scale from those the model was fitted on (which "
        f"varied by about {scale:.3g}), so the clusters mean nothing; scale X as before (0 to 1, or 0 to 255?)"
    )


def _check_scale(spread: float, size: float, far: bool) -> None:
    """Refuse values whose differences are lost to rounding."""
    if far:
        raise InputError("X has values too far apart for single precision; scale them down")
    if spread <= 4 * np.finfo(np.float64).eps * size:
        raise InputError(
            f"X varies by about {spread:.1g} around values of {size:.1g}, less than double precision can resolve; "
            "subtract what the samples have in common, or drop large constant columns"
        )
    if spread < SINGLE.tiny:
        raise InputError(f"X varies by only about {spread:.1g}, too little for single precision; scale it up")


def spec_of(X: Any, units: Sequence[float] = ()) -> Spec:
    """Shape and scaling of X.

    Images are divided by their standard deviation and keep their zero, so that padding stays black. Vectors are
    centred and divided by one scale for all features, which keeps the distances between samples in proportion;
    sparse ones keep their zeros. ``units`` are scales of single columns, by which these are divided before.
    """
    is_image = X.ndim > 2
    shape = sample_shape(X)
    mine = list(row_chunks(X))[parallel.rank() :: parallel.size()]  # processes divide the reading
    first, each = raw(X, slice(0, 1)), np.array(units) if len(units) else 1.0
    total, differing = np.zeros(shape), np.zeros(shape)
    for rows in mine:
        values = raw(X, rows)
        total, differing = total + values.sum(0, dtype=np.float64), differing + (values != first).any(0)
    total, differing = (parallel.sum_of(torch.from_numpy(part)).numpy() for part in (total, differing))
    if not differing.any():
        raise InputError("X is constant: all samples are identical, so there is nothing to cluster")
    mean = total / X.shape[0]
    mean = mean.mean() if is_image else np.where(differing, mean, first[0])  # a sum of equal values is rounded
    square, far = 0.0, 0.0
    for rows in mine:
        squares = np.square((raw(X, rows) - mean) / each)
        square, far = square + float(squares.sum()), far or float(squares.max() > float(SINGLE.max) ** 2)
    square, far = parallel.sum_of(torch.tensor([square, far], dtype=torch.float64)).tolist()
    spread = np.sqrt(square / (X.shape[0] * np.prod(shape)))
    _check_scale(float(spread), float(np.sqrt(np.square(mean / each).mean())), bool(far))
    offset = torch.zeros(()) if is_image or sp.issparse(X) else torch.from_numpy(np.asarray(mean))
    return Spec(shape, offset, torch.tensor(float(spread) * each, dtype=torch.float32))
