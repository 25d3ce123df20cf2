"""CSV files as tables: finds the separator and the header."""

import csv
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import TextIO

from lsdc.data.charset import encoding
from lsdc.data.columns import is_number
from lsdc.data.number_formats import DECIMAL_COMMA
from lsdc.data.reading import Dataset, Reading, Table
from lsdc.data.tables import as_dataset
from lsdc.data.vectors import with_vectors
from lsdc.errors import InputError, counted

SEPARATORS = ",;\t|"
SAMPLE = 200  # lines that decide the separator
Rows = list[tuple[int, list[str]]]  # a line number and its cells


def read_csv(path: Path, reading: Reading) -> Dataset:
    """A table of numbers, or of texts if it has a column ``text`` (or the column named).

    A column ``id`` names the rows, a column ``label`` or ``y`` is kept for evaluation.
    """
    rows, separator, blank = cells(path)
    if not rows:
        raise InputError(f"{path}: is empty")
    first = rows[0][1]
    header, notes = _is_header(first, separator), list[str]()
    if not header and len(first) > 2 and first == [str(i) for i in range(len(first))]:
        header, notes = True, ["line 1 (0, 1, 2, ...) is read as a header written by pandas, not as a sample"]
    if blank:
        notes.append(
            f"left out, because all their cells are empty: {len(blank):,} row{'s' * (len(blank) > 1)} (line {blank[0]})"
        )
    names = rows.pop(0)[1] if header else [str(i) for i in range(len(first))]
    if twice := [name for name, times in Counter(names).items() if times > 1]:
        raise _named_twice(path, twice[0])
    for number, row in rows:
        if len(row) != len(names):
            raise InputError(f"{path}: line {number} has {counted(len(row), 'column')}, the first has {len(names)}")
    values = zip(*(row for _, row in rows), strict=True) if rows else [() for _ in names]
    columns = dict(zip(names, values, strict=True))
    table = Table(path, columns, [n for n, _ in rows], "line", header, separator, tuple(notes))
    return as_dataset(*with_vectors(table, reading))


def _named_twice(path: Path, name: str) -> InputError:
    if name.strip():
        return InputError(f"{path}: the column {name!r} appears twice; rename or remove one of them")
    return InputError(f"{path}: line 1 has several columns without a name; name them, or remove lines above the header")


def cells(path: Path) -> tuple[Rows, str, list[int]]:
    """The rows of a file, each with its line number, the separator, and the lines whose cells are all empty."""
    csv.field_size_limit(2**30)
    with path.open(newline="", encoding=encoding(path)) as file:
        separator = _separator(list(islice(file, SAMPLE)))
        file.seek(0)
        reader = csv.reader(file, delimiter=separator)
        try:
            rows, blank, before = [], list[int](), 0
            for row in reader:
                if len(row) > 1 and not any(map(str.strip, row)):
                    blank.append(before + 1)
                elif row:
                    rows.append((before + 1, row))
                before = reader.line_num  # a cell may span lines: the row begins after the previous one
        except csv.Error as error:
            raise InputError(f"{path}: not a CSV file ({error})") from None
        if rows and reader.line_num > rows[-1][0] and _is_open(file, rows[-1][0], separator):
            raise InputError(f"{path}: line {rows[-1][0]}: a quotation mark opens a cell there and is never closed")
    return rows, separator, blank


def _is_open(file: TextIO, number: int, separator: str) -> bool:
    """Whether the row that begins in a line ends within quotation marks; it then holds the rest of the file."""
    file.seek(0)
    try:
        list(csv.reader(islice(file, number - 1, None), delimiter=separator, strict=True))
    except csv.Error as error:
        return "unexpected end" in str(error)
    return False


def _separator(lines: list[str]) -> str:
    """The separator that gives all lines equally many cells, mostly numbers; else the most frequent in line 1."""
    best, most = "", (0.0, 0)
    for separator in SEPARATORS:
        try:
            rows = [row for row in csv.reader(lines, delimiter=separator) if row]
        except csv.Error:
            continue
        rows = rows[:-1] if len(lines) == SAMPLE and len(rows) > 1 else rows  # the last row may be incomplete
        widths = {len(row) for row in rows}
        if len(widths) == 1 and widths != {1}:
            everything = [cell for row in rows for cell in row]
            score = sum(_is_numeric(cell, separator) for cell in everything) / len(everything), widths.pop()
            best, most = (separator, score) if score > most else (best, most)
    return best or max(SEPARATORS, key=(lines or [""])[0].count)


def _is_numeric(cell: str, separator: str) -> bool:
    return is_number(cell) or (separator != "," and DECIMAL_COMMA.fullmatch(cell) is not None)


def _is_header(first: list[str], separator: str) -> bool:
    """Whether the first row names the columns: it has words, or is pandas' blank followed by 0, 1, 2, ..."""
    if not all(_is_numeric(cell, separator) or not cell.strip() for cell in first):
        return True
    return len(first) > 1 and first == ["", *(str(i) for i in range(len(first) - 1))]
