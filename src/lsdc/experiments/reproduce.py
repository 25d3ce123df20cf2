"""Rerun a table: every cell once, in processes of their own, and the table written anew after each."""

import json
import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any

import torch

from lsdc.data.datasets import DATASETS, Dataset
from lsdc.errors import InputError, unknown
from lsdc.experiments import cells as cells_
from lsdc.experiments.cells import Cell, build, has_pretext
from lsdc.experiments.recipes import SCALES
from lsdc.experiments.tables import TABLES, VARIANTS, Row, check, latex, markdown, summarise, table
from lsdc.training.checkpoint import write_atomic
from lsdc.training.loop import Diverged, Progress
from lsdc.training.run import Run

POLL = 0.5  # seconds between looks at the running cells


@dataclass(frozen=True)
class Running:
    """A cell at work: its process, and where what it ends with arrives."""

    cell: Cell
    process: SpawnProcess
    answer: Connection

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


def grid(name: str, datasets: dict[str, Dataset], seeds: int, scale: str, samples: int | None = None) -> list[Cell]:
    """The cells of a table; those on the features of a pretext only where there is one."""
    cells = [
        Cell(dataset, variant, scale, seed, samples)
        for dataset in datasets
        for seed in range(seeds)
        for variant in table(name).variants
    ]
    return [c for c in cells if VARIANTS[c.variant].on != "pretext" or has_pretext(c, datasets[c.dataset])]


def data_for(
    name: str, datasets: Sequence[str], scale: str, root: Path, samples: int | None = None
) -> dict[str, Dataset]:
    """The data sets of a table, all of them read before anything is run."""
    if scale not in SCALES:
        raise unknown("scale", scale, SCALES)
    for dataset in datasets:
        if dataset not in DATASETS:
            raise unknown("data set", dataset, DATASETS)
    found = {dataset: cells_.opened(dataset, root, samples) for dataset in datasets}
    check(name, datasets, {dataset: getattr(found[dataset].X, "ndim", 2) > 2 for dataset in datasets})
    return found


def reproduce(
    name: str,
    datasets: dict[str, Dataset],
    seeds: int,
    scale: str,
    root: Path,
    out: Path,
    jobs: int = 1,
    device: str = "auto",
    samples: int | None = None,
    watch: Callable[[State], None] = lambda state: None,
) -> tuple[list[Row], State]:
    """Run the cells of a table that are not there yet, and write OUT/TABLE-SCALE.md, .tex and .json."""
    wanted = grid(name, datasets, seeds, scale, samples)
    pending = [cell for cell in wanted if cells_.read(cell, datasets[cell.dataset], out) is None]
    keys = {cell: _pretext(cell, datasets[cell.dataset]) for cell in pending}
    state = State(len(wanted), len(wanted) - len(pending))
    rows = write(name, scale, datasets, out, samples)
    watch(state)
    try:
        while pending or state.running:
            free = jobs - len(state.running)
            for cell in [cell for cell in pending if _may_start(cell, keys, state.running, out)][:free]:
                state.running.append(_start(cell, root, out, device, jobs))
                pending.remove(cell)
                break  # the next look sees this one at work
            for running in [r for r in state.running if not r.process.is_alive()]:
                state.running.remove(running)
                _end(running, state)
                rows = write(name, scale, datasets, out, samples)
            watch(state)
            state.finished = None
            time.sleep(POLL)
    finally:
        for running in state.running:
            running.process.terminate()
    return rows, state


def _pretext(cell: Cell, dataset: Dataset) -> str:
    """Cells of the same key share a pretext; empty if there is none to wait for."""
    params = build(cell, dataset).get_params()
    if "pretext" not in params:
        return ""
    names = ("backbone", "width", "augment", "pretext", "pretext_plan", "batch_size")
    return json.dumps([cell.dataset, cell.seed, [params[name] for name in names]], default=str)


def _may_start(cell: Cell, keys: dict[Cell, str], running: list[Running], out: Path) -> bool:
    """Whether nobody is at work on the pretext that the cell needs."""
    same = (r for r in running if keys[cell] and keys[r.cell] == keys[cell])
    return all(r.last(out).get("stage") == "clustering" for r in same)


def _start(cell: Cell, root: Path, out: Path, device: str, jobs: int) -> Running:
    context = multiprocessing.get_context("spawn")
    answer, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(cell, root, out, device, jobs, theirs), daemon=True)
    process.start()
    theirs.close()
    return Running(cell, process, answer)


def _work(cell: Cell, root: Path, out: Path, device: str, jobs: int, answer: Connection) -> None:
    """In a process of its own: one cell, on its share of the machine."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    if jobs > 1:
        torch.set_num_threads(max(1, (os.cpu_count() or 1) // jobs))
        if device == "auto" and torch.cuda.device_count() > 1:
            torch.cuda.set_device(cell.seed % torch.cuda.device_count())
    try:
        cells_.run(cell, root, out, device, _stop_if_alone)
    except (InputError, Diverged, MemoryError, OSError) as error:
        answer.send((isinstance(error, InputError), str(error) or type(error).__name__))
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
    try:
        failure = running.answer.recv() if running.answer.poll() else (False, "its process was killed (memory?)")
    except EOFError:
        failure = (False, "its process was killed (memory?)")
    running.process.join()
    if failure is None:
        return
    users, message = failure
    if users:
        raise InputError(message)
    state.failed[running.cell.name] = message


def write(name: str, scale: str, datasets: dict[str, Dataset], out: Path, samples: int | None = None) -> list[Row]:
    """Write the table of all finished cells below ``out``, whichever call ran them."""
    found = []
    for file in sorted((out / "cells").glob("*.json")):
        cell = Cell.named(file.stem)
        if cell is None or cell.scale != scale or cell.variant not in TABLES[name].variants:
            continue
        data = datasets.get(cell.dataset) if cell.samples == samples else None
        found.append(cells_.read(cell, data, out) if data else cells_.parse(file))
    rows = summarise(name, [result for result in found if result])
    stem = out / f"{name}-{scale}"
    out.mkdir(parents=True, exist_ok=True)
    content = {"table": name, "scale": scale, "rows": [_plain(row) for row in rows]}
    for suffix, text in (
        (".md", markdown(name, scale, rows)),
        (".tex", latex(name, scale, rows)),
        (".json", json.dumps(content, indent=1) + "\n"),
    ):
        write_atomic(stem.with_name(stem.name + suffix), text.encode())
    return rows


def _plain(row: Row) -> dict[str, Any]:
    return {**vars(row), "measured": row.measured}
