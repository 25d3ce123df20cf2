"""What a column of a table holds: numbers, texts, or ids."""

import re
from itertools import pairwise
from typing import Any

import numpy as np

ID_NAME = re.compile(r"(?i:(.*[\W_])?(id|idx|index|key|uuid|guid))|.*[a-z0-9]I[dD]")
UNNAMED = re.compile(r"\s*|Unnamed: \d+|__index_level_\d+__")  # what pandas makes of an index
WHOLE = re.compile(r"\s*[+-]?\d{1,18}\s*", re.ASCII)
NO_VALUE = ("", "na", "n/a", "nan", "null", "none", "-", "?")


def why_id(name: str, values: Any, named: bool = True) -> str | None:
    """Why a column is taken as the id ("" if its name is reason enough), or None if it is not."""
    if name.lower() == "id":
        return ""
    if getattr(values, "ndim", 1) > 1:
        return None
    like, unnamed = named and ID_NAME.fullmatch(name), named and UNNAMED.fullmatch(name)
    words = all(isinstance(value, str) for value in values) and are_mostly_words(values)
    why = f"{'is named like an id' if like else 'has no name'} and differs in every row"
    if (like or unnamed) and words and len(set(values)) == len(values):
        return why
    whole = whole_numbers(values)
    if whole is None or len(set(whole)) < len(whole):
        return None
    if len(whole) > 2 and all(b - a == 1 for a, b in pairwise(whole)):
        return "counts the rows"
    return why if like or unnamed else None


def whole_numbers(values: Any) -> list[int] | None:
    """The values, if all are whole numbers; 2.0 is a measurement, not a count."""
    if isinstance(values, np.ndarray):
        return values.tolist() if values.dtype.kind in "iu" else None
    if all(isinstance(value, str) for value in values):
        return [int(value) for value in values] if all(map(WHOLE.fullmatch, values)) else None
    is_whole = all(isinstance(value, int) and not isinstance(value, bool) for value in values)
    return list(values) if is_whole else None


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
