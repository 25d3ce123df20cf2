"""Files that commands write where the user asks: never over the data, or over what a run consists of."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lsdc.errors import InputError

PAGES = ("report.html", "comparison.html")  # of a run, and made again at any time


def check_output(to: Path, run: Path, data: object) -> None:
    """Refuse an output file that is the data itself, or a file that the run needs."""
    from lsdc.runs.folder import FILES

    if os.path.isfile(to) and isinstance(data, (str, Path)) and os.path.isfile(data) and os.path.samefile(to, data):
        raise InputError(f"{to}: is the data itself, which would be lost; choose another file")
    place, inside = Path(os.path.realpath(to)), Path(os.path.realpath(run))
    needed = place.parent == inside and place.name in FILES and place.name not in PAGES
    if needed or inside / "checkpoint" in place.parents:
        raise InputError(f"{to}: belongs to the run itself; choose another file")


def write_output(to: Path, content: bytes) -> None:
    """Write a file whole or not at all."""
    from lsdc.runs.atomic import write_atomic

    with writing(to):
        write_atomic(to, content)


@contextmanager
def writing(to: Path) -> Iterator[None]:
    """A place that cannot be written to is the user's to change."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{to}: cannot be written ({error.strerror})") from None
