"""Arrays computed once and cached by what they were made from, part by part, so that a killed run can continue."""

import json
import os
import shutil
import tempfile
import zipfile
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO

import numpy as np

from lsdc.data.budget import check_disk
from lsdc.errors import InputError

VARIABLE = "LSDC_CACHE"
IN_MEMORY = 2**28  # bytes of an array that is read at once; a larger one stays on disk
BROKEN = (OSError, ValueError, KeyError, TypeError, EOFError, SyntaxError, zipfile.BadZipFile)
Watch = Callable[[str, int, int], None]  # called with what is being done, how many are done, and the total
Rows = tuple[np.ndarray, dict[int, str]]  # rows that could be read, and by position why the others could not
Compute = Callable[[int, int], Rows]


def quiet(what: str, done: int, total: int) -> None:
    """A watcher that ignores everything."""


def folder() -> Path:
    """Where arrays are cached; it can be deleted at any time."""
    given = os.environ.get(VARIABLE)
    return Path(given).expanduser() if given else own_folder(VARIABLE) / "features"


def own_folder(variable: str) -> Path:
    """Where lsdc keeps things of the user, unless the variable names another folder."""
    try:
        return Path.home() / ".cache" / "lsdc"
    except RuntimeError:
        raise InputError(f"this user has no home folder; set HOME, or {variable} to a folder") from None


def key(*parts: str) -> str:
    """One name for everything that decides an array."""
    return sha256("\0".join(parts).encode(errors="surrogateescape")).hexdigest()[:40]


def computed(n: int, compute: Compute, part: int) -> Rows:
    """All rows, computed part by part and not cached."""
    parts = [compute(start, min(start + part, n)) for start in range(0, n, part)]
    return np.concatenate([rows for rows, _ in parts]), {i: why for _, bad in parts for i, why in bad.items()}


def cached(name: str, n: int, compute: Compute, part: int) -> Rows:
    """The rows cached under a name; missing ones are computed and written, ``part`` rows at a time."""
    place = folder() / f"{name}.npy"
    try:
        return _read(place) or _made(place, n, compute, part)
    except OSError as error:
        raise InputError(
            f"{place.parent}: cannot write the cache ({error.strerror or error}); set {VARIABLE} to another folder"
        ) from None


def _made(place: Path, n: int, compute: Compute, part: int) -> Rows:
    """The array made from its parts; other processes may make the same parts at the same time, bit for bit alike."""
    bad: dict[int, str] = {}
    good, sample = 0, np.empty((0,))
    starts = range(0, n, part)
    for start in starts:
        rows, wrong = _part(place, start, n, compute, part)
        good, sample, bad = good + len(rows), rows[:1] if len(rows) else sample, bad | wrong
    if not good:
        return sample, bad
    shape = {"descr": sample.dtype.str, "fortran_order": False, "shape": (good, *sample.shape[1:])}

    def write(stream: BinaryIO) -> None:
        np.lib.format.write_array_header_1_0(stream, shape)
        for start in starts:
            stream.write(np.ascontiguousarray(_part(place, start, n, compute, part)[0]).data)

    _write(place.with_suffix(".json"), lambda stream: stream.write(json.dumps({"bad": bad}).encode()))
    _write(place, write)
    shutil.rmtree(place.with_suffix(".parts"), ignore_errors=True)
    result = _read(place)
    if result is None:
        raise OSError("it cannot be read back")
    return result


def _part(place: Path, start: int, n: int, compute: Compute, part: int) -> Rows:
    """Some rows, read from the cache or else computed and written."""
    file = place.with_suffix(".parts") / f"{start:012}.npz"
    try:
        with np.load(file, allow_pickle=False) as stored:
            return stored["X"], dict(zip(stored["bad"].tolist(), stored["why"].tolist(), strict=True))
    except BROKEN:
        rows, bad = compute(start, min(start + part, n))
    file.parent.mkdir(parents=True, exist_ok=True)
    if start == 0 and len(rows):
        check_disk(file.parent, 2 * n * rows[0].nbytes, f"free some space, or set {VARIABLE} to another folder")
    why = np.array([*bad.values()], str)
    _write(file, lambda stream: np.savez(stream, X=rows, bad=np.array([*bad], int), why=why))
    return rows, bad


def _read(place: Path) -> Rows | None:
    """The array of a file, if it exists and is complete."""
    try:
        content = json.loads(place.with_suffix(".json").read_text())
        X = np.load(place, allow_pickle=False, mmap_mode="r" if place.stat().st_size > IN_MEMORY else None)
        return X, {int(i): str(why) for i, why in content["bad"].items()}
    except BROKEN:
        return None


def _write(file: Path, write: Callable[[BinaryIO], object]) -> None:
    """A file that appears whole or not at all."""
    handle, temporary = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.", suffix=".tmp")
    try:
        with open(handle, "wb") as stream:
            write(stream)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, file)
    except BaseException:
        os.unlink(temporary)
        raise
