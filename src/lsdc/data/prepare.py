"""Columns of a table made comparable: words become 0/1 columns, and columns of different units get one scale."""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from lsdc.data.columns import NO_VALUE, are_mostly_words
from lsdc.data.reading import Prepared, listed
from lsdc.errors import InputError, Note

MOST_KINDS = 20  # a column with more different words holds names or texts, not kinds of something
FEW_ROWS = 10  # fewer than this say little about the scale of a column
APART = 10.0  # how many times larger one spread must be than another to tell that units differ
FLAG = 0.5  # the standard deviation of a 0/1 column with as many zeros as ones
DIGITS = re.compile(r"\d+")


class Features(NamedTuple):
    """The features as one array, what was done to each column, names and scales of X's columns, and notes."""

    X: np.ndarray
    prepared: Prepared
    names: tuple[str, ...]
    scales: tuple[float, ...]
    notes: list[str]


def are_words(values: Sequence[Any]) -> bool:
    """Whether every row has a word."""
    return all(isinstance(value, str) and value.strip().lower() not in NO_VALUE for value in values)


def kinds_of(values: Sequence[Any]) -> tuple[str, ...] | None:
    """The different words of a column, if they are few and repeated; None if it holds something else."""
    if not are_words(values):
        return None
    kinds = sorted({value.strip() for value in values})
    few = len(kinds) <= MOST_KINDS and 2 * len(kinds) <= len(values)
    return tuple(kinds) if few and are_mostly_words(values) else None


def prepare(columns: dict[str, Any], scale: bool | None, known: Prepared | None) -> Features:
    """The columns side by side: arrays of numbers, or words that are kinds; ``known`` is what a run did to each."""
    if known is None:
        known, notes = _found(columns, scale)
    else:
        notes = []
    if known and len(known) != len(columns):
        raise InputError(f"{len(columns)} columns ({listed(list(columns))}), but the run was fitted on {len(known)}")
    blocks, names, scales = [], list[str](), list[float]()
    for (name, values), how in zip(columns.items(), known or [1.0] * len(columns), strict=True):
        if isinstance(how, tuple):
            blocks.append(_indicators(name, values, how, notes))
            names += [f"{name} = {kind}" for kind in how]
            scales += [1.0] * len(how)
        elif isinstance(values, np.ndarray):
            blocks.append(values)
            scales += [how] * (values.shape[1] if values.ndim > 1 else 1)
            names += [name] if values.ndim == 1 else [f"{name} {i}" for i in range(values.shape[1])]
        else:
            raise InputError(f"column {name!r} holds words, but the run was fitted on numbers there")
    X, differ = np.ascontiguousarray(np.column_stack(blocks)), any(scale != 1 for scale in scales)
    return Features(X, known, tuple(names), tuple(scales) if differ else (), notes)


def _indicators(name: str, values: Any, kinds: tuple[str, ...], notes: list[str]) -> np.ndarray:
    """One 0/1 column for each kind: two samples of different kinds are as far apart as two of a standard column."""
    if isinstance(values, np.ndarray):
        raise InputError(f"column {name!r} holds numbers, but the run was fitted on words there ({listed(kinds)})")
    words = np.array([value.strip() for value in values])
    if new := sorted(set(words.tolist()) - set(kinds)):
        rows = int(np.isin(words, new).sum())
        notes.append(
            f"column {name}: {rows:,} rows hold words that the run has not seen ({listed(new)}): 0 in every 0/1 column"
        )
    found: np.ndarray = (words[:, None] == np.array(kinds)).astype(np.float64)
    return found


def _found(columns: dict[str, Any], scale: bool | None) -> tuple[Prepared, list[str]]:
    """What to do to each column, and notes about it; nothing if all columns stay as they are."""
    kinds = {name: tuple(sorted({v.strip() for v in words})) for name, words in columns.items() if _is_words(words)}
    numbers = {name: values for name, values in columns.items() if name not in kinds and values.ndim == 1}
    constant = [name for name, values in numbers.items() if len(values) > 1 and values.min() == values.max()]
    words = {name: of for name, of in kinds.items() if len(of) > 1}
    spreads = {name: float(values.std()) for name, values in numbers.items() if _is_measured(values)}
    flags = len(numbers) > len(spreads) + len(constant)
    few = len(next(iter(columns.values()))) < FEW_ROWS
    wanted = (not few and _are_unlike(spreads, bool(words), flags)) if scale is None else scale
    notes: list[str] = [
        Note(f"column {listed([name])} holds {len(of)} kinds of words: a 0/1 column for each ({listed(of)})", "drop")
        for name, of in words.items()
    ]
    if constant or len(words) < len(kinds):
        same = [*constant, *(name for name in kinds if name not in words)]
        notes.append(f"the same in every row, so they make no difference: {listed(same)}")
    if wanted and spreads:
        each = listed([f"{name} {spread:.3g}" for name, spread in spreads.items()])
        why = "" if scale else ", because their scales differ"
        notes.append(Note(f"columns are divided by their standard deviations{why} ({each})", "scale"))
    if not kinds and not (wanted and spreads):
        return (), notes
    return tuple(kinds.get(name) or (spreads.get(name, 1.0) if wanted else 1.0) for name in columns), notes


def scale_warning(names: Sequence[Any], X: np.ndarray) -> str:
    """A warning about a data frame, whose columns stay as they are, if their scales differ too much."""
    spreads = {str(name): float(values.std()) for name, values in zip(names, X.T, strict=True) if _is_measured(values)}
    if len(X) < FEW_ROWS or len(spreads) < 2 or not _are_unlike(spreads, beside_words=False, beside_flags=False):
        return ""
    most, least = (end(spreads, key=spreads.__getitem__) for end in (max, min))
    return (
        f"columns of X differ in scale ({most} by {spreads[most]:.3g}, {least} by {spreads[least]:.3g}), so the "
        "largest ones decide; divide each by its standard deviation (scikit-learn's StandardScaler)"
    )


def _is_words(values: Any) -> bool:
    return not isinstance(values, np.ndarray)


def _is_measured(values: np.ndarray) -> bool:
    """Whether a column has a scale: 0/1 columns have none, nor has what never changes or is beyond single precision."""
    within = bool((np.abs(values) <= np.finfo(np.float32).max).all())  # what is not, NaN too, is refused later
    return within and bool(values.min() < values.max()) and not np.isin(values, (0, 1)).all()


def _are_unlike(spreads: dict[str, float], beside_words: bool, beside_flags: bool) -> bool:
    """Whether columns have different units: their spreads are far apart, and they are not x1, x2, ... of one vector."""
    if len(spreads) > 1 and len({DIGITS.sub("", name) for name in spreads}) == 1:
        return False
    sizes = [*spreads.values(), *([FLAG] if beside_flags else [])]
    return bool(spreads) and (beside_words or max(sizes) > APART * min(sizes))
