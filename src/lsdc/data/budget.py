"""What reading may cost: declared limits, checked before memory or disk is spent (docs/data.md, "Limits")."""

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Condition

from lsdc.errors import InputError, shown

PIXELS = 100_000_000  # of one image, and of all that are decoded at a time
UNPACKED = 2**30  # bytes that any file may take in memory; beyond that, at most a hundred times its size
RATIO = 100
DOWNLOAD = 4 * 2**30  # bytes of a file from the network, and of what it unpacks to
VARIABLE = "LSDC_MEMORY"  # bytes that a file may take, instead of the rule above
UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


def check_memory(path: Path, size: int, what: str = "unpacks to") -> None:
    """Refuse a file that would take more memory than allowed."""
    given = os.environ.get(VARIABLE, "")
    most = _bytes(given) if given else max(UNPACKED, RATIO * path.stat().st_size)
    if size > most:
        why = f"{VARIABLE} is {given}" if given else f"more than {RATIO} times its size"
        raise InputError(f"{path}: {what} {size:,} bytes, {why}; to read it anyway, set {VARIABLE} (to 8G, say)")


def _bytes(text: str) -> int:
    found = re.fullmatch(r"(\d{1,15})\s*([KMGT]?)(i?B)?", text.strip(), re.IGNORECASE | re.ASCII)
    if not found:
        raise InputError(f"{VARIABLE}={shown(text)}: give a number of bytes, such as 8G")
    return int(found[1]) * UNITS[found[2].upper()]


def check_disk(folder: Path, size: int, how: str) -> None:
    """Refuse to start what the disk has no room for."""
    free = shutil.disk_usage(folder).free
    if size > free:
        raise InputError(f"{folder}: needs {size:,} bytes of disk space, but only {free:,} are free; {how}")


class Decoding:
    """Lets images be decoded in parallel as long as together they stay within ``PIXELS``."""

    def __init__(self) -> None:
        self.pixels, self.changed = 0, Condition()

    @contextmanager
    def room(self, width: int, height: int) -> Iterator[None]:
        """Wait until there is room for an image; refuse one that is too large by itself."""
        size = width * height
        if size > PIXELS:
            raise ValueError(
                f"{width:,} x {height:,} pixels; the limit is {PIXELS // 1_000_000} million; scale it down"
            )
        with self.changed:
            self.changed.wait_for(lambda: not self.pixels or self.pixels + size <= PIXELS)
            self.pixels += size
        try:
            yield
        finally:
            with self.changed:
                self.pixels -= size
                self.changed.notify_all()
