"""What the parts of the benchmark share: clocks, the machine's sgemm, and child processes."""

import os
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import torch


class Row(NamedTuple):
    """One line of the table: a ratio of two things measured in the same run."""

    part: str
    what: str
    value: str
    against: str
    ratio: float


def seconds(function, *arguments, repeats=3):
    """The median of a few calls, after one that warms up."""
    times = []
    for _ in range(repeats + 1):
        started = time.perf_counter()
        function(*arguments)
        times.append(time.perf_counter() - started)
    return statistics.median(times[1:])


def versus(one, other, repeats=5):
    """The best times of two functions that take turns: what runs beside them slows both, and the best the least."""
    times = [[], []]
    for i in range(2 * (repeats + 1)):
        started = time.perf_counter()
        (one, other)[i % 2]()
        times[i % 2].append(time.perf_counter() - started)
    return min(times[0][1:]), min(times[1][1:])


def sgemm(sizes=(512, 1024), repeats=60):
    """FLOP/s of a single-precision matrix product with the threads that PyTorch has: the best of many short ones.

    The machine's limit is asked for; long products are interrupted by what runs beside them, and reach half of it.
    """
    best = 0.0
    for n in sizes:
        a, b = torch.randn(n, n), torch.randn(n, n)
        for _ in range(repeats):
            started = time.perf_counter()
            torch.mm(a, b)
            best = max(best, 2 * n**3 / (time.perf_counter() - started))
    return best


def peak_gb():
    """Of this program. (``ru_maxrss`` of a child begins at the peak of the process that started it.)"""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 2**20


def child(code, threads=1, arguments=()):
    """The words that a Python program says, in a process of its own."""
    many = {name: str(threads) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")}
    run = [sys.executable, "-W", "ignore", "-c", code, *map(str, arguments)]
    return subprocess.run(run, env=os.environ | many, stdout=subprocess.PIPE, text=True, check=True).stdout.split()


def exponent(sizes, times):
    """The slope of log time against log size."""
    x, y = torch.tensor(sizes).double().log(), torch.tensor(times).double().log()
    return float(((x - x.mean()) * (y - y.mean())).sum() / (x - x.mean()).square().sum())


def hardware():
    known = Path("/proc/cpuinfo")
    lines = known.read_text().splitlines() if known.exists() else []
    info = [line for line in lines if line.startswith("model name")]
    name = info[0].split(":")[1].strip() if info else platform.processor()
    load = ", ".join(f"{x:.1f}" for x in os.getloadavg())
    return {
        "processor": name,
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "load beside it (1, 5, 15 minutes)": load,
        "torch": torch.__version__,
        "python": platform.python_version(),
    }
