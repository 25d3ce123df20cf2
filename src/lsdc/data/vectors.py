"""Columns of vectors: lists of numbers, as they are or as text, such as ``[0.1, 0.2]`` in a CSV file."""

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np

from lsdc.data.reading import Reading, Table, listed
from lsdc.data.tables import TEXT, label_column
from lsdc.errors import InputError, Note

FIRST = 20  # values that tell what a column holds
LEAST_BESIDE_TEXTS = 16  # numbers: shorter lists beside texts are positions or tags, unless their name says otherwise
NAMED = ("emb", "vec", "feat")


def with_vectors(table: Table, reading: Reading) -> tuple[Table, Reading]:
    """Lists of numbers as matrices; one such column is taken as the features, unless something else is asked for."""
    wanted = [name for name in (*reading.columns, reading.column) if name is not None]
    others = {*reading.drop, label_column(table, reading)}
    asked = wanted or [name for name in table.columns if name not in others]
    columns = {
        name: _matrix(table, name) if name in asked and _are_lists(values) else values
        for name, values in table.columns.items()
    }
    table = replace(table, columns=columns)
    has_texts = TEXT in columns and TEXT not in reading.drop
    matrices = [name for name, values in columns.items() if getattr(values, "ndim", 1) == 2 and name not in others]
    vectors = [name for name in matrices if not has_texts or _are_embeddings(name, columns[name])]
    if not vectors or reading.columns or reading.column:
        return table, reading
    if len(vectors) > 1:
        raise InputError(f"{table.path}: {listed(vectors)} all hold vectors; choose one", "columns")
    if has_texts:
        note = Note(f"the vectors in {listed(vectors)} are clustered, not the texts in {TEXT}", "column")
        table = replace(table, notes=(*table.notes, note))
    return table, replace(reading, columns=(vectors[0],))


def _are_embeddings(name: str, values: Any) -> bool:
    """Whether vectors beside texts stand for these, and are not positions or tags."""
    return values.shape[1] >= LEAST_BESIDE_TEXTS or any(part in name.lower() for part in NAMED)


def _are_lists(values: Any) -> bool:
    """Whether a column holds lists of numbers, judging by most of its first values."""
    if isinstance(values, np.ndarray):
        return False
    first = values[:FIRST]
    return 2 * sum(_numbers(value) is not None for value in first) > len(first)


def _numbers(value: Any) -> list[float] | None:
    """The numbers of a list, or of its text as Python and NumPy write it; None for anything else."""
    if isinstance(value, str):
        text = value.strip()
        if not (text.startswith("[") and text.endswith("]")):
            return None
        value = text[1:-1].replace(",", " ").replace(" ... ", " ").split()
    try:
        return [float(number) for number in value] if isinstance(value, list) and value else None
    except (TypeError, ValueError, OverflowError):
        return None


def _matrix(table: Table, name: str) -> Any:
    """The lists of a column as the rows of a matrix; as they are, if they have no usual length."""
    values = table.columns[name]
    rows = [_numbers(value) for value in values]
    n, times = Counter(len(row) for row in rows if row).most_common(1)[0]
    if 2 * times <= len(rows):
        return values
    wrong = next((i for i, row in enumerate(rows) if row is None or len(row) != n or _is_cut(values[i])), None)
    if wrong is None:
        return np.array(rows, np.float64)
    where, row = table.where(table.places[wrong], name), rows[wrong]
    if _is_cut(values[wrong]):
        raise InputError(f"{where} the list was shortened with '...' when it was written; save the vectors as .npy")
    found = "no complete list of numbers" if row is None else f"a list of {len(row)} numbers"
    raise InputError(f"{where} {found}, where others have {n}; correct it, or leave the column out", "drop")


def _is_cut(value: Any) -> bool:
    """Whether NumPy left out the middle of a vector, as it does with more than 1,000 numbers."""
    return isinstance(value, str) and " ... " in value
