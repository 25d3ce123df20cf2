"""True labels from a separate file, put into the order of a run's samples."""

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath

import numpy as np

from lsdc.data.arrays import numbers
from lsdc.data.charset import encoding, not_utf8
from lsdc.data.columns import ID_NAME, UNNAMED, is_number
from lsdc.data.reading import listed
from lsdc.data.separated import Rows, cells
from lsdc.data.spreadsheet import text_of
from lsdc.data.tables import LABELS
from lsdc.errors import InputError, counted, reason, shown

NO_LABELS = (".jsonl", ".json", ".parquet", ".npz")  # read as lines of text, they would be labels of nothing
LABEL_NAMES = (*LABELS, "category")


def read_true_labels(path: Path, ids: Sequence[str], id_column: str | None = None) -> tuple[np.ndarray, list[str]]:
    """A label for each of ``ids``, and notes on how they were found.

    A .npy file or a single column lists them in the order of the data, a table with ids in any order.
    """
    if path.suffix.lower() in NO_LABELS:
        raise InputError(
            f"{path}: labels are not read from {path.suffix} files; save them as .csv with the columns id and label"
        )
    try:
        if path.suffix.lower() == ".npy":
            return _counted(path, numbers(path).ravel(), ids), []
        rows, _, _ = cells(path)
    except UnicodeDecodeError:
        raise InputError(not_utf8(path)) from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({reason(error)})") from None
    rows = _even(path, rows)
    if len(rows[0][1]) == 1:
        return _single(path, rows, ids)
    return _from_table(path, rows, ids, id_column)


def _counted(path: Path, y: np.ndarray, ids: Sequence[str], hint: str = "") -> np.ndarray:
    if len(y) != len(ids):
        raise InputError(f"{path}: {len(y)} labels, but the run has {len(ids)} samples{hint}")
    return y


def _even(path: Path, rows: Rows) -> Rows:
    """Rows of equal width; each line of a .txt file is one label, whatever it contains."""
    if not rows:
        raise InputError(f"{path}: is empty")
    wrong = next(((number, row) for number, row in rows if len(row) != len(rows[0][1])), None)
    if wrong and path.suffix.lower() == ".txt":
        lines = path.read_text(encoding=encoding(path)).split("\n")
        return [(number, [line.rstrip("\r")]) for number, line in enumerate(lines, start=1) if line.strip()]
    if wrong:
        raise InputError(
            f"{path}: line {wrong[0]} has {counted(len(wrong[1]), 'column')}, the first has {len(rows[0][1])}"
        )
    return rows


def _single(path: Path, rows: Rows, ids: Sequence[str]) -> tuple[np.ndarray, list[str]]:
    """One label per line; an extra first line is a header if it differs from all labels."""
    first, *others = (row[0] for _, row in rows)
    if first.strip().lower() in LABEL_NAMES:
        return _counted(path, np.array(others), ids), []
    if len(others) != len(ids):
        return _counted(path, np.array([first, *others]), ids), []
    if first in others or (is_number(first) and all(map(is_number, others))):
        hint = f"; line 1 ({shown(first)}) looks like a label, not a header"
        return _counted(path, np.array([first, *others]), ids, hint), []
    return np.array(others), [f"{path}: line 1 ({shown(first)}) is read as the header, not as a label"]


def _from_table(path: Path, rows: Rows, ids: Sequence[str], id_column: str | None) -> tuple[np.ndarray, list[str]]:
    """Labels by their ids, if a column has them."""
    first = rows[0][1]
    likely = any(name.strip().lower() in LABEL_NAMES or _is_id(name, id_column) for name in first)
    header = likely or len(rows) == len(ids) + 1
    rows = rows[1:] if header else rows
    columns = list(zip(*(row for _, row in rows), strict=True)) if rows else [()] * len(first)
    names = first if header else [f"column {i + 1}" for i in range(len(first))]
    named = [i for i, name in enumerate(names) if name.strip().lower() in LABEL_NAMES]
    if not named and len(names) > 2:
        raise InputError(f"{path}: which column has the labels? name it 'label'; the file has {listed(names)}")
    others = [i for i in range(len(names)) if i not in named[:1]]
    key = _key([names[i] for i in others], [columns[i] for i in others], ids, id_column)
    if key is None:
        label = named[0] if named else len(names) - 1
        note = f"{path}: no id column; {names[label]!r} is read in the order of the data"
        return _counted(path, np.array(columns[label]), ids), [note]
    label = named[0] if named else next(i for i in others if i != others[key])
    joined = _joined(path, [number for number, _ in rows], columns[others[key]], columns[label], ids)
    return joined, [f"{path}: labels in {names[label]!r}, matched by the ids in {listed([names[others[key]]])}"]


def _is_id(name: str, id_column: str | None) -> bool:
    return name == id_column or bool(ID_NAME.fullmatch(name) or UNNAMED.fullmatch(name))


def _key(
    names: Sequence[str], columns: Sequence[Sequence[str]], ids: Sequence[str], id_column: str | None
) -> int | None:
    """The id column: named as in the run or ``id``, holding exactly these ids, or named like an id."""
    wanted = set(ids)
    tests: tuple[Callable[[int], bool], ...] = (
        lambda i: names[i] == id_column,
        lambda i: names[i].strip().lower() == "id",
        lambda i: set(map(text_of, columns[i])) == wanted,
        lambda i: _is_id(names[i], id_column),
    )
    return next((i for test in tests for i in range(len(names)) if test(i)), None)


def _joined(
    path: Path, places: Sequence[int], keys: Sequence[str], labels: Sequence[str], ids: Sequence[str]
) -> np.ndarray:
    """The label of each id; every id must have exactly one, with none left over."""
    keys = [text_of(key) for key in keys]
    if twice := [name for name, times in Counter(ids).items() if times > 1]:
        raise InputError(
            f"{path}: the run has several samples with the id {shown(twice[0])}, so labels cannot be matched by id; "
            "give a file of labels only, one per line in the order of the data"
        )
    if again := [key for key, times in Counter(keys).items() if times > 1]:
        both = [str(place) for place, key in zip(places, keys, strict=True) if key == again[0]]
        raise InputError(f"{path}: the id {shown(again[0])} appears twice, in lines {' and '.join(both[:2])}")
    found = dict(zip(keys, labels, strict=True))
    missing, known = [name for name in ids if name not in found], set(ids)
    surplus = [key for key in keys if key not in known]
    wrong = [f"samples of the run without a label: {len(missing):,} (first: {shown(missing[0])})"] if missing else []
    wrong += [f"ids that are not in the run: {len(surplus):,} (first: {shown(surplus[0])})"] if surplus else []
    if wrong:
        raise InputError(f"{path}: {', '.join(wrong)}")
    return np.array([found[name] for name in ids])


def folders_of(ids: Sequence[str], where: str) -> np.ndarray:
    """The label of each photo: the sub-folder it is in, the outermost one where they are nested."""
    parts = [PurePosixPath(name).parts for name in ids]
    outside = [name for name, folders in zip(ids, parts, strict=True) if len(folders) < 2]
    if outside:
        raise InputError(
            f"{where}: {len(outside):,} of {len(ids):,} samples are not in a sub-folder (first: {shown(outside[0])}), "
            "so folders cannot serve as labels"
        )
    return np.array([folders[0] for folders in parts])
