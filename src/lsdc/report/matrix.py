"""Two groupings of the same samples against each other: counts, with columns in the order of the rows they match."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

LARGEST = 24  # rows or columns that a person can read

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Match:
    """The best one-to-one match of rows and columns, and the columns in its order, empty ones left out."""

    column_of: dict[int, int]
    order: list[int]

    @classmethod
    def of(cls, table: Counts) -> "Match":
        """By the Hungarian algorithm; columns without a row come last."""
        rows, columns = linear_sum_assignment(-table)
        column_of = dict(zip(rows.tolist(), columns.tolist(), strict=True))
        order = [column_of[i] for i in range(len(table)) if i in column_of]
        rest = [k for k in range(table.shape[1]) if k not in set(order) and table[:, k].any()]
        return cls(column_of, order + rest)


@dataclass(frozen=True)
class Matrix:
    """A table to be drawn: counts, and the share of each in its row."""

    title: str
    heads: list[str]
    columns: list[str]
    cells: list[list[tuple[int, float, bool]]]  # count, share, whether it is where row and column match


def matrix(title: str, table: Counts, heads: list[str], columns: list[str], match: Match) -> Matrix | None:
    """The table in the order of a match; none where it is too large to be read."""
    if max(table.shape) > LARGEST:
        return None
    shares = table / np.maximum(table.sum(1, keepdims=True), 1)
    cells = [
        [(int(table[i, k]), round(float(shares[i, k]), 4), match.column_of.get(i) == k) for k in match.order]
        for i in range(len(table))
    ]
    return Matrix(title, heads, [columns[k] for k in match.order], cells)
