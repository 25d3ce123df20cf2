"""A fit in a process of its own that can be killed at an exact point, and what it left behind."""

import json
import multiprocessing
import os
import resource
import signal
import subprocess
import sys
import warnings
from pathlib import Path

import torch

from lsdc import LSDC, datasets
from lsdc.cli.main import main
from lsdc.errors import HealthWarning, InputError
from lsdc.runs.folder import Run
from lsdc.training.loop import Stage

# one server for all tests of a worker: what it has imported, the processes it forks need not
FORKSERVER = multiprocessing.get_context("forkserver")
FORKSERVER.set_forkserver_preload(["lsdc.methods", "lsdc.data.datasets", "lsdc.cli.fit", "torch.distributed.nn"])
SMALL = {"epochs": 3, "pretext_plan": {"epochs": 2}, "batch_size": 32, "width": 0.1, "pool": 200, "random_state": 0}


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def counted(function, n, before=True):
    """The function, and death at its n-th call."""
    calls = 0

    def wrapper(*words, **options):
        nonlocal calls
        calls += 1
        if calls == n and before:
            die()
        result = function(*words, **options)
        if calls == n:
            die()
        return result

    return wrapper


def arm(point, n):
    """Let this process die at the n-th of some calls; returns the monitor for ``fit``."""
    if point == "step":
        return counted(lambda progress: None, n)
    if point == "half a file":
        write = os.fsync

        def half(handle):
            os.ftruncate(handle, os.fstat(handle).st_size // 2)
            die()
            write(handle)

        os.fsync = counted(half, n, before=False)
    else:
        os.replace = counted(os.replace, n, before=point == "before a rename")
    return None


def victim(folder, point, n, interval, limit):
    torch.set_num_threads(1)
    if limit:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    run = Run.resume(folder)
    run.interval = interval
    monitor = arm(point, n) if point else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HealthWarning)
        try:
            LSDC(4, **SMALL).fit(datasets.load("digits").X[:400], resume=run, monitor=monitor)
        except (InputError, OSError):
            sys.exit(2)


def attempt(folder, point=None, n=0, interval=0.0, limit=0):
    """The exit code of a fit that goes on with a run and may be killed."""
    return exit_code_of(victim, folder, point, n, interval, limit)


def exit_code_of(function, *words):
    """How a process ends that calls a function: minus the signal that killed it, if one did."""
    process = FORKSERVER.Process(target=function, args=words)
    process.start()
    process.join()
    return process.exitcode


def redirect(number, handle):
    """Let stdout (1) or stderr (2) go elsewhere, as if it had from the beginning."""
    os.dup2(handle, number)
    name, buffering, errors = (("stdout", -1, None), ("stderr", 1, "backslashreplace"))[number - 1]
    setattr(sys, name, open(number, "w", buffering, errors=errors, closefd=False))  # noqa: SIM115 (for as long as the process lives)


def command(words, folder, surround):
    os.chdir(folder)
    for number, name in ((1, "out"), (2, "err")):
        redirect(number, os.open(name, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600))
    surround()
    main([str(word) for word in words])


def started(folder, surround, *words):
    """A command line in a process of its own, after a function has made its surroundings there."""
    process = FORKSERVER.Process(target=command, args=(words, folder, surround))
    process.start()
    return process


def surrounded(folder, surround, *words):
    """Exit code, stdout and stderr of such a command."""
    process = started(folder, surround, *words)
    process.join()
    return process.exitcode, (folder / "out").read_text(), (folder / "err").read_text()


def interrupted(words, folder):
    """A command that Ctrl-C stops at the end of an epoch of one of its jobs."""
    program = [sys.executable, str(Path(__file__).with_name("interrupting_lsdc.py")), *words]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        program, cwd=folder, env=environment, capture_output=True, text=True, start_new_session=True, check=False
    )


def undisturbed():
    """Surroundings as they are."""


class Signals:
    """Surroundings in which a signal comes in the middle of the clustering, ``times`` in a row."""

    def __init__(self, number, times=1):
        self.number, self.times = number, times

    def __call__(self):
        take = Stage._train_step

        def signalled(stage, indices, x, epoch, steps):
            if (stage.objective.name, epoch, stage.step) == ("clustering", 1, 2):
                for _ in range(self.times):
                    os.write(1, b"signal\n")
                    signal.raise_signal(self.number)
                os.write(1, b"step\n")
            take(stage, indices, x, epoch, steps)

        Stage._train_step = signalled


def left(folder):
    """Everything a run came to that does not depend on the clock: labels, weights, records."""
    records = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    for record in records:
        del record["seconds"]
    model = (folder / "model.safetensors").read_bytes()
    length = int.from_bytes(model[:8], "little")  # the header holds times
    return (folder / "labels.csv").read_text(), model[8 + length :], records
