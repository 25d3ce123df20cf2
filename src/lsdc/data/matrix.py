"""The features of a table as one matrix, and what is wrong with a cell that does not fit in."""

from typing import Any

from lsdc.data.columns import NO_VALUE, is_number
from lsdc.data.number_formats import as_numbers, bare, has_comma, has_point
from lsdc.data.prepare import Features, are_words, kinds_of, prepare
from lsdc.data.reading import Reading, Table, listed
from lsdc.errors import InputError, shown

TRANSLATED = {
    "true and false": "true is read as 1, false as 0: {}",
    "yes and no": "yes is read as 1, no as 0: {}",
    "signs": "currency, percent and thousands signs are left out: {}",
}


def matrix(table: Table, features: tuple[str, ...], reading: Reading) -> Features:
    """The features as one array, and notes on how they were read."""
    comma = table.separator != "," and _decimal_commas(table, features)
    notes = ["decimal commas: 1,5 is read as 1.5"] if comma else []
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
    notes += [TRANSLATED[how].format(listed(names)) for how, names in translated.items() if how]
    made = _prepared(table, columns, reading)
    return made._replace(notes=[*notes, *made.notes])


def _were_kinds(values: Any, reading: Reading, place: int) -> bool:
    """Whether a run took a column for kinds of words, and words are what new rows have there."""
    known = reading.prepared or ()
    return place < len(known) and isinstance(known[place], tuple) and are_words(values)


def _prepared(table: Table, columns: dict[str, Any], reading: Reading) -> Features:
    try:
        return prepare(columns, reading.scale, reading.prepared)
    except InputError as error:
        raise error.within(table.path) from None


def _bad_column(table: Table, names: list[str], comma: bool) -> InputError:
    """What is wrong with the first cell that is not a number, and which other columns have such cells."""
    values = table.columns[names[0]]
    empty = [i for i, value in enumerate(values) if _is_missing(value)]
    row = next((i for i, value in enumerate(values) if as_numbers([value], comma) is None), 0)
    if row in empty and len(empty) > 1:
        return bad_cell(table, names[0], row, f", as in {len(empty):,} of {len(values):,} rows")
    return bad_cell(table, names[0], row, f", and the same goes for {listed(names[1:])}" if len(names) > 1 else "")


def _is_missing(value: Any) -> bool:
    return value is None or str(value).strip().lower() in NO_VALUE or bool(value != value)


def bad_cell(table: Table, name: str, row: int, others: str = "") -> InputError:
    """The error for a cell that is empty or not a number; ``others`` are words about more of them."""
    value, where = table.columns[name][row], table.where(table.places[row], name)
    if _is_missing(value):
        what = "" if value is None or not str(value).strip() else f" ({str(value).strip()!r})"
        to_do = "fill it in, remove the row, or leave the column out"
        return InputError(f"{where} no value{what}{others}; {to_do}", "drop")
    if is_number(value):
        to_do = "replace it, remove the row, or leave the column out"
        return InputError(f"{where} {shown(value)} is infinite or too large{others}; {to_do}", "drop")
    to_do = "leave the column out, or use it as the id or as the texts"
    return InputError(f"{where} {shown(value)} is not a number{others}; {to_do}", "drop", "id_column", "column")


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
