"""Rerun a table: every cell once, and the table written anew after each."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from lsdc.data.datasets import DATASETS
from lsdc.errors import InputError, unknown
from lsdc.experiments import cells as cells_
from lsdc.experiments.cells import Cell, pretext
from lsdc.experiments.engine import Place, State, run_all
from lsdc.experiments.recipes import SCALES
from lsdc.experiments.results import described
from lsdc.experiments.tables import VARIANTS, Row, belongs, check, columns, latex, markdown, summarise
from lsdc.runs.atomic import write_atomic

Abouts = dict[str, dict[str, Any]]  # what is known of each data set (``cells.described``)


def grid(
    name: str, abouts: Abouts, seeds: int, scale: str, samples: int | None = None, methods: Sequence[str] = ()
) -> list[Cell]:
    """The cells of a table, of some methods or of all; those on the features of a pretext only where there is one."""
    cells = [
        Cell(dataset, variant, scale, seed, samples)
        for dataset in abouts
        for seed in range(seeds)
        for variant in columns(name, dataset, methods)
    ]
    return [c for c in cells if VARIANTS[c.variant].on != "pretext" or pretext(c, abouts[c.dataset])]


def look(name: str, datasets: Sequence[str], scale: str, root: Path, samples: int | None = None) -> Abouts:
    """What the data sets of a table are, all of them read before anything is run."""
    if scale not in SCALES:
        raise unknown("scale", scale, SCALES)
    for dataset in datasets:
        if dataset not in DATASETS:
            raise unknown("data set", dataset, DATASETS)
    abouts = {dataset: described(cells_.opened(dataset, root, samples)) for dataset in datasets}
    check(name, datasets, {dataset: len(abouts[dataset]["shape"]) == 3 for dataset in datasets})
    return abouts


def reproduce(
    name: str,
    wanted: Sequence[Cell],
    abouts: Abouts,
    scale: str,
    place: Place,
    watch: Callable[[State], None] = lambda state: None,
) -> tuple[list[Row], State]:
    """Run the cells of a table that are not there yet, and write OUT/TABLE-SCALE.md, .tex and .json."""
    if not wanted:
        raise InputError(f"nothing to run: table {name} has none of these methods on {', '.join(abouts)}")
    pending = [cell for cell in wanted if cells_.read(cell, place.out, abouts[cell.dataset]) is None]
    keys = {cell.name: pretext(cell, abouts[cell.dataset]) for cell in pending}
    state = State(len(wanted), len(wanted) - len(pending))
    rows = write(name, scale, place.out, state, tuple(abouts))

    def ended(state: State) -> None:
        if {cell.group for cell in wanted} <= state.left_out.keys():
            raise InputError(next(iter(state.left_out.values())))
        rows[:] = write(name, scale, place.out, state, tuple(abouts))

    run_all(pending, state, place, keys=keys, watch=watch, ended=ended)
    return rows, state


def write(name: str, scale: str, out: Path, state: State | None = None, asked: Sequence[str] = ()) -> list[Row]:
    """Write the table of all finished cells below ``out``, whichever call ran them, if their settings are today's."""
    state = state or State(0)
    named = [Cell.named(file.stem) for file in sorted((out / "cells").glob("*.json"))]
    found = [c for c in named if c and c.scale == scale and c.variant in columns(name)]
    wanted = [c for c in found if c.dataset in asked or belongs(name, c.dataset)]
    rows = summarise(name, filter(None, (cells_.read(cell, out) for cell in wanted)))
    ends = {"failed": state.failed, "left_out": state.left_out}
    content = {"table": name, "scale": scale, "rows": [_plain(row) for row in rows], **ends}
    try:
        out.mkdir(parents=True, exist_ok=True)
        for suffix, text in (
            (".md", markdown(name, scale, rows, state.notes)),
            (".tex", latex(name, scale, rows, state.notes)),
            (".json", json.dumps(content, indent=1) + "\n"),
        ):
            write_atomic(out / f"{name}-{scale}{suffix}", text.encode())
    except OSError as error:
        raise InputError(f"--out {out}: cannot write there ({error.strerror})") from None
    return rows


def _plain(row: Row) -> dict[str, Any]:
    return {**vars(row), "measured": row.measured}
