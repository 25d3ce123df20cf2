"""JSONL files: one object per line, with a text, with a vector, or as the row of a table."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from lsdc.data.charset import lines_of
from lsdc.data.reading import Dataset, Reading, listed
from lsdc.data.tables import Table, as_dataset, vectors_first
from lsdc.errors import InputError

TEXT = "text"


def read_jsonl(path: Path, reading: Reading) -> Dataset:
    """Objects with a text under ``text`` (or the name given); without one, their fields are the columns of a table."""
    rows = list(_objects(path))
    if not rows:
        raise InputError(f"{path}: is empty")
    if reading.column or (not reading.columns and TEXT in rows[0][1]):
        return _texts(path, rows, reading.column or TEXT)
    names = dict.fromkeys(name for _, item in rows for name in item)
    columns = {name: _values([item.get(name) for _, item in rows]) for name in names}
    table = Table(path, columns, [number for number, _ in rows])
    return as_dataset(table, vectors_first(path, columns, reading))


def _objects(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Each object with the number of its line; blank lines are skipped."""
    for number, line in enumerate(lines_of(path), start=1):
        if not line.strip():
            continue
        try:
            item = json.loads(line)
        except (ValueError, RecursionError):
            item = None
        if not isinstance(item, dict) or not item:
            raise InputError(f"{path}: line {number} is not a JSON object with fields")
        yield number, item


def _texts(path: Path, rows: list[tuple[int, dict[str, Any]]], field: str) -> Dataset:
    for number, item in rows:
        if not isinstance(item.get(field), str):
            raise InputError(
                f"{path}: line {number} is not a JSON object with a text field {field!r}; it has "
                f"{listed(list(item))}; name the field of texts",
                "column",
            )
    return Dataset(str(path), [item[field] for _, item in rows], ids=[item.get("id", number) for number, item in rows])


def _values(values: list[Any]) -> Any:
    """Lists of as many numbers as a matrix, any other values as they are."""
    if all(isinstance(value, list) and value for value in values) and len({len(value) for value in values}) == 1:
        numbers = all(type(number) in (int, float) for value in values for number in value)
        try:
            return np.array(values, np.float64) if numbers else values
        except OverflowError:
            return values
    return values
