"""Ctrl-C while modules are imported: nothing is lost then, and an import cut in two ends in anything but Ctrl-C."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def importing() -> Iterator[None]:
    """While it is entered, Ctrl-C and SIGTERM end the process at once, with one line and the usual exit code."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    before = {number: handler for number, handler in handlers.items() if handler not in (signal.SIG_IGN, None)}
    for number in before:
        signal.signal(number, _end)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(number: int, frame: FrameType | None) -> None:
    os.write(2, b"lsdc: stopped\n")
    os._exit(128 + number)
