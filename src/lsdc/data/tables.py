"""Tables: which columns are numbers, texts, ids and labels, and what is wrong with a cell."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from lsdc.data.arrays import labelled
from lsdc.data.columns import ID_NAME, NO_VALUE, are_texts, is_number, why_id
from lsdc.data.dataset import Columns, Dataset, Reading, listed
from lsdc.errors import InputError, shown

LABELS = ("label", "y")  # columns for evaluation, never seen by a method
DECIMAL_COMMA = re.compile(r"\s*[+-]?\d*,\d+([eE][+-]?\d+)?\s*", re.ASCII)


@dataclass(frozen=True)
class Table:
    """Columns by name, and where each row is in the file: a ``unit`` ("line") and its number."""

    path: Path
    columns: dict[str, Any]
    places: Sequence[int]
    unit: str = "line"
    named: bool = True  # whether there is a header; otherwise columns are called 0, 1, ...
    separator: str = ","
    notes: tuple[str, ...] = ()


def as_dataset(table: Table, reading: Reading) -> Dataset:
    """A table of texts or numbers; one column may hold the ids, another the labels for evaluation."""
    table, reading = _matched(table, reading) if reading.matched else (table, reading)
    _check_names(table, reading)
    names = [name for name in table.columns if name not in reading.drop]
    if not table.places:
        raise InputError(f"{table.path}: has no rows")
    taken = {*reading.columns, reading.column, reading.id_column}
    label = next((name for name in LABELS if name in names and name not in taken and len(names) > 1), None)
    rest = [name for name in names if name != label]
    text = reading.column or ("text" if "text" in rest and not reading.columns else None)
    ids, said = _ids(table, [name for name in rest if name not in (*reading.columns, text)], reading, text)
    rest = [name for name in rest if name not in ids]
    if text is None and not reading.columns and len(rest) == 1 and are_texts(table.columns[rest[0]]):
        text = rest[0]
    if text is not None:
        return _dataset(table, [str(value) for value in table.columns[text]], (text,), ids, label, said)
    features = reading.columns or tuple(rest)
    if not features:
        raise InputError(f"{table.path}: no columns are left for the samples; it has {listed(list(table.columns))}")
    X, more = _matrix(table, features)
    return _dataset(table, X, features, ids, label, [*said, *more])


def _dataset(
    table: Table, X: Any, features: tuple[str, ...], ids: list[str], label: str | None, said: list[str]
) -> Dataset:
    id_ = ids[0] if ids else None
    unused = tuple(name for name in table.columns if name not in (*features, id_, label))
    names = list(table.columns[id_]) if id_ is not None else None
    y = None
    if label is not None:
        y = np.array(table.columns[label])
        if y.dtype.kind == "O" and None in table.columns[label]:
            raise _bad_cell(table, label, list(table.columns[label]).index(None))
    roles = Columns(features, id_, label, unused)
    return replace(labelled(table.path, X, y, names), columns=roles, notes=(*table.notes, *said))


def _check_names(table: Table, reading: Reading) -> None:
    """Refuse options that name missing columns, or one column for two purposes."""
    if reading.column and reading.columns:
        raise InputError("--column is for texts and --columns for numbers; give one of them")
    named = [reading.column, *reading.columns, *reading.drop, None if reading.matched else reading.id_column]
    if missing := [name for name in named if name is not None and name not in table.columns]:
        which = f"no column {missing[0]!r}" if len(missing) == 1 else f"no columns {listed(missing)}"
        why = f" (the run was fitted on {listed(reading.columns)})" if reading.matched else ""
        raise InputError(f"{table.path}: {which}; it has {listed(list(table.columns))}{why}")
    if reading.id_column is not None and reading.id_column in (*reading.columns, *reading.drop):
        raise InputError(f"the column {reading.id_column!r} cannot be the id and also a feature or dropped")
    if both := [name for name in reading.columns if name in reading.drop]:
        raise InputError(f"the column {both[0]!r} is in both --columns and --drop")


def _matched(table: Table, reading: Reading) -> tuple[Table, Reading]:
    """Find a run's columns in another table: by name, or by position where only one of the two has names."""
    names, wanted = list(table.columns), reading.columns
    if not wanted or set(wanted) <= set(names):
        return table, reading
    order = f"read in the order {listed(wanted)}"
    if table.named:
        if not all(name.isdigit() and int(name) < len(names) for name in wanted):
            return table, reading
        places = tuple(names[int(name)] for name in wanted)
        said = f"the run was fitted on a file without a header: {listed(places)} are used by position"
        return replace(table, notes=(*table.notes, said)), replace(reading, columns=places)
    rest = (
        names
        if len(names) == len(wanted)
        else [name for name in names if why_id(name, table.columns[name], table.named) is None]
    )
    if len(rest) != len(wanted):
        raise InputError(
            f"{table.path}: has no header and {len(names)} columns, but the run was fitted on {listed(wanted)}"
        )
    new = dict(zip(rest, wanted, strict=True))
    columns = {new.get(name, name): values for name, values in table.columns.items()}
    return replace(table, columns=columns, notes=(*table.notes, f"no header: its columns are {order}")), reading


