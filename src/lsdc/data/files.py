"""People's own files as data sets: arrays, tables of numbers, texts, and folders of images."""

import csv
import difflib
import json
import zipfile
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from PIL import Image, ImageOps, UnidentifiedImageError

from lsdc.data.datasets import DATASETS, Dataset, load
from lsdc.errors import InputError

LABELS = ("label", "y")  # columns that are for evaluation and never seen by a method
IMAGES = {".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff"}


def open_data(name: str, root: str | Path = "", *, image_size: int = 32, column: str | None = None) -> Dataset:
    """A built-in data set by name, else a file or folder by path."""
    if name in DATASETS:
        return load(name, root)
    path = Path(name)
    try:
        is_folder, exists = path.is_dir(), path.exists()
    except (OSError, ValueError) as error:
        raise InputError(f"{name[:60]}: not a path ({error})") from None
    if is_folder:
        return image_folder(path, image_size)
    if not exists:
        near = difflib.get_close_matches(name, DATASETS, n=1, cutoff=0.6)
        hint = f"; did you mean the data set {near[0]!r}?" if near else f" (built in: {', '.join(DATASETS)})"
        raise InputError(f"{name}: no such file, folder or built-in data set{hint}")
    if path.suffix.lower() not in READERS:
        raise InputError(
            f"{name}: cannot read {path.suffix or 'a file without ending'}; "
            f"known are {', '.join(READERS)} and folders of images"
        )
    try:
        return READERS[path.suffix.lower()](path, column)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{name}: cannot be read ({error})") from None


def read_npy(path: Path, column: str | None) -> Dataset:
    """An array; it stays on disk and is read batch by batch."""
    try:
        X = np.load(path, mmap_mode="r", allow_pickle=False)
        if not isinstance(X, np.ndarray) or X.ndim == 0 or X.dtype.kind not in "buif":
            raise ValueError
        return Dataset(str(path), X)
    except (ValueError, EOFError):
        raise InputError(f"{path}: not a plain array of numbers, or cut short") from None


def read_npz(path: Path, column: str | None) -> Dataset:
    """Arrays by name: ``X`` (or the only one), and labels ``y`` if there are any; scipy's sparse format too."""
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            if not isinstance(file, np.lib.npyio.NpzFile):
                raise ValueError
            arrays = {name: file[name] for name in file.files}
    except (ValueError, EOFError, OSError, zipfile.BadZipFile, zlib.error):
        raise InputError(f"{path}: not an archive of plain arrays, or cut short") from None
    y = arrays.pop("y", None)
    if "format" in arrays:
        try:
            return _labelled(path, sp.load_npz(path).tocsr(), y)
        except (ValueError, TypeError, NotImplementedError, OSError) as error:
            raise InputError(f"{path}: not a valid sparse matrix ({error})") from None
    if {"data", "indices", "indptr", "shape"} <= arrays.keys():
        try:
            X: Any = sp.csr_matrix((arrays["data"], arrays["indices"], arrays["indptr"]), shape=arrays["shape"])
            X.check_format()
        except (ValueError, TypeError) as error:
            raise InputError(f"{path}: not a valid sparse matrix ({error})") from None
    elif "X" in arrays or len(arrays) == 1:
        X = arrays["X"] if "X" in arrays else next(iter(arrays.values()))
    else:
        raise InputError(f"{path}: needs an array named 'X', found {', '.join(arrays) or 'none'}")
    if X.ndim == 0:
        raise InputError(f"{path}: the array X holds a single number")
    return _labelled(path, X, y)


def _labelled(path: Path, X: Any, y: Any, ids: Any = None) -> Dataset:
    """A data set, with labels for evaluation if the file has any."""
    if y is None:
        return Dataset(str(path), X, ids=ids)
    n = len(X) if isinstance(X, list) else X.shape[0]
    if y.shape != (n,):
        raise InputError(f"{path}: {n} samples, but labels y of shape {y.shape}")
    return Dataset(str(path), X, y, tuple(str(name) for name in np.unique(y)), ids)


def read_csv(path: Path, column: str | None) -> Dataset:
    """A table of numbers, or of texts if it has a column ``text`` (or the one named).

    A column ``id`` names the rows, a column ``label`` or ``y`` is kept for evaluation.
    """
    with path.open(newline="", encoding="utf-8-sig") as file:
        first = file.readline()
        file.seek(0)
        delimiter = max(",;\t", key=first.count)  # the one the first line has most of
        csv.field_size_limit(2**30)
        try:
            rows = [row for row in csv.reader(file, delimiter=delimiter) if row]
        except csv.Error as error:
            raise InputError(f"{path}: not a CSV file ({error})") from None
    if not rows:
        raise InputError(f"{path}: is empty")
    header = None if all(map(_is_number, rows[0])) else rows.pop(0)
    names = header or [str(i) for i in range(len(rows[0]))]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise InputError(f"{path}: the column {twice[0]!r} is there twice")
    for number, row in enumerate(rows, start=2 if header else 1):
        if len(row) != len(names):
            raise InputError(f"{path}: line {number} has {len(row)} columns, the first has {len(names)}")
    columns = dict(zip(names, zip(*rows, strict=True), strict=True)) if rows else dict.fromkeys(names, ())
    return _table(path, columns, column, first_line=2 if header else 1)


