"""What the commands share: the consoles, common options, and how things are said."""

import os
import shutil
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TextIO, cast

import typer
from rich.console import Console
from rich.text import Text

from lsdc.errors import InputError, printable

if TYPE_CHECKING:
    from lsdc.data.dataset import Reading


class Log:
    """Standard error, whatever it is at the moment; what it does not take (a full disk) is lost, and ends nothing."""

    def write(self, text: str) -> int:
        with suppress(OSError):
            sys.stderr.write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError):
            sys.stderr.flush()

    def close(self) -> None:
        """Leave nothing behind that Python would fail to write at its end."""
        try:
            sys.stderr.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())

    def __getattr__(self, name: str) -> Any:
        return getattr(sys.stderr, name)


log = Log()
out, err = Console(), Console(file=cast(TextIO, log))

DataArgument = Annotated[
    str,
    typer.Argument(
        help="a built-in name (lsdc list datasets), a folder of images, or a .npy .npz .csv .parquet .txt .jsonl file"
    ),
]
RootOption = Annotated[
    Path | None, typer.Option("--data-root", help="where data sets are kept (default: $LSDC_DATA or ~/.cache/lsdc)")
]
SizeOption = Annotated[
    int, typer.Option("--image-size", min=8, max=4096, help="side in pixels to which images of a folder are scaled")
]
ColumnOption = Annotated[
    str | None, typer.Option("--column", help="the column of a CSV or field of a JSONL file that holds the texts")
]
ColumnsOption = Annotated[
    str | None,
    typer.Option("--columns", help="the columns of a table that are features, separated by commas", metavar="A,B"),
]
DropOption = Annotated[
    str | None, typer.Option("--drop", help="columns of a table to leave out, separated by commas", metavar="A,B")
]
IdOption = Annotated[
    str | None, typer.Option("--id-column", help="the column of a table that names the rows in labels.csv")
]
ArrayOption = Annotated[str | None, typer.Option("--array", help="the array of a .npz file that holds the samples")]
DeviceOption = Annotated[str | None, typer.Option("--device", help="auto, cpu or cuda (default: auto)")]


def program() -> list[str]:
    """How to call this program again."""
    if shutil.which("lsdc"):
        return ["lsdc"]
    return [sys.argv[0]] if Path(sys.argv[0]).name == "lsdc" else ["python", "-m", "lsdc"]


def line(console: Console, text: str) -> None:
    """One line, as it is: no colours guessed from its words, no breaks at the edge of the window."""
    console.print(Text(printable(text)), soft_wrap=True)


def root_of(given: Path | None) -> Path:
    """Where data sets are kept."""
    return given or Path(os.environ.get("LSDC_DATA") or Path.home() / ".cache" / "lsdc")


def reading(given: "Reading", **options: str | None) -> "Reading":
    """A reading with the options of the command line that were given; lists are separated by commas."""
    changes: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    for name in changes.keys() & {"columns", "drop"}:
        changes[name] = tuple(dict.fromkeys(word.strip() for word in changes[name].split(",")))
        if not any(changes[name]):
            raise InputError(f"--{name} {options[name]!r}: name at least one column")
    return replace(given, **changes)


def about_data(error: InputError, data: str) -> InputError:
    """What is wrong with X is wrong with the file."""
    return InputError(f"{data}: {error}") if str(error).startswith("X ") else error


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
