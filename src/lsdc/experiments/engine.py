"""Runs each job in a process of its own, a few at a time, and keeps their table up to date."""

import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerContext, SpawnContext
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch
from threadpoolctl import threadpool_limits

from lsdc.errors import Busy, Diverged, InputError, Unsuitable
from lsdc.experiments.job import Job
from lsdc.experiments.measure import Monitor
from lsdc.training import device as devices
from lsdc.training.context import Progress

MOST_JOBS = 8  # by default: each takes a gigabyte or more
POLL = 0.5  # seconds between checks on silent jobs


@dataclass(frozen=True)
class Place:
    """Where jobs run: data below ``root``, results below ``out``, on a device, a number of them at a time."""

    root: Path
    out: Path
    device: str = "auto"
    jobs: int | None = None

    def __post_init__(self) -> None:
        devices.choose(self.device)  # a missing device is refused before anything runs

    @property
    def slots(self) -> range:
        """Slots for jobs that run at a time: by default one per GPU, or one per core."""
        return range(self.jobs or torch.cuda.device_count() or min(MOST_JOBS, os.cpu_count() or 1))


@dataclass
class Running:
    """A running job: its process, the pipe it reports on, and its last report."""

    job: Job
    process: BaseProcess
    pipe: Connection
    slot: int
    progress: Progress | None = None


@dataclass(frozen=True)
class End:
    """A job's last report: nothing, or what went wrong and whose fault it is."""

    whose: str = ""
    message: str = ""


@dataclass
class State:
    """How far the jobs are, for display."""

    total: int
    done: int = 0
    running: list[Running] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)  # groups whose method cannot handle the data, and why
    finished: Job | None = None  # the job that just ended

    def ended(self, job: Job) -> str:
        """How to report a job that just ended."""
        return self.failed.get(job.name) or self.left_out.get(job.group) or "done"

    @property
    def notes(self) -> list[str]:
        """Notes below a table about results that are missing from it."""
        failed = [f"Failed, not included in the means: {name} ({why})." for name, why in self.failed.items()]
        return failed + [f"Left out: {group} ({why})." for group, why in self.left_out.items()]

    @property
    def ends(self) -> dict[str, Any]:
        """The same for the JSON of a table."""
        return {"failed": self.failed, "left_out": self.left_out}


Watch = Callable[[State], None]
Written = Callable[[Sequence[dict[str, Any]], State], None]


def run_table(
    jobs: Sequence[Job],
    finished: Mapping[str, dict[str, Any]],
    place: Place,
    write: Written,
    *,
    asked: Sequence[str],
    keys: Mapping[str, str] = MappingProxyType({}),
    watch: Watch = lambda state: None,
) -> State:
    """Run the jobs that have no result yet, and write the table after each; every result is read once.

    ``finished`` may hold results of other jobs too. If all groups ``asked`` for are left out, that is an error.
    """
    results = dict(finished)
    pending = [job for job in jobs if job.name not in results]
    state = State(len(jobs), len(jobs) - len(pending))

    def ended(state: State) -> None:
        if set(asked) <= state.left_out.keys():
            raise InputError(state.left_out[asked[0]])
        if (job := state.finished) and state.ended(job) == "done":
            results[job.name] = job.read(place.out)
        write(list(results.values()), state)

    write(list(results.values()), state)
    _run_all(pending, state, place, keys=keys, watch=watch, ended=ended)
    return state


