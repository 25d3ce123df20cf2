"""Files that anybody may have written: plain files in their own folder, in bounded memory, JSON of bounded depth."""

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, TextIO

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from lsdc.errors import InputError, reason

JSON_BYTES = 2**26  # of a JSON file or header: the history of 10,000 clusters over hundreds of epochs
DEEPEST = 12  # brackets in brackets; ours need five
LONGEST_LINE = 2**24  # of a labels or metrics file

Number = Annotated[int, Field(ge=-(2**63), lt=2**63)] | float | bool
Share = Annotated[float, Field(ge=0, le=1.001)]  # means round


class Record(BaseModel):
    """What is known of one epoch: what others compute with is typed, whatever else is reported is plain."""

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


RECORDS = TypeAdapter(list[Record])


def plain_file(path: Path) -> Path:
    """The path, if a file is there; a pipe, a device or a folder is refused, as reading may never end."""
    if path.exists() and not path.is_file():
        raise InputError(f"{path}: not a plain file")
    return path


def contained(folder: Path, names: Iterable[str]) -> None:
    """Refuse a folder in which one of the names is a link that leads out of it, or is no plain file."""
    root = os.path.realpath(folder)
    for name in names:
        path = folder / name
        if os.path.commonpath([root, os.path.realpath(path)]) != root:
            raise InputError(f"{path}: a link that leads out of the folder; put the file itself there")
        if not path.is_dir():
            plain_file(path)


def parse_json(text: str | bytes) -> Any:
    """The content of a JSON text; ``ValueError`` also where brackets nest too deep to be ours."""
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
        raise InputError(f"{path}: should hold a JSON object")
    return content


def lines(file: TextIO) -> Iterator[str]:
    """The lines of a file; one that is too long to be ours is refused before it is in memory."""
    while line := file.readline(LONGEST_LINE + 1):
        if len(line) > LONGEST_LINE:
            raise InputError(f"{file.name}: has a line of more than {LONGEST_LINE:,} characters")
        yield line


def records(path: Path, values: Any) -> list[dict[str, Any]]:
    """The history that a file holds, if it is one."""
    try:
        RECORDS.validate_python(values)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"][:2]))
        raise InputError(f"{path}: not a history written by lsdc ({place}: {first['msg'].lower()})") from None
    return list(values)


def read_records(path: Path) -> list[dict[str, Any]]:
    """The records of a metrics file, if it is there; lines that hold none, cut short by a stop, are left out."""
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
