"""What the commands share: the consoles, common options, and how things are said."""

import os
import shutil
import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.console import Console
from rich.text import Text

from lsdc import parallel
from lsdc.errors import InputError

out, err = Console(), Console(stderr=True)

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
DeviceOption = Annotated[str | None, typer.Option("--device", help="auto, cpu or cuda (default: auto)")]


def program() -> list[str]:
    """How to call this program again."""
    if shutil.which("lsdc"):
        return ["lsdc"]
    return [sys.argv[0]] if Path(sys.argv[0]).name == "lsdc" else ["python", "-m", "lsdc"]


def line(console: Console, text: str) -> None:
    """One line, as it is: no colours guessed from its words, no breaks at the edge of the window."""
    console.print(Text(text), soft_wrap=True)


def root_of(given: Path | None) -> Path:
    """Where data sets are kept."""
    return given or Path(os.environ.get("LSDC_DATA") or Path.home() / ".cache" / "lsdc")


def about_data(error: InputError, data: str) -> InputError:
    """What is wrong with X is wrong with the file."""
    return InputError(f"{data}: {error}") if str(error).startswith("X ") else error


def fail(message: str, code: int) -> NoReturn:
    """One line on stderr, and the end."""
    say_failure(message)
    sys.exit(code)


def say_failure(message: str) -> None:
    """One line on stderr."""
    process = f" (process {parallel.rank()})" if parallel.rank() > 0 else ""
    print(f"lsdc{process}: {message}", file=sys.stderr, flush=True)
