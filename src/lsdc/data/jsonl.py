"""JSONL files: one object per line, with a text, with a vector, or as the row of a table."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from lsdc.data.charset import lines_of
from lsdc.data.reading import Dataset, Reading, Table, listed
from lsdc.data.tables import TEXT, as_dataset
from lsdc.data.vectors import with_vectors
from lsdc.errors import InputError


def read_jsonl(path: Path, reading: Reading) -> Dataset:
    """Objects as the rows of a table, with a text under ``text`` (or the name given), a vector, or other fields."""
    rows = list(_objects(path))
    if not rows:
        raise InputError(f"{path}: is empty")
    names, places = dict.fromkeys(name for _, item in rows for name in item), [number for number, _ in rows]
    columns = {name: [item.get(name, number if name == "id" else None) for number, item in rows] for name in names}
    table, reading = with_vectors(Table(path, columns, places), reading)
    if not reading.columns and (reading.column or (TEXT in rows[0][1] and TEXT not in reading.drop)):
        _check_texts(path, rows, reading.column or TEXT)
    dataset = as_dataset(table, reading)
    texts_only = isinstance(dataset.X, list) and dataset.ids is None
    return replace(dataset, ids=places) if texts_only else dataset


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


def _check_texts(path: Path, rows: list[tuple[int, dict[str, Any]]], field: str) -> None:
    """Refuse objects without a text; null is an empty one."""
    for number, item in rows:
        if field not in item or not isinstance(item[field], str | None):
            raise InputError(
                f"{path}: line {number} is not a JSON object with a text field {field!r}; it has "
                f"{listed(list(item))}; name the field of texts",
                "column",
            )