def _run_all(
    pending: Sequence[Job],
    state: State,
    place: Place,
    *,
    keys: Mapping[str, str] = MappingProxyType({}),
    watch: Watch = lambda state: None,
    ended: Watch = lambda state: None,
) -> None:
    """Run jobs until all are done, and call ``ended`` after each. Jobs with the same key share a pretext."""
    waiting = list(pending)
    watch(state)
    try:
        while waiting or state.running:
            for slot in sorted(set(place.slots) - {r.slot for r in state.running}):
                ready = (job for job in waiting if _may_start(job, keys, state.running))
                if job := next(ready, None):
                    state.running.append(_start(job, place, slot))
                    waiting.remove(job)
            wait([running.pipe for running in state.running], POLL)
            for running, end in [(r, end) for r in state.running if (end := _heard(r))]:
                state.running.remove(running)
                _end(running.job, end, state)
                state.done += sum(job.group in state.left_out for job in waiting)
                waiting = [job for job in waiting if job.group not in state.left_out]
                ended(state)
                watch(state)
                state.finished = None
            watch(state)
    finally:
        for running in state.running:
            running.process.terminate()


def _may_start(job: Job, keys: Mapping[str, str], running: Sequence[Running]) -> bool:
    """Whether no running job is training the pretext that this job needs."""
    same = [r for r in running if keys.get(job.name) and keys.get(r.job.name) == keys[job.name]]
    return all(r.progress is not None and r.progress.stage != "pretext" for r in same)


def _context() -> ForkServerContext | SpawnContext:
    """How jobs are started: forked from a server that has imported what they need; on Windows from the beginning."""
    if sys.platform == "win32":
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["lsdc.experiments.job"])
    return context


def _start(job: Job, place: Place, slot: int) -> Running:
    context = _context()
    pipe, theirs = context.Pipe(duplex=False)
    device = place.device
    if device in ("auto", "cuda") and torch.cuda.device_count() > 1:
        device = f"cuda:{slot % torch.cuda.device_count()}"
    process = context.Process(target=_work, args=(job, place.root, place.out, device, theirs), daemon=True)
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # only the parent handles Ctrl-C
    try:
        process.start()
    finally:
        signal.signal(signal.SIGINT, before)
    theirs.close()
    return Running(job, process, pipe, slot)


def _work(job: Job, root: Path, out: Path, device: str, pipe: Connection) -> None:
    """Run a job in this process on one thread, so that results do not depend on the number of cores or jobs."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1):
            job.work(root, out, device, _reporter(pipe))
    except Exception as error:  # whatever it is, the other jobs continue, and the table names this one
        lines = str(error).splitlines() or [""]
        known = isinstance(error, (InputError, Diverged))
        pipe.send(End(_whose(error), lines[0] if known else f"{type(error).__name__}: {lines[0]}"))
    else:
        pipe.send(End())


def _whose(error: Exception) -> str:
    """Who an error concerns: the method, which does not suit the data, the user, or this job alone."""
    if isinstance(error, Unsuitable):
        return "method"
    return "user" if isinstance(error, InputError) and not isinstance(error, Busy) else "job"


def _reporter(pipe: Connection) -> Monitor:
    """A monitor that reports every epoch, and each stage as soon as it begins."""
    stage = ""

    def report(progress: Progress) -> None:
        nonlocal stage
        if progress.record is None and progress.stage == stage:
            return
        stage = progress.stage
        try:
            pipe.send(progress)
        except OSError:  # the parent was killed, so nobody would write the table
            raise SystemExit(1) from None

    return report


def _heard(running: Running) -> End | None:
    """Read a job's reports; returns its end once it has come."""
    try:
        while running.pipe.poll():
            message = running.pipe.recv()
            if isinstance(message, End):
                running.process.join()
                return message
            running.progress = message
    except (EOFError, OSError):
        running.process.join()
        return End(
            "job",
            f"its process ended with code {running.process.exitcode} (-9: killed, perhaps out of memory)",
        )
    return None


def _end(job: Job, end: End, state: State) -> None:
    """Record how a job ended; a user's mistake stops everything, an unsuitable method is left out."""
    state.finished = job
    state.done += 1
    if end.whose == "job":
        state.failed[job.name] = end.message
    elif end.whose == "method" and job.optional:
        state.left_out[job.group] = end.message
    elif end.whose:
        raise InputError(end.message)
