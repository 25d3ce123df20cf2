"""Your own files as data sets: arrays, tables, texts, and folders of images."""

import os
import re
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

from lsdc.data.arrays import read_npy, read_npz
from lsdc.data.cache import Watch, quiet
from lsdc.data.charset import lines_of, not_utf8
from lsdc.data.columns import is_number
from lsdc.data.datasets import DATASETS, Dataset, load
from lsdc.data.encode import encoded
from lsdc.data.images import IMAGES, Photos, decoded, folder_of_photos
from lsdc.data.jsonl import read_jsonl
from lsdc.data.parquet import read_parquet
from lsdc.data.reading import Reading
from lsdc.data.separated import read_csv
from lsdc.errors import InputError, nearest, reason

TABLES = (".csv", ".tsv", ".parquet", ".jsonl")
OF_TABLES = ("column", "columns", "drop", "id_column", "scale")  # what only tables can be asked for
LISTED = 10_000  # files of a folder that a wrong name is compared with

SEPARATED = re.compile(r"[\s,;|]+")


def open_data(name: str, root: str | Path = "", watch: Watch = quiet, **how: Any) -> Dataset:
    """A built-in data set by name, else a file or folder by path; ``how`` are the fields of ``Reading``."""
    reading = Reading(**how)
    _check_kind(name, reading)
    dataset = _read(name, root, reading, watch)
    if reading.encoder is not None or reading.text_encoder is not None:
        return encoded(dataset, reading, watch)
    return decoded(dataset, reading.image_size, watch) if isinstance(dataset.X, Photos) else dataset


def _read(name: str, root: str | Path, reading: Reading, watch: Watch) -> Dataset:
    if name in DATASETS:
        return load(name, root, watch)
    path = Path(name)
    try:
        is_folder, exists, is_file = path.is_dir(), path.exists(), path.is_file()
    except (OSError, ValueError) as error:
        raise InputError(f"{name[:60]}: not a path ({error})") from None
    if is_folder or (is_file and path.suffix.lower() in IMAGES):
        return folder_of_photos(path, reading.image_range, watch)
    if not exists:
        raise InputError(f"{name}: no such file, folder or built-in data set{_like(path)}")
    if not is_file:
        raise InputError(f"{name}: not a plain file")
    if path.suffix.lower() not in READERS:
        raise InputError(
            f"{name}: cannot read {path.suffix or 'a file without an extension'}; "
            f"lsdc reads {', '.join(READERS)}, images and folders of images"
        )
    try:
        return READERS[path.suffix.lower()](path, reading)
    except UnicodeDecodeError:
        raise InputError(not_utf8(path)) from None
    except OSError as error:
        raise InputError(f"{name}: cannot be read ({reason(error)})") from None


def _like(path: Path) -> str:
    """What a path that does not exist may have been meant to be: a data set, or what lies where it points."""
    if near := nearest(str(path), DATASETS, cutoff=0.6):
        return f"; did you mean the data set {near!r}?"
    try:
        beside = [entry.name for entry in islice(os.scandir(path.parent), LISTED)]
    except OSError:
        return "" if path.parent.is_dir() else f"; there is no folder {str(path.parent)!r}"
    if near := nearest(path.name, beside, cutoff=0.6):
        return f"; did you mean {str(path.parent / near)!r}?"
    return "" if path.suffix or len(path.parts) > 1 else f" (built in: {', '.join(DATASETS)})"


def _check_kind(name: str, reading: Reading) -> None:
    """Refuse what does not apply to this kind of data; what is stored in a run may meet another kind."""
    if reading.encoder is not None and reading.text_encoder is not None:
        raise InputError("choose an encoder for images or one for texts, not both", "encoder", "text_encoder")
    ending = Path(name).suffix.lower()
    if reading.matched:
        return
    of_tables = [field for field in OF_TABLES if getattr(reading, field) not in (None, ())]
    if of_tables and ending not in TABLES:
        raise InputError(f"{name}: not a table ({', '.join(TABLES)}), so it has no columns to choose", *of_tables)
    if reading.array is not None and ending != ".npz":
        raise InputError(f"{name}: not a .npz file, so it has no arrays to choose from", "array")


def read_txt(path: Path, reading: Reading) -> Dataset:
    """One text per line."""
    lines = lines_of(path)
    if not any(line.strip() for line in lines):
        raise InputError(f"{path}: is empty")
    if not reading.matched and all(is_number(part) for line in lines for part in SEPARATED.split(line) if part):
        raise InputError(f"{path}: holds numbers, not texts; save it as .csv or .npy to have them read as numbers")
    return Dataset(str(path), lines, ids=range(1, len(lines) + 1))


READERS: dict[str, Callable[[Path, Reading], Dataset]] = {
    ".npy": read_npy,
    ".npz": read_npz,
    ".csv": read_csv,
    ".tsv": read_csv,
    ".parquet": read_parquet,
    ".txt": read_txt,
    ".jsonl": read_jsonl,
}
