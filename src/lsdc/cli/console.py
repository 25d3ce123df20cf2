"""How the commands speak: the consoles, one line at a time, and the end of a command."""

import os
import shlex
import shutil
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NoReturn, TextIO, cast

import typer
from rich.console import Console
from rich.text import Text

from lsdc.errors import InputError, printable


class Log:
    """Standard error, whatever it is at the moment; what it does not take (a full disk) is lost, and ends nothing."""

    def write(self, text: str) -> int:
        with suppress(OSError):
            sys.stderr.write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError):
            sys.stderr.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(sys.stderr, name)


def close_streams() -> None:
    """Leave nothing behind that Python would fail to write at its end."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


log = Log()
out, err = Console(), Console(file=cast(TextIO, log))


def hush(context: typer.Context, *consoles: Console) -> None:
    """Say nothing on these until the command ends."""
    for console in consoles:
        context.call_on_close(partial(setattr, console, "quiet", console.quiet))
        console.quiet = True


def program() -> list[str]:
    """How to call this program again."""
    if shutil.which("lsdc"):
        return ["lsdc"]
    return [sys.argv[0]] if Path(sys.argv[0]).name == "lsdc" else ["python", "-m", "lsdc"]


def line(console: Console, text: str) -> None:
    """One line, as it is: no colours guessed from its words, no breaks at the edge of the window."""
    console.print(Text(printable(text)), soft_wrap=True)


class Terminated(KeyboardInterrupt):
    """SIGTERM: as Ctrl-C, with another exit code."""


def about_data(error: InputError, data: str) -> InputError:
    """What is wrong with X is wrong with the file."""
    return InputError(f"{data}: {error}") if str(error).startswith("X ") else error


def say_next(folder: Path, *words: object) -> None:
    """The run folder, its report, and the command to try next."""
    line(out, f"run folder: {folder}")
    if (folder / "report.html").exists():
        line(out, f"report:     {folder / 'report.html'}")
    line(out, f"next:       {shlex.join([*program(), *map(str, words)])}")


def fail(message: str, code: int) -> NoReturn:
    """One line on stderr, and the end."""
    say_failure(message)
    sys.exit(code)


def say_failure(message: str) -> None:
    """One line on stderr."""
    process = f" (process {os.environ['RANK']})" if is_shared() and os.environ["RANK"] != "0" else ""
    print(f"lsdc{process}: {message}", file=log, flush=True)


def is_shared() -> bool:
    """Whether torchrun started this process as one of several: to be known without PyTorch, which takes seconds."""
    return int(os.environ.get("WORLD_SIZE", "1")) > 1 and "RANK" in os.environ
