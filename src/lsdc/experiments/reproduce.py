"""Rerun a table: every cell once, in processes of their own, and the table written anew after each."""

import json
import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch
from threadpoolctl import threadpool_limits

from lsdc.data.datasets import DATASETS
from lsdc.errors import InputError, unknown
from lsdc.experiments import cells as cells_
from lsdc.experiments.cells import Cell, has_pretext, pretext_key
from lsdc.experiments.recipes import SCALES
from lsdc.experiments.tables import TABLES, VARIANTS, Row, belongs, check, latex, markdown, summarise, table
from lsdc.training.checkpoint import write_atomic
from lsdc.training.loop import Diverged, Progress
from lsdc.training.run import Run

Abouts = dict[str, dict[str, Any]]  # what is known of each data set (``cells.described``)

MOST_JOBS = 8  # if nobody says how many: each takes a gigabyte or more
POLL = 0.5  # seconds between looks at the running cells


@dataclass(frozen=True)
class Running:
    """A cell at work: its process, and where what it ends with arrives."""

    cell: Cell
    process: SpawnProcess
    answer: Connection
    slot: int

    def last(self, out: Path) -> dict[str, Any]:
        """The newest record of its metrics, if there is one."""
        records = Run(self.cell.folder(out)).read_metrics()
        return records[-1] if records else {}

    def progress(self, out: Path) -> tuple[dict[str, Any], int]:
        """The newest record, and how many epochs its stage has."""
        record = self.last(out)
        if not record:
            return {}, 0
        settings = Run(self.cell.folder(out)).read_json("config.json")["settings"]
        return record, settings["pretext_plan" if record["stage"] == "pretext" else "plan"]["epochs"]


@dataclass
class State:
    """How far a table is, for whoever shows it."""

    total: int
    done: int = 0
    running: list[Running] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    finished: Cell | None = None  # the cell that has just ended


def grid(name: str, abouts: Abouts, seeds: int, scale: str, samples: int | None = None) -> list[Cell]:
    """The cells of a table; those on the features of a pretext only where there is one."""
    cells = [
        Cell(dataset, variant, scale, seed, samples)
        for dataset in abouts
        for seed in range(seeds)
        for variant in table(name).variants
    ]
    return [c for c in cells if VARIANTS[c.variant].on != "pretext" or has_pretext(c, abouts[c.dataset])]


def look(name: str, datasets: Sequence[str], scale: str, root: Path, samples: int | None = None) -> Abouts:
    """What the data sets of a table are, all of them read before anything is run."""
    if scale not in SCALES:
        raise unknown("scale", scale, SCALES)
    for dataset in datasets:
        if dataset not in DATASETS:
            raise unknown("data set", dataset, DATASETS)
    abouts = {dataset: cells_.described(cells_.opened(dataset, root, samples)) for dataset in datasets}
    check(name, datasets, {dataset: len(abouts[dataset]["shape"]) == 3 for dataset in datasets})
    return abouts


def reproduce(
    name: str,
    abouts: Abouts,
    seeds: int,
    scale: str,
    root: Path,
    out: Path,
    jobs: int | None = None,
    device: str = "auto",
    samples: int | None = None,
    watch: Callable[[State], None] = lambda state: None,
) -> tuple[list[Row], State]:
    """Run the cells of a table that are not there yet, and write OUT/TABLE-SCALE.md, .tex and .json."""
    jobs = jobs or torch.cuda.device_count() or min(MOST_JOBS, os.cpu_count() or 1)
    wanted = grid(name, abouts, seeds, scale, samples)
    pending = [cell for cell in wanted if cells_.read(cell, out, abouts[cell.dataset]) is None]
    keys = {cell: _pretext(cell, abouts[cell.dataset]) for cell in pending}
    state = State(len(wanted), len(wanted) - len(pending))
    rows = write(name, scale, out, state.failed, tuple(abouts))
    watch(state)
    try:
        while pending or state.running:
            slots = sorted(set(range(jobs)) - {r.slot for r in state.running})
            ready = (cell for cell in pending if _may_start(cell, keys, state.running, out))
            if slots and (cell := next(ready, None)):  # one at a time, so that the next look sees it at work
                state.running.append(_start(cell, root, out, device, slots[0]))
                pending.remove(cell)
            for running in [r for r in state.running if not r.process.is_alive()]:
                state.running.remove(running)
                _end(running, state)
                rows = write(name, scale, out, state.failed, tuple(abouts))
            watch(state)
            state.finished = None
            time.sleep(POLL)
    finally:
        for running in state.running:
            running.process.terminate()
    return rows, state


