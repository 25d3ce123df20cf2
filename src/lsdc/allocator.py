"""Memory that a step frees is kept for the next one, where the C library is glibc.

By itself glibc asks the kernel for every large tensor anew and gives it back: VGG-4 at a quarter of its width, batch
256, then spends a third of a step on page faults (docs/performance.md).
"""

import ctypes
import os
import sys
from functools import cache

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3  # parameters of mallopt, from malloc.h
NEVER = -1  # trim: as a size_t, more than any memory
LARGE = (1 << 30, 32 << 20)  # bytes from which a block is mapped by itself; glibc before 2.35 takes 32 MiB at most
USER_SETTINGS = ("MALLOC_", "glibc.malloc.")  # if the user has set one of these, it is left alone


@cache
def keep_freed_memory() -> bool:
    """Ask glibc, once per process, not to return freed blocks below 1 GiB to the kernel; True if it was asked.

    Elsewhere, and where the environment has settings of its own for malloc, nothing is changed.
    """
    given = [name for name in os.environ if name.startswith(USER_SETTINGS[0])]
    if given or USER_SETTINGS[1] in os.environ.get("GLIBC_TUNABLES", ""):
        return False
    libc = _glibc()
    if libc is None or not any(libc.mallopt(MMAP_THRESHOLD, size) for size in LARGE):
        return False
    return bool(libc.mallopt(TRIM_THRESHOLD, NEVER))


def return_freed_memory() -> None:
    """Give the kernel back what a fit has freed, for what comes after it."""
    libc = _glibc()
    if libc is not None and keep_freed_memory():
        libc.malloc_trim(0)


@cache
def _glibc() -> ctypes.CDLL | None:
    """The C library of this process, if it is glibc."""
    if not sys.platform.startswith("linux"):
        return None
    libc = ctypes.CDLL(None)
    known = all(hasattr(libc, name) for name in ("gnu_get_libc_version", "mallopt", "malloc_trim"))
    return libc if known else None
