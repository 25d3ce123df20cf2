"""How commands talk to the user: two consoles, one line at a time, and a clean exit."""

import os
import shlex
import shutil
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, NoReturn, TextIO, cast

import typer
from rich.console import Console
from rich.text import Text

from lsdc.errors import HealthWarning, InputError, printable


class Log:
    """Standard error as it is right now; a failed write (full disk) is dropped and never ends the command."""

    def write(self, text: str) -> int:
        with suppress(OSError):
            sys.stderr.write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError):
            sys.stderr.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(sys.stderr, name)


def open_streams() -> None:
    """Open /dev/null in place of streams that the caller has closed; a file opened later would take their numbers."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            mode = "w" if number else "r"
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115 (for as long as the process lives)


def close_streams() -> None:
    """Close the streams, so that Python has nothing left to flush at exit."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


log = Log()
out, err = Console(), Console(file=cast(TextIO, log))


def hush(context: typer.Context, *consoles: Console) -> None:
    """Silence these consoles until the command ends."""
    for console in consoles:
        context.call_on_close(partial(setattr, console, "quiet", console.quiet))
        console.quiet = True


def program() -> list[str]:
    """The words that start this program again."""
    if shutil.which("lsdc"):
        return ["lsdc"]
    return [sys.argv[0]] if Path(sys.argv[0]).name == "lsdc" else ["python", "-m", "lsdc"]


def line(console: Console, text: str) -> None:
    """Print one line verbatim: no highlighting, no wrapping."""
    console.print(Text(printable(text)), soft_wrap=True)


class Terminated(KeyboardInterrupt):
    """SIGTERM, or SIGHUP from a terminal that was closed: like Ctrl-C, with its own exit code."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.name, self.code = signal.Signals(number).name, 128 + number


def about_data(error: InputError, data: str) -> InputError:
    """Name the file in an error about X."""
    return error.within(data) if error.text.startswith("X ") else error


def say_next(folder: Path, *words: object) -> None:
    """The run folder, its report, and the command to try next."""
    line(out, f"run folder: {folder}")
    if (folder / "report.html").exists():
        line(out, f"report:     {folder / 'report.html'}")
    line(out, f"next:       {shlex.join([*program(), *map(str, words)])}")


def fail(message: str, code: int) -> NoReturn:
    """Print one line on stderr and exit."""
    say_failure(message)
    sys.exit(code)


def say_failure(message: str) -> None:
    """Print one line on stderr."""
    process = f" (process {os.environ['RANK']})" if is_shared() and os.environ["RANK"] != "0" else ""
    print(f"lsdc{process}: {message}", file=log, flush=True)


def is_shared() -> bool:
    """Whether torchrun started this process as one of several; found without importing PyTorch, which takes seconds."""
    size = os.environ.get("WORLD_SIZE", "")  # another program may have put anything there
    return size.isdecimal() and int(size) > 1 and "RANK" in os.environ


@contextmanager
def readable_warnings(quiet: bool = False) -> Iterator[None]:
    """Show warnings as plain lines instead of in Python's format."""
    with warnings.catch_warnings():
        plain = warnings.showwarning

        def show(message: Any, category: Any, *where: Any, **more: Any) -> None:
            if issubclass(category, HealthWarning) and quiet:
                say_failure(f"warning: {printable(str(message))}")
            elif issubclass(category, HealthWarning):
                err.print(Text.assemble(("warning: ", "yellow"), printable(str(message))), soft_wrap=True)
            else:
                plain(message, category, *where, **more)

        warnings.simplefilter("always", HealthWarning)
        warnings.showwarning = show
        yield
