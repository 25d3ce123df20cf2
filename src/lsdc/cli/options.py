"""Options shared by several commands, and how they reach the layers below."""

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lsdc.errors import InputError

if TYPE_CHECKING:
    from lsdc.data.reading import Reading

RunArgument = Annotated[Path, typer.Argument(metavar="RUN", help="a run folder made by lsdc fit")]
DataArgument = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="a built-in name (lsdc list datasets), a folder of images, one image, "
        "or a .npy .npz .csv .parquet .txt .jsonl file",
    ),
]
RootOption = Annotated[
    Path | None, typer.Option("--data-root", help="where data sets are kept (default: $LSDC_DATA or ~/.cache/lsdc)")
]
SizeOption = Annotated[
    int | None,
    typer.Option(
        "--image-size", min=8, max=4096, help="scale the images of a folder to this many pixels a side (default: 32)"
    ),
]
ColumnOption = Annotated[
    str | None, typer.Option("--column", help="the column of a table, or field of a JSONL file, that holds the texts")
]
ColumnsOption = Annotated[
    str | None,
    typer.Option("--columns", help="the columns of a table to use as features, separated by commas", metavar="A,B"),
]
DropOption = Annotated[
    str | None, typer.Option("--drop", help="columns of a table to leave out, separated by commas", metavar="A,B")
]
ScaleOption = Annotated[
    bool | None,
    typer.Option(
        "--scale/--no-scale",
        help="whether to divide each column of a table by its standard deviation (default: if their scales differ)",
    ),
]
IdOption = Annotated[
    str | None, typer.Option("--id-column", help="the column of a table that identifies the rows in labels.csv")
]
ArrayOption = Annotated[str | None, typer.Option("--array", help="the array of a .npz file that holds the samples")]
EncoderOption = Annotated[
    str | None,
    typer.Option(
        "--encoder",
        help="a pretrained network that turns images into vectors: an .onnx file, or a Hugging Face model or folder",
    ),
]
TextEncoderOption = Annotated[
    str | None,
    typer.Option(
        "--text-encoder",
        help="what turns texts into vectors: wordllama, or a sentence-transformers model or folder (default: tf-idf)",
    ),
]
EncoderSetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--encoder-set", help="set size, mean, std or output of the encoder, e.g. size=224", metavar="KEY=VALUE"
    ),
]
FILES = {  # how to read DATA: the fields of ``Reading`` that are options
    "image_size": SizeOption,
    "column": ColumnOption,
    "columns": ColumnsOption,
    "drop": DropOption,
    "id_column": IdOption,
    "scale": ScaleOption,
    "array": ArrayOption,
}
ENCODERS = {"encoder": EncoderOption, "text_encoder": TextEncoderOption, "encoder_set": EncoderSetOption}
READING = {**FILES, **ENCODERS}
ReadingOptions = Mapping[str, Any]  # the values of these options, by name
DeviceOption = Annotated[str | None, typer.Option("--device", help="auto, cpu or cuda (default: auto)")]


def root_of(given: Path | None) -> Path:
    """Where data sets are kept."""
    from lsdc.data.cache import own_folder

    return given or Path(os.environ.get("LSDC_DATA") or own_folder("LSDC_DATA"))


def reads_data(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command all options in ``READING``; it takes their values together, as its parameter ``options``."""

    @wraps(command)
    def run(**given: Any) -> None:
        options = {name: given.pop(name) for name in READING}
        command(**given, options=options)

    shown: list[inspect.Parameter] = []
    for own in inspect.signature(command).parameters.values():
        if own.name == "options":
            shown += [
                inspect.Parameter(name, own.kind, annotation=kind, default=None) for name, kind in READING.items()
            ]
        else:
            shown.append(own)
    run.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in shown}
    return run


def encoder_settings(words: Sequence[str]) -> dict[str, Any]:
    """The values of ``--encoder-set``, such as ``size=224`` or ``mean=0.5,0.5,0.5``."""
    from lsdc.data.encoders import checked

    pairs = [word.partition("=") for word in words]
    if wrong := [word for word, pair in zip(words, pairs, strict=True) if not pair[1]]:
        raise InputError(f"--encoder-set {wrong[0]!r}: write it as KEY=VALUE, e.g. size=224")
    return checked({name: value for name, _, value in pairs})


def reading(given: "Reading", encoder_set: Sequence[str] | None = None, **options: Any) -> "Reading":
    """A reading with the command-line options that were given; lists are separated by commas."""
    changes: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    if encoder_set:
        changes["encoder_settings"] = encoder_settings(encoder_set)
    for name in changes.keys() & {"columns", "drop"}:
        changes[name] = tuple(dict.fromkeys(word.strip() for word in changes[name].split(",")))
        if not any(changes[name]):
            raise InputError(f"--{name} {options[name]!r}: name at least one column")
    return replace(given, **changes)
