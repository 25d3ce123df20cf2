"""Runs jobs in processes of their own, a few at a time: the engine of ``reproduce`` and of ``compare``."""

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
from typing import Any, Protocol

import torch
from threadpoolctl import threadpool_limits

from lsdc.errors import Busy, Diverged, InputError, Unsuitable
from lsdc.runs.folder import Run
from lsdc.training import device as devices
from lsdc.training.loop import Progress

MOST_JOBS = 8  # if nobody says how many: each takes a gigabyte or more
POLL = 0.5  # seconds between looks at the running jobs

Monitor = Callable[[Progress], None]


class Job(Protocol):
    """A data source, a method, its parameters and a seed: run once, and kept as a file."""

    @property
    def name(self) -> str:
        """The name of its file and of its run folder."""

    @property
    def group(self) -> str:
        """What it shares with the jobs that differ in the seed alone: a refusal is one for all of them."""

    @property
    def optional(self) -> bool:
        """Whether a method that cannot take the data is left out; else it ends everything."""

    def folder(self, out: Path) -> Path:
        """Where it runs."""

    def work(self, root: Path, out: Path, device: str, monitor: Monitor) -> object:
        """Run, and write the result."""


@dataclass(frozen=True)
class Place:
    """Where jobs run: data below ``root``, results below ``out``, on a device, so many at a time."""

    root: Path
    out: Path
    device: str = "auto"
    jobs: int | None = None

    def __post_init__(self) -> None:
        devices.choose(self.device)  # one that is not there is refused before anything runs

    @property
    def slots(self) -> range:
        """One for each job at a time: one a GPU, else one a core."""
        return range(self.jobs or torch.cuda.device_count() or min(MOST_JOBS, os.cpu_count() or 1))


@dataclass(frozen=True)
class Running:
    """A job at work: its process, and where what it ends with arrives."""

    job: Job
    process: SpawnProcess
    answer: Connection
    slot: int

    def last(self, out: Path) -> dict[str, Any]:
        """The newest record of its metrics, if there is one."""
        records = Run(self.job.folder(out)).read_metrics()
        return records[-1] if records else {}

    def progress(self, out: Path) -> tuple[dict[str, Any], int]:
        """The newest record, and how many epochs its stage has (none, where the settings do not say)."""
        record = self.last(out)
        if not record:
            return {}, 0
        settings = Run(self.job.folder(out)).read_json("config.json")["settings"]
        plan = settings.get(f"{record['stage']}_plan", settings.get("plan"))
        return record, plan.get("epochs", 0) if isinstance(plan, dict) else 0


@dataclass
class State:
    """How far the jobs are, for whoever shows it."""

    total: int
    done: int = 0
    running: list[Running] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)  # groups whose method cannot take the data, and why
    finished: Job | None = None  # the job that has just ended

    def ended(self, job: Job) -> str:
        """What a person is told of a job that has just ended."""
        return self.failed.get(job.name) or self.left_out.get(job.group) or "done"

    @property
    def notes(self) -> list[str]:
        """What stands below a table of what is not in it."""
        failed = [f"Failed, and not in the means: {name} ({why})." for name, why in self.failed.items()]
        return failed + [f"Left out: {group} ({why})." for group, why in self.left_out.items()]


def run_all(
    pending: Sequence[Job],
    state: State,
    place: Place,
    *,
    keys: Mapping[str, str] = MappingProxyType({}),
    watch: Callable[[State], None] = lambda state: None,
    ended: Callable[[State], None] = lambda state: None,
) -> None:
    """Run jobs until all are done; ``ended`` is called after each. Those with the same key share a pretext."""
    waiting = list(pending)
    watch(state)
    try:
        while waiting or state.running:
            slots = sorted(set(place.slots) - {r.slot for r in state.running})
            ready = (job for job in waiting if _may_start(job, keys, state.running, place.out))
            if slots and (job := next(ready, None)):  # one at a time, so that the next look sees it at work
                state.running.append(_start(job, place, slots[0]))
                waiting.remove(job)
            for running in [r for r in state.running if not r.process.is_alive()]:
                state.running.remove(running)
                _end(running, state)
                state.done += sum(job.group in state.left_out for job in waiting)
                waiting = [job for job in waiting if job.group not in state.left_out]
                ended(state)
            watch(state)
            state.finished = None
            time.sleep(POLL)
    finally:
        for running in state.running:
            running.process.terminate()


def _may_start(job: Job, keys: Mapping[str, str], running: list[Running], out: Path) -> bool:
    """Whether nobody is at work on the pretext that the job needs."""
    key = keys.get(job.name)
    same = (r for r in running if key and keys.get(r.job.name) == key)
    return all(r.last(out).get("stage") not in (None, "pretext") for r in same)


def _start(job: Job, place: Place, slot: int) -> Running:
    context = multiprocessing.get_context("spawn")
    answer, theirs = context.Pipe(duplex=False)
    device = place.device
    if device in ("auto", "cuda") and torch.cuda.device_count() > 1:
        device = f"cuda:{slot % torch.cuda.device_count()}"
    process = context.Process(target=_work, args=(job, place.root, place.out, device, theirs), daemon=True)
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the parent alone, which decides
    try:
        process.start()
    finally:
        signal.signal(signal.SIGINT, before)
    theirs.close()
    return Running(job, process, answer, slot)


def _work(job: Job, root: Path, out: Path, device: str, answer: Connection) -> None:
    """In a process of its own, and on one thread, so that the result depends on no number of cores or jobs."""
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1):
            job.work(root, out, device, _stop_if_alone)
    except Exception as error:  # whatever it is, the other jobs go on, and the table names this one
        lines = str(error).splitlines() or [""]
        known = isinstance(error, (InputError, Diverged))
        answer.send((_whose(error), lines[0] if known else f"{type(error).__name__}: {lines[0]}"))
    else:
        answer.send(None)


def _whose(error: Exception) -> str:
    """Whom an error is about: the method, which does not suit the data, the user, or this one job."""
    if isinstance(error, Unsuitable):
        return "method"
    return "user" if isinstance(error, InputError) and not isinstance(error, Busy) else "job"


def _stop_if_alone(progress: Progress) -> None:
    """A job whose parent was killed stops at the end of its epoch: nobody would write the table."""
    parent = multiprocessing.parent_process()
    if progress.record is not None and parent is not None and not parent.is_alive():
        raise SystemExit(1)


def _end(running: Running, state: State) -> None:
    """Take note of how a job ended; a mistake of the user's ends everything, a method may be left out."""
    job = state.finished = running.job
    state.done += 1
    running.process.join()
    try:
        failure = running.answer.recv()
    except EOFError:
        failure = ("job", f"its process ended with code {running.process.exitcode} (-9: killed, memory?)")
    if failure is None:
        return
    whose, message = failure
    if whose == "job":
        state.failed[job.name] = message
    elif whose == "method" and job.optional:
        state.left_out[job.group] = message
    else:
        raise InputError(message)
