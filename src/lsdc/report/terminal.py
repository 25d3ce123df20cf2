"""A run in the terminal: a live line per stage while it runs, tables when it is done."""

import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

import numpy as np
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from lsdc.errors import printable
from lsdc.methods.choosing import Suggestion
from lsdc.metrics import CONFIDENT, UNASSIGNED, Scores, cluster_sizes
from lsdc.report.estimate import Clock
from lsdc.training.context import Progress as Step

MOST_ROWS = 30  # of a table of clusters
LEAST = 12  # characters that a column of texts needs; longer words are divided
REPORT_EVERY = 10.0  # seconds between lines where the output is not a terminal


def figures_of(record: dict[str, Any]) -> str:
    """The few figures of an epoch that a person follows."""
    parts = [f"loss {record['loss']:.4f}"]
    if "accuracy" in record:
        parts.append(f"accuracy {record['accuracy']:.0%}")
    if "shares" in record:
        parts.append(f"{record['alive']}/{len(record['shares'])} clusters alive")
    if "confident" in record:
        parts.append(f"{record['confident']:.0%} confident")
    return " · ".join(parts)


class Live:
    """Shows the progress of a fit: pass it as ``callback``. Nothing is shown before ``open`` or the first step."""

    def __init__(self, console: Console, headline: str = "") -> None:
        self.console, self.headline, self.opened = console, headline, False
        self.clock = Clock({})
        self.bars = Progress(
            TextColumn("{task.fields[stage]:<10}"),
            BarColumn(bar_width=24),
            TextColumn("epoch {task.fields[epoch]}/{task.fields[epochs]}"),
            TimeRemainingColumn(elapsed_when_finished=True),
            TextColumn("{task.fields[figures]}", style="dim"),
            TextColumn("{task.fields[left]}"),
            console=console,
            disable=not (console.is_terminal or console.is_jupyter),
        )
        self.tasks: dict[str, Any] = {}
        self.last_line = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.bars.stop()
        if kind is None:
            self.open()

    def open(self) -> None:
        """Print the headline, once."""
        if not self.opened:
            self.opened = True
            if self.headline:
                lines = map(printable, self.headline.split("\n"))
                self.console.print(Text("\n".join(lines)), soft_wrap=True)

    def __call__(self, step: Step) -> None:
        self.open()
        self.clock.update(step)
        if not self.tasks:
            self.bars.start()
        if step.stage not in self.tasks:
            self.tasks[step.stage] = self.bars.add_task(
                step.stage,
                total=step.epochs,
                completed=step.epoch - 1,
                stage=step.stage,
                epoch=step.epoch - 1,
                epochs=step.epochs,
                figures="",
                left="",
            )
        task, left = self.tasks[step.stage], self.clock.in_words()
        if step.record is None:
            self.bars.update(task, completed=step.epoch - 1 + step.step / step.steps, left=left)
            return
        figures, last = figures_of(step.record), step.epoch == step.epochs
        self.bars.update(task, completed=step.epoch, epoch=step.epoch, figures=figures, left="" if last else left)
        if self.bars.disable and (last or time.monotonic() - self.last_line > REPORT_EVERY):
            self.last_line = time.monotonic()
            figures += f" · {left}" if left else ""
            text = f"{step.stage}: epoch {step.epoch}/{step.epochs} · {figures}"
            self.console.print(Text(text), soft_wrap=True)


def ProgressBar() -> Live:
    """Progress bars for Python and notebooks: ``with lsdc.ProgressBar() as bar: model.fit(X, callback=bar)``."""
    return Live(Console(stderr=True))


class Board:
    """Shows the jobs of a table: one bar for all of them, one line per running job."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.completed:g}/{task.total:g}"),
            TextColumn("{task.fields[figures]}", style="dim"),
            console=console,
            disable=not console.is_terminal,
        )
        self.tasks: dict[str, Any] = {}
        self.last_line: dict[str, float] = {}

    def __enter__(self) -> Self:
        self.bars.start()
        self.whole = self.bars.add_task("cells", total=0, figures="")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.bars.stop()

    def update(self, done: int, total: int, running: Mapping[str, Step | None]) -> None:
        """``running`` maps the name of each running job to its last report."""
        self.bars.update(self.whole, completed=done, total=total)
        for name in [name for name in self.tasks if name not in running]:
            self.bars.remove_task(self.tasks.pop(name))
        for name, step in running.items():
            if name not in self.tasks:
                self.tasks[name] = self.bars.add_task(f"  {name}", total=1, figures="starts")
                self.say(name, "starts")
            if step is not None:
                self._show(name, step)

    def _show(self, name: str, step: Step) -> None:
        figures = f"{step.stage} · {figures_of(step.record)}" if step.record else step.stage
        epoch = step.epoch if step.record else step.epoch - 1
        self.bars.update(self.tasks[name], completed=epoch, total=max(step.epochs, 1), figures=figures)
        if step.record and time.monotonic() - self.last_line.get(name, 0.0) > 6 * REPORT_EVERY:
            self.last_line[name] = time.monotonic()
            self.say(name, f"epoch {step.epoch}/{step.epochs} · {figures}")

    def say(self, name: str, what: str) -> None:
        """Print a line where no bars can be drawn."""
        if not self.console.is_terminal:
            self.console.print(Text(f"{name}: {what}"), soft_wrap=True)


class Figures(Table):
    """A table whose figures are never cut: where they do not fit side by side, each row becomes a line of words."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        words = [[str(cell) for cell in (column.header, *column.cells)] for column in self.columns]
        needed = 1
        for column, cells in zip(self.columns, words, strict=True):
            longest = max((cell_len(word) for cell in cells for word in cell.split()), default=0)
            is_text = column.justify == "left"
            column.overflow = "fold" if is_text else "ellipsis"
            column.no_wrap = not is_text and longest == max(map(cell_len, cells))  # it could only be cut
            needed += 3 + (min(longest, LEAST) if is_text else longest)
        if needed <= options.max_width:
            yield from super().__rich_console__(console, options)
            return
        if self.title:
            yield Text(str(self.title), "italic")
        heads, *rows = zip(*words, strict=True)
        for row in rows:
            pairs = [f"{head} {' '.join(cell.split())}" for head, cell in zip(heads, row, strict=True) if cell.strip()]
            yield Text.assemble((pairs[0], "bold"), f": {', '.join(pairs[1:])}")
        if self.caption:
            yield Text(str(self.caption), "dim")


