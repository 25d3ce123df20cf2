"""The messages that docs/when-it-goes-wrong.md explains are those that the program prints."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SHORTEST = 13  # characters of a piece of a message that is looked for


def templates():
    """Every text of the package: as a pattern, with anything in the place of its values, and its fixed characters."""
    for file in (ROOT / "src").rglob("*.py"):
        tree = ast.parse(file.read_text())
        inside = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside:
                yield re.escape(node.value), node.value
            elif isinstance(node, ast.JoinedStr):
                parts = [part.value if isinstance(part, ast.Constant) else None for part in node.values]
                pattern = "".join(".{0,200}?" if part is None else re.escape(part) for part in parts)
                yield pattern, "".join(part or "\n" for part in parts)


TEMPLATES = [(re.compile(pattern, re.IGNORECASE), fixed) for pattern, fixed in templates() if len(fixed) >= SHORTEST]
FIXED = "\n".join(fixed for _, fixed in TEMPLATES).lower()


def documented():
    """What the page quotes: blocks of code, the text after "You see", the first column of its tables."""
    text = (ROOT / "docs" / "when-it-goes-wrong.md").read_text()
    for block in re.findall(r"```\n(.*?)```", text, re.DOTALL):
        yield from block.splitlines()
    prose = re.sub(r"```\n.*?```", "", text, flags=re.DOTALL)
    for line in prose.splitlines():
        quoted = line.split("|")[1] if line.startswith("| ") else line.partition("**It means**")[0]
        if line.startswith(("| ", "**You see**")):
            yield from re.findall(r"`([^`]+)`", quoted)


@pytest.mark.parametrize("message", list(documented()), ids=lambda message: message[:40])
def test_the_message_exists(message):
    for piece in message.split("..."):
        printed = {fixed for pattern, fixed in TEMPLATES if pattern.search(piece)}
        covered = sum(map(len, printed))
        assert piece.lower() in FIXED or len(piece) < SHORTEST or covered > len(piece) / 2, printed
