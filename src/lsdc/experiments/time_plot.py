"""The plot of a comparison: each method's score against its time. Needs matplotlib."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lsdc.experiments.figures import BLUE, GREY, ORANGE, STYLE, as_bytes, pyplot
from lsdc.experiments.table import BASE, BELOW, BELOW_OWN, Row
from lsdc.runs.atomic import write_atomic

PLACES = ((8, 4), (8, -10), (-8, 4), (-8, -10))  # of a name, in points from its ring: the first free one is used


def against_time(rows: Sequence[Row], title: str, file: Path) -> Path:
    """A dot per seed, a ring at the mean, a line at K-means; deep methods with a note are orange (``legend``)."""
    plt = pyplot()
    shown = [row for row in rows if row.leading]
    labelled = any("acc" in row.scores for row in shown)
    with plt.rc_context(STYLE):
        figure, axis = plt.subplots(figsize=(6.4, 4.0), layout="constrained")
        axis.set_xscale("log")
        axis.xaxis.set_major_formatter("{x:g}")
        axis.margins(x=0.2, y=0.12)
        rings = [_dots(axis, row, 100 if labelled else 1) for row in shown]
        figure.draw_without_rendering()  # the positions of the rings are needed to keep names from overlapping
        _names(axis, shown, rings)
        axis.set_xlabel("seconds per seed, one thread")
        axis.set_ylabel("ACC (%)" if labelled else "silhouette on the inputs")
        axis.set_title("\n".join([title, *legend(shown)]), parse_math=False)  # file names may contain dollar signs
        write_atomic(file, as_bytes(figure, "svg", {"Date": None}))
        plt.close(figure)
    return file


def legend(rows: Sequence[Row]) -> list[str]:
    """What orange stands for: the notes, in one line, if there are any."""
    notes = [note for note in (BELOW, BELOW_OWN) if any(row.note == note for row in rows)]
    return [f"orange: {' or '.join(notes)}"] if notes else []


def _colour(row: Row) -> str:
    return GREY if row.variant == BASE else ORANGE if row.note else BLUE


def _dots(axis: Any, row: Row, unit: float) -> tuple[float, float]:
    """Draw the seeds of a method and return their mean."""
    seconds, values = np.array(row.points).T * [[1], [unit]]
    axis.scatter(seconds, values, s=10, color=_colour(row), alpha=0.6, linewidths=0)
    x, y = float(seconds.mean()), float(values.mean())
    axis.scatter([x], [y], s=60, facecolors="none", edgecolors=_colour(row), linewidths=1.4)
    if row.variant == BASE:
        axis.axhline(y, color=GREY, linewidth=0.8, linestyle=":", zorder=0)
    return x, y


def _names(axis: Any, rows: Sequence[Row], rings: Sequence[tuple[float, float]]) -> None:
    """Write the methods' names where they do not overlap."""
    taken: list[Any] = []
    for row, ring in zip(rows, rings, strict=True):
        for place in PLACES:
            side = "left" if place[0] > 0 else "right"
            name = axis.annotate(row.method, ring, place, textcoords="offset points", color=_colour(row), ha=side)
            box = name.get_window_extent().padded(2)
            if not any(box.overlaps(other) for other in taken) or place == PLACES[-1]:
                taken.append(box)
                break
            name.remove()
