"""Tables as data sets: which columns are features, texts, ids and labels."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from lsdc.data.arrays import labelled
from lsdc.data.columns import (
    ID_NAME,
    UNNAMED,
    are_codes,
    are_mostly_words,
    differ,
    have_words,
    whole_numbers,
    why_id,
)
from lsdc.data.matrix import bad_cell, matrix
from lsdc.data.number_formats import as_numbers
from lsdc.data.prepare import Features
from lsdc.data.reading import Columns, Dataset, Reading, Table, listed
from lsdc.errors import InputError, Note, nearest, shown

TEXT = "text"  # a column of texts, if nobody names one
LABELS = ("label", "labels", "y", "class", "target")  # columns for evaluation, never seen by a method
LONGEST_CELL = 200  # characters of a cell that is kept beside the clusters
MANY_ROWS = 100  # in so many rows, whole numbers that all differ are unlikely to be measurements


def as_dataset(table: Table, reading: Reading) -> Dataset:
    """A table of texts or numbers; one column may hold the ids, another the labels for evaluation."""
    table, reading = _matched(table, reading) if reading.matched else (table, reading)
    _check_names(table, reading)
    names = [name for name in table.columns if name not in reading.drop]
    if not table.places:
        raise InputError(f"{table.path}: has no rows")
    label = label_column(table, reading)
    rest = [name for name in names if name != label]
    likely = [name for name in (reading.text_column, TEXT) if name in rest and not reading.columns]
    text = reading.column or next(iter(likely), None)
    others = [name for name in rest if name not in (*reading.columns, text)]
    id_, numbering, notes = _ids(table, others, reading, text)
    rest = [name for name in rest if name not in (id_, *numbering)]
    if text is None and not reading.columns and len(rest) == 1 and _are_plainly_texts(table, rest[0]):
        text = rest[0]
    if text is None and reading.text_column and not reading.columns:
        raise InputError(
            f"{table.path}: no column {reading.text_column!r} (the run was fitted on its texts); it has "
            f"{listed(list(table.columns))}; name the column of texts",
            "column",
        )
    if text is not None:
        if reading.column and as_numbers(table.columns[text]) is not None and not reading.matched:
            raise InputError(f"{table.path}: column {text!r} holds numbers, not texts; use it as a feature", "columns")
        return _dataset(table, _texts(table, text), (text,), id_, label, notes)
    features = reading.columns or tuple(rest)
    if not features:
        raise InputError(f"{table.path}: no columns are left to use as features; it has {listed(list(table.columns))}")
    made = matrix(table, features, reading)
    if not reading.columns:
        notes += _doubts(table, features)
    return _dataset(table, made.X, features, id_, label, [*notes, *made.notes], made)


def _are_plainly_texts(table: Table, name: str) -> bool:
    """Whether the only column left holds texts, though it was not named: words, and not numbers in any notation."""
    values = table.columns[name]
    if not all(value is None or isinstance(value, str) for value in values):
        return False
    return are_mostly_words(values) and have_words(values) and as_numbers(values, table.separator != ",") is None


def _texts(table: Table, name: str) -> list[str]:
    """A column of texts; what is missing is an empty one, and anything that people would not read is refused."""
    values = table.columns[name]
    for place, value in zip(table.places, values, strict=True):
        if not isinstance(value, (str, int, float, np.number)) and value is not None:
            kind = "bytes" if isinstance(value, bytes) else "a list" if isinstance(value, list) else shown(value)
            where = table.where(place, name)
            raise InputError(f"{where} {kind} instead of a text; name another column of texts", "column")
    return ["" if value is None or value != value else str(value) for value in values]


def label_column(table: Table, reading: Reading) -> str | None:
    """The column that is for evaluation, by its name, unless it is the only one or asked for as something else."""
    names = [name for name in table.columns if name not in reading.drop]
    taken = {*reading.columns, reading.column, reading.id_column, *(names if len(names) == 1 else ())}
    spelt = {name.strip().lower(): name for name in reversed(names) if name not in taken}
    return next((spelt[name] for name in LABELS if name in spelt), None)


def _dataset(
    table: Table,
    X: Any,
    features: tuple[str, ...],
    id_: str | None,
    label: str | None,
    notes: list[str],
    made: Features | None = None,
) -> Dataset:
    if label is not None and not _are_labels(table.columns[label]):
        notes, label = [*notes, f"column {listed([label])} holds more than one label for each sample: not used"], None
    used = {*features, id_, label}
    unused = tuple(name for name in table.columns if name not in used)
    names = list(table.columns[id_]) if id_ is not None else None
    y = np.array(table.columns[label]) if label is not None else None
    if label is not None and (blank := _blank(table.columns[label])):
        if len(blank) < len(table.places):
            raise bad_cell(table, label, blank[0])
        notes, y = [*notes, f"column {listed([label])} is empty: there is nothing to compare with"], None
    roles = Columns(features, id_, label, unused, *((made.names, made.prepared) if made else ()))
    known = labelled(table.path, X, y, names)
    beside = {name: words for name in unused if (words := _short(name, table.columns[name])) is not None}
    scales = made.scales if made else ()
    return replace(known, columns=roles, notes=(*table.notes, *notes), scales=scales, beside=beside)


def _short(name: str, values: Any) -> list[str] | None:
    """The cells of a column, to stand beside the clusters; None if they are vectors, long, or an index."""
    if getattr(values, "ndim", 1) > 1 or UNNAMED.fullmatch(name):
        return None
    words = ["" if value is None else str(value) for value in values]
    return words if max(map(len, words)) <= LONGEST_CELL else None


def _are_labels(values: Any) -> bool:
    return getattr(values, "ndim", 1) == 1 and not any(isinstance(value, (list, dict)) for value in values)


def _blank(values: Any) -> list[int]:
    """The rows without a value."""
    return [i for i, value in enumerate(values) if value is None or value != value or str(value).strip() == ""]


def _check_names(table: Table, reading: Reading) -> None:
    """Refuse a reading that names missing columns, or one column for two purposes."""
    if reading.column and reading.columns:
        raise InputError("choose a column of texts or columns of numbers, not both", "column", "columns")
    named = [reading.column, *reading.columns, *reading.drop, None if reading.matched else reading.id_column]
    if missing := [name for name in named if name is not None and name not in table.columns]:
        which = f"no column {missing[0]!r}" if len(missing) == 1 else f"no columns {listed(missing)}"
        if near := nearest(missing[0], table.columns):
            which += f" (did you mean {near!r}?)"
        fitted = reading.columns or [name for name in (reading.column,) if name]
        why = f" (the run was fitted on {listed(fitted)})" if reading.matched and fitted else ""
        raise InputError(f"{table.path}: {which}; it has {listed(list(table.columns))}{why}")
    if reading.id_column is not None and reading.id_column in (*reading.columns, *reading.drop):
        raise InputError(f"the column {reading.id_column!r} cannot be the id and also a feature or dropped")
    if both := [name for name in reading.columns if name in reading.drop]:
        raise InputError(f"the column {both[0]!r} cannot be both a feature and dropped", "columns", "drop")


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
        note = f"the run was fitted on a file without a header: {listed(places)} are used by position"
        return replace(table, notes=(*table.notes, note)), replace(reading, columns=places)
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


def _ids(table: Table, names: list[str], reading: Reading, text: str | None) -> tuple[str | None, list[str], list[str]]:
    """The column that identifies the rows, all that identify or number them, and notes about them."""
    if reading.id_column is not None and reading.id_column in table.columns:
        return reading.id_column, [], []
    reasons = {name: why for name in names if (why := why_id(name, table.columns[name], table.named)) is not None}
    usable = {name: name.lower() == "id" or differ(table.columns[name]) for name in reasons}
    found = sorted(reasons, key=lambda name: (not usable[name], name.lower() != "id", not ID_NAME.fullmatch(name)))
    if text is None and not reading.columns and len(found) == len(names):  # something has to be left to cluster
        found = found[:1] if len(names) > 1 else []
    id_ = found[0] if found and usable[found[0]] else None
    notes: list[str] = []
    for name in found:
        role = "used as the id" if name == id_ else "left out"
        if reasons[name]:
            what = f"column {listed([name])} {reasons[name]}: {role}, not as a feature"
            notes.append(Note(what, "columns", "id_column", "drop"))
    return id_, found, notes


def _doubts(table: Table, features: tuple[str, ...]) -> list[str]:
    """Which features may be names of something and not measurements."""
    columns = table.columns
    tests: dict[str, Callable[[str], bool]] = {
        "whole numbers, no two the same, perhaps ids": lambda name: _may_be_id(columns[name]),
        "named like ids, but with repeated values": lambda name: table.named and _repeats(name, columns[name]),
        "numbers with leading zeros, perhaps codes": lambda name: are_codes(columns[name]),
    }
    found = {what: [name for name in features if test(name)] for what, test in tests.items()}
    return [Note(f"{what}: {listed(names)}", "id_column", "drop") for what, names in found.items() if names]


def _repeats(name: str, values: Any) -> bool:
    """Whether a column of whole numbers is named like an id and identifies more than one row each."""
    whole = whole_numbers(values, floats=True) if ID_NAME.fullmatch(name) else None
    return whole is not None and not differ(whole)


def _may_be_id(values: Any) -> bool:
    """Whether a column looks like numbers of things, such as phones or orders, but is not named like one."""
    whole = whole_numbers(values) if len(values) >= MANY_ROWS else None
    return whole is not None and differ(whole)
