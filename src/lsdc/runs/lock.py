"""One process at a time per folder: a lock on a file that is never removed, or two could each hold their own."""

import errno
import os
import stat
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lsdc.errors import Busy, HealthWarning, InputError

NAME = ".lock"
HELD = (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES)


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Lock a folder, or refuse it if another process has; where the system has no such locks, continue without."""
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    handle = _opened(folder / NAME)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in HELD:
            os.close(handle)
            raise Busy(f"{folder}: another process is using this run; wait until it has finished") from None
        message = f"{folder}: the file system has no locks ({error.strerror}); make sure no other process uses this run"
        warnings.warn(message, HealthWarning, stacklevel=3)
    try:
        yield
    finally:
        os.close(handle)


def _opened(path: Path) -> int:
    """Open the lock file, which stays empty, without following links or waiting for a pipe."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EISDIR, errno.ENXIO):
            raise InputError(f"{path}: not a plain file; remove it") from None
        raise InputError(f"{path.parent}: cannot write to this folder ({error.strerror})") from None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise InputError(f"{path}: not a plain file; remove it")
    return handle