def rows_table(
    title: str, heads: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[int] = (0, 1)
) -> Figures:
    """A table of texts: the columns ``left`` are left-aligned, all others right-aligned."""
    table = Figures(title=Text(printable(title)), title_justify="left", header_style="bold")
    for i, head in enumerate(heads):
        table.add_column(head, justify="left" if i in left else "right")
    for row in rows:
        table.add_row(*(Text(printable(word)) for word in row))
    return table


def scores_table(rows: dict[str, Scores], title: str) -> Figures:
    """One line per method: ACC, NMI, ARI, and the share and ACC of the confident samples (above 0.9)."""
    table = Figures(title=Text(printable(title)), title_justify="left", header_style="bold")
    table.add_column("method")
    for name in ("ACC", "NMI", "ARI", "confident", "their ACC"):
        table.add_column(name, justify="right")
    best = max((s.acc for s in rows.values()), default=0.0)
    for name, s in rows.items():
        sure = "-" if np.isnan(s.confident_share) else f"{s.confident_share:.0%}"
        sure_acc = "-" if np.isnan(s.confident_acc) else f"{s.confident_acc:.3f}"
        style = "bold green" if s.acc == best else ""
        table.add_row(Text(name), f"{s.acc:.3f}", f"{s.nmi:.3f}", f"{s.ari:.3f}", sure, sure_acc, style=style)
    return table


def sizes_table(
    labels: np.ndarray, confidence: np.ndarray, n_clusters: int, names: Sequence[str] | None = None
) -> Figures:
    """Size and confidence of each cluster, and its name if it has one."""
    table = Figures(header_style="bold")
    for name in ("cluster", "samples", "share", "mean confidence", "confident"):
        table.add_column(name, justify="right")
    if names is not None:
        table.add_column("name")
    shown = np.argsort(-cluster_sizes(labels, n_clusters), kind="stable")[:MOST_ROWS].tolist()
    for cluster in sorted(shown) + [UNASSIGNED] * bool((labels == UNASSIGNED).any()):
        mine = confidence[labels == cluster]
        mean, sure = (f"{mine.mean():.2f}", f"{(mine > CONFIDENT).mean():.0%}") if len(mine) else ("-", "-")
        number = "unassigned" if cluster == UNASSIGNED else str(cluster)
        called = [] if names is None else [Text("" if cluster == UNASSIGNED else printable(names[cluster]))]
        table.add_row(number, f"{len(mine):,}", f"{len(mine) / max(len(labels), 1):.1%}", mean, sure, *called)
    if n_clusters > MOST_ROWS:
        table.caption = f"the {MOST_ROWS} largest of {n_clusters} clusters"
    return table


def candidates_table(found: Suggestion) -> Figures:
    """The evidence for each number of clusters; the best scores have the widest bars, and the choice is marked."""
    table = Figures(header_style="bold", caption=_signals(found), caption_justify="left")
    for name in ("clusters", "parts", "eigengap", "silhouette", "stability"):
        table.add_column(name, justify="right" if name == "clusters" else "left")
    widest = max(c.eigengap for c in found.candidates) or 1.0
    last = max(found.n_clusters + 3, *(n for numbers in found.signals.values() for n in numbers))
    for c in [c for c in found.candidates if c.n_clusters <= last]:
        cells = [_bar(c.eigengap / widest, c.eigengap), _bar(c.silhouette, c.silhouette)]
        chosen = c.n_clusters == found.n_clusters
        mark = "\N{BLACK RIGHT-POINTING SMALL TRIANGLE} " if chosen else ""
        votes = "\N{BLACK CIRCLE}" * c.votes
        row = (f"{mark}{c.n_clusters}", votes, *cells, _bar(c.stability, c.stability))
        table.add_row(*row, style="bold green" if chosen else "")
    return table


def _bar(share: float | None, figure: float | None, width: int = 10) -> str:
    """A figure and its bar."""
    if share is None or figure is None:
        return ""
    return f"{round(figure, 3) + 0.0:6.3f} " + "\N{BLACK SQUARE}" * round(width * min(max(share, 0.0), 1.0))


def _signals(found: Suggestion) -> Text:
    parts = ", ".join(map(str, found.signals["communities"]))
    others = [f"{name}: {n}" for name, numbers in found.signals.items() if name != "communities" for n in numbers]
    return Text(f"communities in parts of {found.n_samples:,} samples: {parts}; {'; '.join(others)}")


def names_table(kind: str, entries: Sequence[tuple[str, str]]) -> Table:
    """Names and their descriptions."""
    table = Table(title=kind, title_justify="left", show_header=False, box=None, padding=(0, 2, 0, 0))
    for name, about in entries:
        table.add_row(Text(name, style="bold"), Text(about))
    return table
