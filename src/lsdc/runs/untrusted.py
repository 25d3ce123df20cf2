"""Reading files that anyone may have written: regular files only, bounded memory, JSON of bounded depth."""

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, TextIO

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from lsdc.errors import InputError, reason

JSON_BYTES = 2**26  # of a JSON file or header, enough for 10,000 clusters over hundreds of epochs
DEEPEST = 12  # nested brackets; ours need five
LONGEST_LINE = 2**24  # of a labels or metrics file

Number = Annotated[int, Field(ge=-(2**63), lt=2**63)] | float | bool
Share = Annotated[float, Field(ge=0, le=1.001)]  # a mean may round up


class EpochRecord(BaseModel):
    """The record of one epoch: typed where other code computes with it, any plain JSON elsewhere."""

    model_config = ConfigDict(extra="allow", strict=True)
    __pydantic_extra__: dict[str, Number | str | list[Number | str] | None]

    stage: str = ""
    epoch: int = Field(0, ge=0, le=2**31)
    shares: list[Share] = Field([1.0], min_length=1)
    health: list[str] = []
    warned: list[str] = []
    retries: list[str] = []
    loss: float = 0.0
    scale: float = 0.0
    spread: float = 0.0
    density: float = 0.0


RECORDS = TypeAdapter(list[EpochRecord])


def plain_file(path: Path) -> Path:
    """The path of a regular file; pipes, devices and folders are refused, as reading might never end."""
    if path.exists() and not path.is_file():
        raise InputError(f"{path}: not a plain file")
    return path


def contained(folder: Path, names: Iterable[str]) -> None:
    """Refuse a folder where one of the names is a link out of it or not a regular file."""
    root = os.path.realpath(folder)
    for name in names:
        path = folder / name
        if os.path.commonpath([root, os.path.realpath(path)]) != root:
            raise InputError(f"{path}: is a link out of the folder; replace it with the file itself")
        if not path.is_dir():
            plain_file(path)


def parse_json(text: str | bytes) -> Any:
    """The content of a JSON text; ``ValueError`` also for brackets nested too deep to be ours."""
    try:
        content = json.loads(text)
    except RecursionError:
        raise ValueError("nested too deep") from None
    _check_depth(content, DEEPEST)
    return content


def _check_depth(content: Any, most: int) -> None:
    if isinstance(content, (dict, list)):
        if not most:
            raise ValueError("nested too deep")
        for item in content.values() if isinstance(content, dict) else content:
            _check_depth(item, most - 1)


def read_json(path: Path) -> dict[str, Any]:
    """The object of a JSON file."""
    try:
        with plain_file(path).open("rb") as file:
            text = file.read(JSON_BYTES + 1)
        if len(text) > JSON_BYTES:
            raise ValueError(f"longer than {JSON_BYTES:,} bytes")
        content = parse_json(text)
    except InputError:
        raise
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read ({reason(error)})") from None
    if not isinstance(content, dict):
        raise InputError(f"{path}: must contain a JSON object")
    return content


def lines(file: TextIO) -> Iterator[str]:
    """The lines of a file; one too long to be ours is refused before it fills the memory."""
    while line := file.readline(LONGEST_LINE + 1):
        if len(line) > LONGEST_LINE:
            raise InputError(f"{file.name}: has a line of more than {LONGEST_LINE:,} characters")
        yield line


def records(path: Path, values: Any) -> list[dict[str, Any]]:
    """The history in a file, validated."""
    try:
        RECORDS.validate_python(values)
    except ValidationError as error:
        raise InputError(f"{path}: not a history written by lsdc ({first_problem(error)})") from None
    return list(values)


def first_problem(error: ValidationError) -> str:
    """Where a file is wrong first, and why."""
    first = error.errors(include_url=False)[0]
    return f"{'.'.join(map(str, first['loc'][:2]))}: {first['msg'].lower()}"


def read_records(path: Path) -> list[dict[str, Any]]:
    """The records of a metrics file, if it exists; incomplete lines, left by a crash, are skipped."""
    found = []
    if not plain_file(path).exists():
        return []
    with path.open(encoding="utf-8", errors="replace") as file:
        for line in lines(file):
            try:
                found += records(path, [parse_json(line)])
            except ValueError:
                continue
    return found
