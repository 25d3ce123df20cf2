"""Numbers as people and spreadsheets write them: $1,234.50, 12 %, 1.234,50 EUR, true, no."""

import math
import re
import unicodedata
from collections.abc import Sequence
from typing import Any

import numpy as np

from lsdc.data.columns import is_number

TRUTH = ({"false": 0.0, "true": 1.0}, {"no": 0.0, "yes": 1.0})
CODES = ("EUR", "USD", "GBP", "CHF", "JPY", "CNY", "INR")
DECIMAL_COMMA = re.compile(r"\s*[+-]?\d*,\d+([eE][+-]?\d+)?\s*", re.ASCII)
POINT = re.compile(r"([+-]?[1-9]\d{0,2}(?:[,\s']\d{3})+)(\.\d+)?", re.ASCII)
COMMA = re.compile(r"([+-]?[1-9]\d{0,2}(?:[.\s']\d{3})+)(,\d+)?", re.ASCII)


def as_numbers(values: Sequence[Any], comma: bool = False) -> tuple[np.ndarray, str] | None:
    """A column as numbers, and what had to be left out or translated for it; None if it does not hold numbers."""
    try:
        plain = [value.replace(",", ".") for value in values] if comma else values
        column = np.array(plain, np.float64)
        return (column, "") if column.ndim == 1 and np.isfinite(column).all() else None
    except (TypeError, ValueError, OverflowError):
        pass
    if not all(isinstance(value, str) for value in values):
        return None
    words = {value.strip().lower() for value in values}
    for truth in TRUTH:
        if words <= truth.keys():
            return np.array([truth[value.strip().lower()] for value in values]), " and ".join(
                sorted(truth, reverse=True)
            )
    found = [_amount(value, comma) for value in values]
    return None if None in found else (np.array(found, np.float64), "signs")


def bare(text: str) -> str:
    """An amount without its currency or percent sign."""
    text = "".join(" " if letter.isspace() else letter for letter in text).replace("\u2212", "-").strip()
    for code in CODES:
        text = text.removesuffix(code).removeprefix(code).strip()
    sign = "-" if text.startswith("-") else ""
    text = text.removeprefix("-").strip()
    if text and unicodedata.category(text[0]) == "Sc":
        text = text[1:].strip()
    elif text and (text[-1] == "%" or unicodedata.category(text[-1]) == "Sc"):
        text = text[:-1].strip()
    return sign + text


def has_comma(text: str) -> bool:
    """Whether an amount is written with a decimal comma: 1,5 or 1.234,50."""
    grouped = COMMA.fullmatch(text)
    return bool(DECIMAL_COMMA.fullmatch(text) or (grouped and grouped[2]))


def has_point(text: str) -> bool:
    """Whether an amount is written with a decimal point: 1.5 or 1,234.50."""
    grouped = POINT.fullmatch(text)
    return ("." in text and is_number(text)) or bool(grouped and grouped[2])


def _amount(text: str, comma: bool) -> float | None:
    """The number of an amount: without its sign, and what sets its thousands apart."""
    text = bare(text)
    if grouped := (COMMA if comma else POINT).fullmatch(text):
        text = re.sub(r"[^\d+-]", "", grouped[1]) + (grouped[2] or "")
    try:
        value = float(text.replace(",", ".") if comma else text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
