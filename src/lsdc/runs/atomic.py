"""Atomic file writes that survive a power cut."""

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

LONGEST = 60  # characters of a name that a temporary one keeps: with four bytes each, it still fits into 255


def write_atomic(path: Path, content: bytes) -> None:
    """Write a file completely or not at all; a pipe or device is written to, never replaced."""
    if path.exists() and not path.is_file():
        with path.open("wb") as special:
            special.write(content)
        return
    with whole(path, content) as place:
        place()


@contextmanager
def whole(path: Path, content: bytes) -> Iterator[Callable[[], None]]:
    """Write the content to disk next to ``path``; the function yielded moves it into place atomically."""
    make_folder(path.parent)
    temporary = path.with_name(f".{path.name[:LONGEST]}.{os.urandom(4).hex()}.tmp")
    try:
        with temporary.open("xb") as file:
            file.write(content)
            file.flush()
            sync(file.fileno())
        yield lambda: os.replace(temporary, path)
        sync_folder(path.parent)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename in (None, str(temporary)):
            error.filename = str(path)  # what the user knows of; a full disk names no file at all
        raise


def make_folder(folder: Path) -> None:
    """Create a folder and its parents, and sync them to disk."""
    if not folder.is_dir():
        make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        sync_folder(folder.parent)


def sync_folder(folder: Path) -> None:
    """Sync a folder to disk, so that renames in it survive a power cut."""
    if os.name == "posix" and os.access(folder, os.R_OK):
        handle = os.open(folder, os.O_RDONLY)
        try:
            sync(handle)
        finally:
            os.close(handle)


def sync(handle: int) -> None:
    """Sync a file or folder, where the file system supports it."""
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP):
            raise
