"""What the site needs beside the pages: files above docs/, and lists as CommonMark reads them. MkDocs calls this."""

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ABOVE = {"index.md": "README.md", "CONTRIBUTING.md": "CONTRIBUTING.md", "CHANGELOG.md": "CHANGELOG.md"}
LINK = re.compile(r"\]\((?:\.\./|docs/)([^)#\s]+)")
ITEM = re.compile(r"([-*]|\d+\.) ")


def on_files(files: Files, config: Any) -> Files:
    """The site also has the pages and figures above docs/ that its pages link to; what is missing is a warning."""
    root = Path(config.config_file_path).parent
    text = "".join(page.content_string for page in files.documentation_pages())
    linked = {name for name in re.findall(r"\]\(\.\./([^)#\s]+)", text) if (root / name).is_file()}
    wanted = {name: name for name in {*linked, "LICENSE"} - set(ABOVE.values())} | ABOVE
    for name, source in wanted.items():
        files.append(File.generated(config, name, abs_src_path=str(root / source)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links from the root of the repository, or to it, are links within the site."""
    if page.file.src_uri == "index.md":
        page.meta["hide"] = ["navigation"]  # a section of its own, with nothing beside it
    return spaced(LINK.sub(lambda link: f"]({link[1]}", markdown).replace("](README.md", "](index.md"))


def spaced(markdown: str) -> str:
    """A blank line where a list or a table follows a paragraph at once, which Python-Markdown needs."""
    lines: list[str] = []
    fenced = False
    for line in markdown.split("\n"):
        fenced ^= line.lstrip().startswith("```")
        before = lines[-1] if lines else ""
        begins = any(starts(line) and not starts(before) for starts in (ITEM.match, re.compile(r"\|").match))
        if begins and not fenced and before.strip() and not before.startswith((" ", "#")):
            lines.append("")
        lines.append(line)
    return "\n".join(lines)
