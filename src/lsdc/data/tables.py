"""Tables: which columns are numbers, texts, ids and labels, and what is wrong with a cell."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from lsdc.data.arrays import labelled
from lsdc.data.columns import (
    ID_NAME,
    NO_VALUE,
    UNNAMED,
    are_codes,
    are_mostly_words,
    differ,
    have_words,
    is_number,
    whole_numbers,
    why_id,
)
from lsdc.data.number_formats import as_numbers, bare, has_comma, has_point
from lsdc.data.prepare import Made, are_words, kinds_of, prepare
from lsdc.data.reading import Columns, Dataset, Reading, listed
from lsdc.errors import InputError, Note, shown

TEXT = "text"  # a column of texts, if nobody names one
LABELS = ("label", "labels", "y", "class", "target")  # columns for evaluation, never seen by a method
SHORT = 200  # characters of a cell that is kept beside the clusters
MANY_ROWS = 100  # in so many rows, whole numbers that all differ are unlikely to be measurements
TRANSLATED = {
    "true and false": "true is read as 1, false as 0: {}",
    "yes and no": "yes is read as 1, no as 0: {}",
    "signs": "currency, percent and thousands signs are left out: {}",
}


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
    label = label_column(table, reading)
    rest = [name for name in names if name != label]
    text = reading.column or (TEXT if TEXT in rest and not reading.columns else None)
    others = [name for name in rest if name not in (*reading.columns, text)]
    id_, numbering, said = _ids(table, others, reading, text)
    rest = [name for name in rest if name not in (id_, *numbering)]
    if text is None and not reading.columns and len(rest) == 1 and _are_plainly_texts(table, rest[0]):
        text = rest[0]
    if text is not None:
        if reading.column and as_numbers(table.columns[text]) is not None and not reading.matched:
            raise InputError(f"{table.path}: column {text!r} holds numbers, not texts; use it as a feature", "columns")
        return _dataset(table, _texts(table, text), (text,), id_, label, said)
    features = reading.columns or tuple(rest)
    if not features:
        raise InputError(f"{table.path}: no columns are left for the samples; it has {listed(list(table.columns))}")
    made = _matrix(table, features, reading)
    if not reading.columns:
        said += _doubts(table, features)
    return _dataset(table, made.X, features, id_, label, [*said, *made.said], made)


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
            where = f"{table.path}: {table.unit} {place}, column {name!r}:"
            kind = "bytes" if isinstance(value, bytes) else "a list" if isinstance(value, list) else shown(value)
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
    said: list[str],
    made: Made | None = None,
) -> Dataset:
    if label is not None and not _are_labels(table.columns[label]):
        said, label = [*said, f"column {listed([label])} holds more than one label for each sample: not used"], None
    used = {*features, id_, label}
    unused = tuple(name for name in table.columns if name not in used)
    names = list(table.columns[id_]) if id_ is not None else None
    y = np.array(table.columns[label]) if label is not None else None
    if label is not None and (blank := _blank(table.columns[label])):
        if len(blank) < len(table.places):
            raise _bad_cell(table, label, blank[0])
        said, y = [*said, f"column {listed([label])} is empty: there is nothing to compare with"], None
    roles = Columns(features, id_, label, unused, *((made.names, made.prepared) if made else ()))
    known = labelled(table.path, X, y, names)
    beside = {name: words for name in unused if (words := _short(name, table.columns[name])) is not None}
    scales = made.scales if made else ()
    return replace(known, columns=roles, notes=(*table.notes, *said), scales=scales, beside=beside)


def _short(name: str, values: Any) -> list[str] | None:
    """The cells of a column, to stand beside the clusters; None if they are vectors, long, or an index."""
    if getattr(values, "ndim", 1) > 1 or UNNAMED.fullmatch(name):
        return None
    words = ["" if value is None else str(value) for value in values]
    return words if max(map(len, words)) <= SHORT else None


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
        why = f" (the run was fitted on {listed(reading.columns)})" if reading.matched else ""
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
    said: list[str] = []
    for name in found:
        role = "used as the id" if name == id_ else "left out"
        if reasons[name]:
            what = f"column {listed([name])} {reasons[name]}: {role}, not a feature"
            said.append(Note(what, "columns", "id_column", "drop"))
    return id_, found, said


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


def _matrix(table: Table, features: tuple[str, ...], reading: Reading) -> Made:
    """The features as one array, and notes on how they were read."""
    comma = table.separator != "," and _decimal_commas(table, features)
    said = ["decimal commas: 1,5 is read as 1.5"] if comma else []
    columns, translated, wrong = dict[str, Any](), dict[str, list[str]](), list[str]()
    for place, name in enumerate(features):
        values = table.columns[name]
        if getattr(values, "ndim", 1) > 1 or _were_kinds(values, reading, place):
            columns[name] = values
        elif (found := as_numbers(values, comma)) is not None:
            columns[name] = found[0]
            translated.setdefault(found[1], []).append(name)
        elif reading.prepared is None and kinds_of(values) is not None:
            columns[name] = values
        else:
            wrong.append(name)
    if wrong:
        raise _bad_column(table, wrong, comma)
    said += [TRANSLATED[how].format(listed(names)) for how, names in translated.items() if how]
    made = _prepared(table, columns, reading)
    return made._replace(said=[*said, *made.said])


def _were_kinds(values: Any, reading: Reading, place: int) -> bool:
    """Whether a run took a column for kinds of words, and words are what new rows have there."""
    known = reading.prepared or ()
    return place < len(known) and isinstance(known[place], tuple) and are_words(values)


def _prepared(table: Table, columns: dict[str, Any], reading: Reading) -> Made:
    try:
        return prepare(columns, reading.scale, reading.prepared)
    except InputError as error:
        raise error.within(table.path) from None


def _bad_column(table: Table, names: list[str], comma: bool) -> InputError:
    """What is wrong with the first cell that is not a number, and which other columns have such cells."""
    values = table.columns[names[0]]
    empty = [
        i for i, value in enumerate(values) if value is None or str(value).strip().lower() in NO_VALUE or value != value
    ]
    row = next((i for i, value in enumerate(values) if as_numbers([value], comma) is None), 0)
    if row in empty and len(empty) > 1:
        return _bad_cell(table, names[0], row, f", as in {len(empty):,} of {len(values):,} rows")
    return _bad_cell(table, names[0], row, f", and the same goes for {listed(names[1:])}" if len(names) > 1 else "")


def _bad_cell(table: Table, name: str, row: int, others: str = "") -> InputError:
    value = table.columns[name][row]
    where = f"{table.path}: {table.unit} {table.places[row]}, column {name!r}:"
    if value is None or str(value).strip().lower() in NO_VALUE or value != value:
        what = "" if value is None or not str(value).strip() else f" ({str(value).strip()!r})"
        to_do = "fill it in, remove the row, or leave the column out"
        return InputError(f"{where} no value{what}{others}; {to_do}", "drop")
    to_do = "leave the column out, or use it as the id or as the texts"
    what = "is infinite or too large" if is_number(value) else "is not a number"
    return InputError(f"{where} {shown(value)} {what}{others}; {to_do}", "drop", "id_column", "column")


def _decimal_commas(table: Table, features: tuple[str, ...]) -> bool:
    """Whether numbers are written 1,5; a file with both 1,5 and 1.5 is refused as ambiguous."""
    comma = point = None
    for name in features:
        for place, value in zip(table.places, table.columns[name], strict=True):
            amount = bare(value)
            comma = comma or (has_comma(amount) and (place, value))
            point = point or (has_point(amount) and (place, value))
    if comma and point:
        raise InputError(
            f"{table.path}: {comma[1]!r} in line {comma[0]} has a decimal comma, {point[1]!r} in line {point[0]} "
            "a decimal point; write all numbers one way"
        )
    return bool(comma)
