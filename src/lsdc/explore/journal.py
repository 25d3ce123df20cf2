"""edits.jsonl: every change on a line of its own, on disk before it counts, never rewritten.

The first line says which labels the changes apply to. A last line truncated by a crash never counted and is dropped;
one that is whole, but says something impossible, was altered, and is refused like any other.
"""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError

from lsdc.errors import InputError, reason
from lsdc.explore.edits import EDIT, History, initial, replayed
from lsdc.runs.atomic import sync, sync_folder
from lsdc.runs.folder import Run
from lsdc.runs.untrusted import LONGEST_LINE, parse_json, plain_file

NAME = "edits.jsonl"
FORMAT = 1


def header_of(labels: Path) -> dict[str, Any]:
    """The first line of a journal: which labels its changes apply to."""
    return {"lsdc": "edits", "format": FORMAT, "labels": hashlib.sha256(labels.read_bytes()).hexdigest()[:16]}


def _is_torn(line: bytes) -> bool:
    """Whether a crash left only a part of a line, or zeros where the disk never wrote."""
    return not line.endswith(b"\n") or b"\0" in line


class Journal:
    """The journal of a run; ``version`` counts its edits."""

    def __init__(self, path: Path, header: dict[str, Any]) -> None:
        self.path, self.header = path, header
        self.version = 0
        self._size = 0  # bytes of the file that count

    @classmethod
    def open(cls, path: Path, header: dict[str, Any]) -> tuple["Journal", list[Any]]:
        """The journal and its edits; nothing is written before the first edit: another process may be writing one."""
        journal = cls(path, header)
        return journal, journal._read() if plain_file(path).exists() else []

    def _read(self) -> list[Any]:
        edits: list[Any] = []
        with self.path.open("rb") as file:
            for number, line in enumerate(iter(lambda: file.readline(LONGEST_LINE + 1), b""), start=1):
                if not file.peek(1) and _is_torn(line):
                    break
                try:
                    content = parse_json(line)
                    if number > 1:
                        edits.append(self._edit(content, number - 1))
                except (ValueError, KeyError, TypeError) as error:
                    raise InputError(f"{self.path}: line {number} is damaged ({reason(error)})") from None
                if number == 1:
                    self._check(content)
                self._size += len(line)
        self.version = len(edits)
        return edits

    def _edit(self, content: Any, version: int) -> Any:
        if content["version"] != version:
            raise ValueError(f"version {version} is missing")
        try:
            return EDIT.validate_python(content["edit"])
        except ValidationError as error:
            raise ValueError(error.errors(include_url=False)[0]["msg"]) from None

    def _check(self, header: Any) -> None:
        if not isinstance(header, dict) or header.get("lsdc") != "edits" or header.get("format") != FORMAT:
            raise InputError(f"{self.path}: this version of lsdc cannot read this journal of edits; move it away")
        if header != self.header:
            raise InputError(
                f"{self.path}: its changes apply to other labels, because the run was fitted again; "
                "move it away to start over"
            )

    def append(self, edit: Any) -> None:
        """Append an edit; it is on disk when this returns, or not in the file at all."""
        head = (json.dumps(self.header) + "\n").encode() if self._size == 0 else b""
        line = {"version": self.version + 1, "edit": edit.model_dump()}
        row = (json.dumps(line, separators=(",", ":")) + "\n").encode()
        if len(row) > LONGEST_LINE:
            raise InputError("too many samples for one change; select fewer at a time")
        content = head + row
        handle = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
        try:
            os.ftruncate(handle, self._size)  # a last line cut short by a crash never counted
            self._write(handle, content)
        finally:
            os.close(handle)
        if head:
            sync_folder(self.path.parent)
        self._size += len(content)
        self.version += 1

    def _write(self, handle: int, content: bytes) -> None:
        try:
            written = 0
            while written < len(content):
                written += os.write(handle, content[written:])
            sync(handle)
        except OSError:
            os.ftruncate(handle, self._size)  # a full disk took half a line
            raise


def corrected(run: Run, labels: np.ndarray, n_clusters: int | None) -> tuple[Journal, History]:
    """The journal of a run, and the history that its changes make of the run's own labels."""
    base = initial(labels, n_clusters, run.names())
    journal, edits = Journal.open(run.path / NAME, header_of(run.path / "labels.csv"))
    try:
        return journal, replayed(base, edits)
    except InputError as error:
        raise InputError(f"{journal.path}: does not match the labels ({error}); move it away") from None
