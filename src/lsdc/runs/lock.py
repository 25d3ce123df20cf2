"""One process at a time in a folder: a lock on a file that stays, as one that is removed can be held twice."""

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
    """Refuse a folder that another process is at work on; where the system has no such locks, go on without."""
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
            raise Busy(f"{folder}: another process is at work on this run; wait for it") from None
        message = f"{folder}: its file system has no locks ({error.strerror}); let no other process work on this run"
        warnings.warn(message, HealthWarning, stacklevel=3)
    try:
        yield
    finally:
        os.close(handle)


def _opened(path: Path) -> int:
    """A handle of the lock file, which is never written to; a link is not followed, nor a pipe waited for."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EISDIR, errno.ENXIO):
            raise InputError(f"{path}: not a plain file; remove it") from None
        raise InputError(f"{path.parent}: cannot write there ({error.strerror})") from None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise InputError(f"{path}: not a plain file; remove it")
    return handle
