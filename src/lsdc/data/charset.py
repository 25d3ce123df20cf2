"""The character set of a text file: UTF-8, or UTF-16 if it begins with a mark."""

import codecs
from pathlib import Path


def encoding(path: Path) -> str:
    """UTF-8 with or without a mark, or UTF-16 with one, as Excel writes "Unicode text"."""
    with path.open("rb") as file:
        return "utf-16" if file.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else "utf-8-sig"


def lines_of(path: Path) -> list[str]:
    """The lines of a text file, split at newlines only, unlike ``splitlines``."""
    with path.open(encoding=encoding(path)) as file:
        return [line.rstrip("\n") for line in file]


def not_utf8(path: Path) -> str:
    """Where a file is not the text it should be, and what to do."""
    if encoding(path) == "utf-16":
        return f"{path}: begins like UTF-16, but is truncated or damaged; save it as UTF-8"
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                line.decode()
            except UnicodeDecodeError as error:
                byte = line[error.start]
                return (
                    f"{path}: line {number} is not UTF-8 (byte 0x{byte:02x}); save the file as UTF-8 (Excel: CSV UTF-8)"
                )
    return f"{path}: is not UTF-8; save it as UTF-8"