def _ids(table: Table, names: list[str], reading: Reading, text: str | None) -> tuple[list[str], list[str]]:
    """The columns that identify or number the rows, best one first, and notes about them."""
    if reading.id_column is not None and reading.id_column in table.columns:
        return [reading.id_column], []
    reasons = {name: why for name in names if (why := why_id(name, table.columns[name], table.named)) is not None}
    found = sorted(reasons, key=lambda name: (name.lower() != "id", not ID_NAME.fullmatch(name)))
    if text is None and not reading.columns and len(found) == len(names):  # something has to be left to cluster
        found = found[:1] if len(names) > 1 else []
    said = []
    for name in found:
        role = "used as the id" if name == found[0] else "left out"
        if reasons[name]:
            said.append(
                f"column {listed([name])} {reasons[name]}: {role}, not a feature "
                "(change this with --columns, --id-column or --drop)"
            )
    return found, said


def _matrix(table: Table, features: tuple[str, ...]) -> tuple[np.ndarray, list[str]]:
    """The features as one array, and notes on how they were read."""
    comma = table.separator != "," and _decimal_commas(table, features)
    blocks = [_numbers(table, name, comma) for name in features]
    return np.ascontiguousarray(np.column_stack(blocks)), ["decimal commas: 1,5 is read as 1.5"] if comma else []


def _numbers(table: Table, name: str, comma: bool) -> np.ndarray:
    values = table.columns[name]
    if isinstance(values, np.ndarray) and values.ndim > 1:
        return values
    if comma:
        values = [value.replace(",", ".") for value in values]
    try:
        column = np.array(values, np.float64)
        if column.ndim == 1 and not np.isnan(column).any():
            return column
    except (TypeError, ValueError, OverflowError):
        pass
    wrong = next((i for i, v in enumerate(values) if not is_number(v) or float(v) != float(v)), 0)
    raise _bad_cell(table, name, wrong)


def _bad_cell(table: Table, name: str, row: int) -> InputError:
    value = table.columns[name][row]
    where = f"{table.path}: {table.unit} {table.places[row]}, column {name!r}:"
    if value is None or str(value).strip().lower() in NO_VALUE or value != value:
        what = "" if value is None or not str(value).strip() else f" ({str(value).strip()!r})"
        return InputError(f"{where} no value{what}; fill it in, remove the row, or leave the column out with --drop")
    return InputError(
        f"{where} {shown(value)} is not a number (leave the column out with --drop, or use it "
        "as the id with --id-column or as the texts with --column)"
    )


def _decimal_commas(table: Table, features: tuple[str, ...]) -> bool:
    """Whether numbers are written 1,5; a file with both 1,5 and 1.5 is refused as ambiguous."""
    comma = point = None
    for name in features:
        for place, value in zip(table.places, table.columns[name], strict=True):
            comma = comma or (DECIMAL_COMMA.fullmatch(value) and (place, value))
            point = point or ("." in value and is_number(value) and (place, value))
    if comma and point:
        raise InputError(
            f"{table.path}: {comma[1]!r} in line {comma[0]} has a decimal comma, {point[1]!r} in line {point[0]} "
            "a decimal point; write all numbers one way"
        )
    return bool(comma)
