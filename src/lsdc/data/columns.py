"""What a column of a table holds: numbers, texts, or ids."""

import re
from itertools import pairwise
from typing import Any

import numpy as np

ID_NAME = re.compile(r"(?i:(.*[\W_])?(id|idx|index|key|uuid|guid))|.*[a-z0-9]I[dD]")
UNNAMED = re.compile(r"\s*|Unnamed: \d+|__index_level_\d+__")  # what pandas makes of an index
WHOLE = re.compile(r"\s*[+-]?\d{1,40}\s*", re.ASCII)
CODE = re.compile(r"\s*0\d+\s*", re.ASCII)
EXACT = 2**53  # whole numbers beyond this are not exact in double precision
MANY_STEPS = 10  # so many rows do not rise by the same step by chance
NO_VALUE = ("", "na", "n/a", "nan", "null", "none", "-", "?")


def why_id(name: str, values: Any, named: bool = True) -> str | None:
    """Why a column is taken as an id ("" if its name is reason enough), or None if it is not."""
    if name.lower() == "id":
        return ""
    if getattr(values, "ndim", 1) > 1:
        return None
    like, unnamed = named and ID_NAME.fullmatch(name), named and UNNAMED.fullmatch(name)
    words = all(isinstance(value, str) for value in values) and are_mostly_words(values)
    why = f"{'is named like an id' if like else 'has no name'} and has a different value in every row"
    if (like or unnamed) and words and len(set(values)) == len(values):
        return why
    whole = whole_numbers(values, floats=bool(like))
    if not whole:
        return None
    if not differ(whole):
        return "has no name and holds whole numbers, like an index" if unnamed else None
    if len(whole) > 2 and (step := _step(whole)):
        return "counts the rows" if step == 1 else f"counts the rows in steps of {step}"
    if like or unnamed:
        return why
    return "has a different number in every row, too long for measurements" if max(map(abs, whole)) > EXACT else None


def id_warning(frame: Any) -> str:
    """A warning about columns of a data frame that identify or number its rows, and are features all the same."""
    values = {str(name): frame[name] for name in frame.columns if frame.columns.is_unique}
    whole = {name: column.to_numpy() for name, column in values.items() if getattr(column.dtype, "kind", "") in "iuf"}
    if not (ids := [name for name, column in whole.items() if why_id(name, column) is not None]):
        return ""
    return f"columns of X that identify or number the rows are used as features: {', '.join(ids)}; drop them"


def _step(whole: list[int]) -> int:
    """By how much each value is more than the one before, if it is always the same and no accident; else 0."""
    steps = {b - a for a, b in pairwise(whole)}
    return steps.pop() if steps == {1} or (len(steps) == 1 and len(whole) >= MANY_STEPS) else 0


def differ(values: Any) -> bool:
    """Whether no two values are the same, so that they can identify the rows."""
    return len(set(values)) == len(values)


def are_codes(values: Any) -> bool:
    """Whether whole numbers are written with leading zeros, as postcodes are."""
    strings = not isinstance(values, np.ndarray) and all(isinstance(value, str) for value in values)
    return strings and whole_numbers(values) is not None and any(map(CODE.fullmatch, values))


def whole_numbers(values: Any, floats: bool = False) -> list[int] | None:
    """The values, if all are whole numbers; 2.0 is a measurement and not a count, unless ``floats`` are wanted."""
    if floats and (plain := _plain(values)) is not None:
        return plain
    if isinstance(values, np.ndarray):
        return values.tolist() if values.dtype.kind in "iu" else None
    if all(isinstance(value, str) for value in values):
        return [int(value) for value in values] if all(map(WHOLE.fullmatch, values)) else None
    is_whole = all(isinstance(value, int) and not isinstance(value, bool) for value in values)
    return list(values) if is_whole else None


def _plain(values: Any) -> list[int] | None:
    """Whole numbers that are written as floats, as pandas does once a value was missing."""
    try:
        column = np.array(values, np.float64)
    except (TypeError, ValueError, OverflowError):
        return None
    exact = column.ndim == 1 and bool((np.abs(column) <= EXACT).all()) and bool((column % 1 == 0).all())
    return [int(value) for value in column.tolist()] if exact else None


def are_mostly_words(values: Any) -> bool:
    """Whether most values are not numbers: a single blank among numbers is a mistake, not a text."""
    if isinstance(values, np.ndarray):
        return False
    there = [value for value in values if str(value).strip().lower() not in NO_VALUE and value is not None]
    return 2 * sum(is_number(value) or is_number(str(value).replace(",", ".")) for value in there) < len(there)


def have_words(values: Any) -> bool:
    """Whether most values have a word in them, and not only numbers and signs, as dates and telephone numbers do."""
    wordy = sum(any(_is_word(part) for part in str(value).split()) for value in values)
    return 2 * wordy > len(values)


def _is_word(text: str) -> bool:
    return any(map(str.isalpha, text)) and not is_number(text)


def is_number(text: Any) -> bool:
    """Whether a cell is a number (NaN counts as one; whether it is allowed is checked elsewhere)."""
    try:
        float(text)
    except (TypeError, ValueError, OverflowError):
        return False
    return True
