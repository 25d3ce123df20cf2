"""Progress while files are read: a bar with a rate on a terminal, an occasional line elsewhere."""

import time
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

REPORT_EVERY = 10.0  # seconds between lines where the output is not a terminal
REPORT_AFTER = 1.0  # seconds after which the time taken is worth a line


class ReadingBar:
    """Shows how files are downloaded, decoded and encoded: pass it as ``watch``."""

    def __init__(self, console: Console) -> None:
        self.console = console
        columns = (BarColumn(bar_width=24), MofNCompleteColumn(), TimeRemainingColumn())
        rate = TextColumn("{task.fields[rate]}", style="dim")
        off = not console.is_terminal
        self.bars = Progress(
            TextColumn("{task.description:<17}"), *columns, rate, console=console, transient=True, disable=off
        )
        self.tasks: dict[str, Any] = {}
        self.began: dict[str, tuple[float, int]] = {}
        self.last_line = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.tasks:
            self.bars.stop()
        kept = any(not what.startswith("downloading") for what in self.tasks)  # half a download is not
        if kept and kind is not None and issubclass(kind, KeyboardInterrupt):
            self.console.print("what was read so far is saved; run the same command again to continue", highlight=False)

    def __call__(self, what: str, done: int, total: int) -> None:
        now = time.monotonic()
        if not self.tasks:
            self.bars.start()
        if what not in self.tasks:
            self.tasks[what] = self.bars.add_task(what, total=total, rate="")
            self.began[what] = (now, done)
        start, before = self.began[what]
        rate = f"{(done - before) / max(now - start, 1e-3):,.0f}/s"
        self.bars.update(self.tasks[what], completed=done, total=total, rate=rate)  # a download may not know its end
        late = (
            now - start > REPORT_AFTER
            if done == total
            else not self.console.is_terminal and now - self.last_line > REPORT_EVERY
        )
        if late:
            self.last_line = now
            self.console.print(f"{what}: {done:,}/{total:,} in {now - start:,.0f} s, {rate}", highlight=False)