def _pretext(cell: Cell, about: dict[str, Any]) -> str:
    """Cells of the same key share a pretext; empty if there is none to wait for."""
    decided = {"seed": cell.seed, **cells_.config(cell, about)}
    return pretext_key(decided) if has_pretext(cell, about) else ""


def _may_start(cell: Cell, keys: dict[Cell, str], running: list[Running], out: Path) -> bool:
    """Whether nobody is at work on the pretext that the cell needs."""
    same = (r for r in running if keys[cell] and keys[r.cell] == keys[cell])
    return all(r.last(out).get("stage") == "clustering" for r in same)


def _start(cell: Cell, root: Path, out: Path, device: str, slot: int) -> Running:
    context = multiprocessing.get_context("spawn")
    answer, theirs = context.Pipe(duplex=False)
    if device in ("auto", "cuda") and torch.cuda.device_count() > 1:
        device = f"cuda:{slot % torch.cuda.device_count()}"
    process = context.Process(target=_work, args=(cell, root, out, device, theirs), daemon=True)
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the parent alone, which decides
    try:
        process.start()
    finally:
        signal.signal(signal.SIGINT, before)
    theirs.close()
    return Running(cell, process, answer, slot)


def _work(cell: Cell, root: Path, out: Path, device: str, answer: Connection) -> None:
    """In a process of its own, and on one thread, so that the result depends on no number of cores or jobs."""
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1):
            cells_.run(cell, root, out, device, _stop_if_alone)
    except Exception as error:  # whatever it is, the other cells go on, and the table names this one
        lines = str(error).splitlines() or [""]
        known = isinstance(error, (InputError, Diverged))
        answer.send((isinstance(error, InputError), lines[0] if known else f"{type(error).__name__}: {lines[0]}"))
    else:
        answer.send(None)


def _stop_if_alone(progress: Progress) -> None:
    """A cell whose parent was killed stops at the end of its epoch: nobody would write the table."""
    parent = multiprocessing.parent_process()
    if progress.record is not None and parent is not None and not parent.is_alive():
        raise SystemExit(1)


def _end(running: Running, state: State) -> None:
    """Take note of how a cell ended; a mistake of the user's ends everything."""
    state.finished = running.cell
    state.done += 1
    running.process.join()
    try:
        failure = running.answer.recv()
    except EOFError:
        failure = (False, f"its process ended with code {running.process.exitcode} (-9: killed, memory?)")
    if failure is None:
        return
    users, message = failure
    if users:
        raise InputError(message)
    state.failed[running.cell.name] = message


def write(
    name: str, scale: str, out: Path, failed: Mapping[str, str] = MappingProxyType({}), asked: Sequence[str] = ()
) -> list[Row]:
    """Write the table of all finished cells below ``out``, whichever call ran them, if their settings are today's."""
    named = [Cell.named(file.stem) for file in sorted((out / "cells").glob("*.json"))]
    found = [c for c in named if c and c.scale == scale and c.variant in TABLES[name].variants]
    wanted = [c for c in found if c.dataset in asked or belongs(name, c.dataset)]
    rows = summarise(name, filter(None, (cells_.read(cell, out) for cell in wanted)))
    content = {"table": name, "scale": scale, "rows": [_plain(row) for row in rows], "failed": dict(failed)}
    try:
        out.mkdir(parents=True, exist_ok=True)
        for suffix, text in (
            (".md", markdown(name, scale, rows, failed)),
            (".tex", latex(name, scale, rows, failed)),
            (".json", json.dumps(content, indent=1) + "\n"),
        ):
            write_atomic(out / f"{name}-{scale}{suffix}", text.encode())
    except OSError as error:
        raise InputError(f"--out {out}: cannot write there ({error.strerror})") from None
    return rows


def _plain(row: Row) -> dict[str, Any]:
    return {**vars(row), "measured": row.measured}
