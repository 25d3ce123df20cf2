"""Files that appear whole or not at all, and are still there after a power cut."""

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


def write_atomic(path: Path, content: bytes) -> None:
    """Put a file in place whole or not at all; a pipe or device is written to, never replaced."""
    if path.exists() and not path.is_file():
        with path.open("wb") as special:
            special.write(content)
        return
    with whole(path, content) as place:
        place()


@contextmanager
def whole(path: Path, content: bytes) -> Iterator[Callable[[], None]]:
    """The content on disk beside ``path``; the function given puts it in place, at once and whole."""
    make_folder(path.parent)
    temporary = path.with_name(f".{path.name}.{os.urandom(4).hex()}.tmp")
    try:
        with temporary.open("xb") as file:
            file.write(content)
            file.flush()
            _sync(file.fileno())
        yield lambda: os.replace(temporary, path)
        sync_folder(path.parent)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def make_folder(folder: Path) -> None:
    """Make a folder and those above it, so that they are there after a power cut too."""
    if not folder.is_dir():
        make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        sync_folder(folder.parent)


def sync_folder(folder: Path) -> None:
    """Make sure that what was renamed in a folder is so after a power cut too."""
    if os.name == "posix" and os.access(folder, os.R_OK):
        handle = os.open(folder, os.O_RDONLY)
        try:
            _sync(handle)
        finally:
            os.close(handle)


def _sync(handle: int) -> None:
    """To the disk, on file systems that can: some have no such call for files or for folders."""
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP):
            raise
