"""People's own files as data sets: arrays, tables of numbers, texts, and folders of images."""

import csv
import difflib
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from lsdc.data.arrays import labelled, numbers, read_npy, read_npz
from lsdc.data.datasets import DATASETS, Dataset, load
from lsdc.data.images import image_folder
from lsdc.errors import InputError, reason

LABELS = ("label", "y")  # columns that are for evaluation and never seen by a method


def open_data(name: str, root: str | Path = "", *, image_size: int = 32, column: str | None = None) -> Dataset:
    """A built-in data set by name, else a file or folder by path."""
    if name in DATASETS:
        return load(name, root)
    path = Path(name)
    try:
        is_folder, exists, is_file = path.is_dir(), path.exists(), path.is_file()
    except (OSError, ValueError) as error:
        raise InputError(f"{name[:60]}: not a path ({error})") from None
    if is_folder:
        return image_folder(path, image_size)
    if not exists:
        near = difflib.get_close_matches(name, DATASETS, n=1, cutoff=0.6)
        hint = f"; did you mean the data set {near[0]!r}?" if near else f" (built in: {', '.join(DATASETS)})"
        raise InputError(f"{name}: no such file, folder or built-in data set{hint}")
    if not is_file:
        raise InputError(f"{name}: not a plain file")
    if path.suffix.lower() not in READERS:
        raise InputError(
            f"{name}: cannot read {path.suffix or 'a file without ending'}; "
            f"known are {', '.join(READERS)} and folders of images"
        )
    try:
        return READERS[path.suffix.lower()](path, column)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{name}: cannot be read ({reason(error)})") from None


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
    if twice := [name for name, times in Counter(names).items() if times > 1]:
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
        return labelled(path, [str(value) for value in columns[text]], known, ids)
    try:
        X = np.array(list(rest.values()), np.float64).T
    except (TypeError, ValueError):
        raise _not_a_number(path, rest, first_line) from None
    return labelled(path, np.ascontiguousarray(X), known, ids)


def _not_a_number(path: Path, columns: dict[str, Any], first_line: int) -> InputError:
    cells = ((i, name, value) for name, values in columns.items() for i, value in enumerate(values))
    i, name, value = next((cell for cell in cells if not _is_number(cell[2])), (0, next(iter(columns)), "this row"))
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
            return numbers(path).ravel()
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = [row[-1] for row in csv.reader(file) if row]
    except InputError:
        raise
    except (OSError, ValueError, csv.Error) as error:
        raise InputError(f"{path}: cannot be read ({reason(error)})") from None
    return np.array(rows[1:] if rows and rows[0].lower() in ("label", "labels", "y", "class", "target") else rows)


READERS: dict[str, Callable[[Path, str | None], Dataset]] = {
    ".npy": read_npy,
    ".npz": read_npz,
    ".csv": read_csv,
    ".parquet": read_parquet,
    ".txt": read_txt,
    ".jsonl": read_jsonl,
}