def _table(path: Path, columns: dict[str, Any], column: str | None, first_line: int) -> Dataset:
    if column and column not in columns:
        raise InputError(f"{path}: no column {column!r}; it has {', '.join(columns)}")
    ids = columns.get("id")
    known = next((np.array(columns[name]) for name in LABELS if name in columns and name != column), None)
    if not any(len(values) for values in columns.values()):
        raise InputError(f"{path}: has no rows")
    text = column or ("text" if "text" in columns else None)
    rest = {name: values for name, values in columns.items() if name not in ("id", *LABELS) or len(columns) == 1}
    if text is None and len(rest) == 1 and not all(map(_is_number, next(iter(rest.values())))):
        text = next(iter(rest))
    if text is not None:
        return _labelled(path, [str(value) for value in columns[text]], known, ids)
    try:
        X = np.array(list(rest.values()), np.float64).T
    except (TypeError, ValueError):
        raise _not_a_number(path, rest, first_line) from None
    return _labelled(path, np.ascontiguousarray(X), known, ids)


def _not_a_number(path: Path, columns: dict[str, Any], first_line: int) -> InputError:
    cells = ((i, name, value) for name, values in columns.items() for i, value in enumerate(values))
    i, name, value = next(cell for cell in cells if not _is_number(cell[2]))
    return InputError(
        f"{path}: line {i + first_line}, column {name!r}: {str(value)[:40]!r} is not a number "
        "(for texts, name their column with --column)"
    )


def _is_number(text: Any) -> bool:
    try:
        float(text)
    except (TypeError, ValueError):
        return False
    return True


def read_parquet(path: Path, column: str | None) -> Dataset:
    """A table in Parquet, by pyarrow."""
    try:
        import pyarrow.parquet as parquet
    except ImportError:
        raise InputError(f"{path}: reading Parquet needs pyarrow (pip install pyarrow)") from None
    try:
        table = parquet.read_table(path)
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: not a Parquet file ({error})") from None
    return _table(path, {name: table.column(name).to_pylist() for name in table.column_names}, column, 1)


def _lines(path: Path) -> list[str]:
    """The lines of a text file; only line ends end them, unlike ``splitlines``."""
    with path.open(encoding="utf-8-sig") as file:
        return [line.rstrip("\n") for line in file]


def read_txt(path: Path, column: str | None) -> Dataset:
    """One text a line."""
    lines = _lines(path)
    if not any(line.strip() for line in lines):
        raise InputError(f"{path}: is empty")
    return Dataset(str(path), lines, ids=range(1, len(lines) + 1))


def read_jsonl(path: Path, column: str | None) -> Dataset:
    """One JSON object a line, its text under ``text`` (or the name given)."""
    texts, ids = [], []
    field = column or "text"
    for number, line in enumerate(_lines(path), start=1):
        if not line.strip():
            continue
        try:
            item = json.loads(line)
            if not isinstance(item[field], str):
                raise TypeError
            texts.append(item[field])
            ids.append(item.get("id", number))
        except (ValueError, KeyError, TypeError, RecursionError):
            raise InputError(f"{path}: line {number} is not a JSON object with a text {field!r}") from None
    if not texts:
        raise InputError(f"{path}: is empty")
    return Dataset(str(path), texts, ids=ids)


def read_labels(path: Path) -> np.ndarray:
    """True labels for evaluation: a .npy file, or one label a line (the last column of a CSV, its header skipped)."""
    try:
        if path.suffix.lower() == ".npy":
            return np.asarray(np.load(path, allow_pickle=False)).ravel()
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = [row[-1] for row in csv.reader(file) if row]
    except (OSError, ValueError, EOFError, csv.Error) as error:
        raise InputError(f"{path}: cannot be read ({error})") from None
    return np.array(rows[1:] if rows and rows[0].lower() in ("label", "labels", "y", "class", "target") else rows)


READERS: dict[str, Callable[[Path, str | None], Dataset]] = {
    ".npy": read_npy,
    ".npz": read_npz,
    ".csv": read_csv,
    ".parquet": read_parquet,
    ".txt": read_txt,
    ".jsonl": read_jsonl,
}


def image_folder(path: Path, size: int = 32) -> Dataset:
    """All images below a folder, scaled to ``size`` (shorter side, then the middle square), as RGB bytes."""
    found = (file for file in path.rglob("*") if file.suffix.lower() in IMAGES and not file.name.startswith("."))
    files = sorted(file for file in found if file.is_file())
    if not files:
        raise InputError(f"{path}: no images in this folder ({', '.join(sorted(IMAGES))})")
    with ThreadPoolExecutor() as pool:
        images = list(pool.map(lambda file: _read_image(file, size), files))
    return Dataset(str(path), np.stack(images), ids=[file.relative_to(path).as_posix() for file in files])


def _read_image(file: Path, size: int) -> np.ndarray:
    try:
        with Image.open(file) as image:
            image.draft("RGB", (2 * size, 2 * size))  # JPEGs are decoded at a fraction of their size
            rgb = ImageOps.exif_transpose(image).convert("RGB")
    except (OSError, UnidentifiedImageError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise InputError(f"{file}: not a readable image ({error})") from None
    side = min(rgb.size)
    left, top = (rgb.width - side) // 2, (rgb.height - side) // 2
    box = (left, top, left + side, top + side)
    return np.asarray(rgb.resize((size, size), Image.Resampling.BICUBIC, box=box))
