"""Ctrl-C, SIGTERM and SIGHUP: the first waits for the end of the step, so that it can be saved; the second does not."""

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

TO_END = tuple(signal.Signals[name] for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))
Handler = Callable[[int, FrameType | None], Any] | int | None


class Interrupt:
    """Within this context a signal is only noted in ``asked``; ``finish`` then does what it would have done."""

    def __init__(self, wanted: bool = True) -> None:
        in_charge = threading.current_thread() is threading.main_thread()  # Python handles signals only there
        self.signals = (signal.SIGINT, *TO_END) if wanted and in_charge else ()
        self.asked: int | None = None
        self.before: dict[int, Handler] = {}

    def __enter__(self) -> "Interrupt":
        for number in self.signals:
            if signal.getsignal(number) is not signal.SIG_IGN:
                self.before[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)
        self.before = {}

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.asked is not None:
            self.finish(number)
        self.asked = number

    def finish(self, number: int | None = None) -> None:
        """Deliver the signal: KeyboardInterrupt, the end of the process, or the previous handler."""
        self.__exit__()
        number = number or self.asked or signal.SIGINT  # another process of the job noticed it
        signal.raise_signal(number)
        raise KeyboardInterrupt
