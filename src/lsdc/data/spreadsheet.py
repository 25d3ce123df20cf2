"""Cells of a CSV file that no spreadsheet runs as a formula, and that are read back exactly."""

import re

FORMULA = re.compile(r"[\s\x00-\x1f\x7f\u200b\ufeff]*[=+\-@＝＋－＠]|[\t\r\n]")  # what a spreadsheet would evaluate
NUMBER = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?", re.ASCII)
SPECIAL = re.compile(r'[,;\t"\r\n]')  # some countries' spreadsheets take semicolons for commas
SURROGATE = re.compile(r"(\\*)([\ud800-\udfff])|(\\+)(?=ud[89a-f][0-9a-f]{2})")
ESCAPED = re.compile(r"(\\+)(ud[89a-f][0-9a-f]{2})")


def _runs(text: str) -> bool:
    """Whether a spreadsheet would evaluate a cell, or could once an apostrophe is removed."""
    text = text.lstrip("'")
    return FORMULA.match(text) is not None and NUMBER.fullmatch(text) is None


def safe_path(name: str) -> str:
    """A relative path to the same file that no spreadsheet takes for a formula."""
    return f"./{name}" if _runs(name) else name


def cell(value: object) -> str:
    """A cell for any value; what looks like a formula gets a leading apostrophe, which marks text."""
    text = SURROGATE.sub(_escaped, str(value))
    text = f"'{text}" if _runs(text) else text
    return '"' + text.replace('"', '""') + '"' if SPECIAL.search(text) else text


def text_of(content: str) -> str:
    """The value of a cell, once the CSV reader has removed its quotes."""
    text = content[1:] if content.startswith("'") and _runs(content) else content
    return ESCAPED.sub(_restored, text)


def _escaped(found: re.Match[str]) -> str:
    """Escape bytes of file names that are not valid UTF-8, and double backslashes that would look the same."""
    before, byte, slashes = found.groups()
    return 2 * slashes if slashes else f"{2 * before}\\u{ord(byte):04x}"


def _restored(found: re.Match[str]) -> str:
    slashes, code = found.groups()
    half = slashes[: len(slashes) // 2]
    return half + (chr(int(code[1:], 16)) if len(slashes) % 2 else code)
