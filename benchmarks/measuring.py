"""What the parts of the benchmark share: clocks, the machine's matrix product, and child processes."""

import os
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import torch

from lsdc.functional.candidates import product

LONGEST = 240  # seconds that a child may take


class Row(NamedTuple):
    """One line of the table: a ratio of two things measured in the same run, or none, and why."""

    part: str
    what: str
    value: str
    against: str
    ratio: float | None


def seconds(function, *arguments, repeats=3):
    """The median of a few calls, after one that warms up."""
    times = []
    for _ in range(repeats + 1):
        started = time.perf_counter()
        function(*arguments)
        times.append(time.perf_counter() - started)
    return statistics.median(times[1:])


def cpu_seconds(function, repeats=5):
    """The best processor time of a few calls after one that warms up: what runs beside one thread is left out."""
    return versus(function, repeats=repeats)[0]


def versus(*functions, repeats=5):
    """The best processor times of functions that take turns, after a turn that warms up."""
    times = [[] for _ in functions]
    for _ in range(repeats + 1):
        for function, found in zip(functions, times, strict=True):
            started = time.process_time()
            function()
            found.append(time.process_time() - started)
    return [min(found[1:]) for found in times]


def sgemm(n=1024, repeats=20):
    """FLOP/s of a single-precision matrix product with one thread, the better of two libraries.

    PyTorch's own product is MKL's, which keeps AVX-512 from processors that are not Intel's; its convolutions are
    oneDNN's, and a convolution of single pixels is a product. The first is named beside it.
    """
    a, b, bias = torch.randn(n, n), torch.randn(n, n), torch.zeros(n)
    with torch.no_grad():
        plain, other = versus(lambda: torch.mm(a, b), lambda: product(a, b, bias), repeats=repeats)
    return 2 * n**3 / min(plain, other), 2 * n**3 / plain


def peak_gb():
    """Of this program. (``ru_maxrss`` of a child begins at the peak of the process that started it.)"""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 2**20


def environment(threads):
    """That of a child: ours, with so many threads that wait as those of the command line do."""
    many = {name: str(threads) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")}
    return {"GOMP_SPINCOUNT": "1000"} | os.environ | many


def child(code, threads=1, arguments=(), python=sys.executable, longest=LONGEST):
    """The words that a Python program says, in a process of its own; None if it takes too long."""
    run = [python, "-W", "ignore", "-c", code, *map(str, arguments)]
    try:
        done = subprocess.run(run, env=environment(threads), stdout=subprocess.PIPE, text=True, timeout=longest)
    except subprocess.TimeoutExpired:
        return None
    if done.returncode:
        raise RuntimeError(f"a child of the benchmark ended with {done.returncode}")
    return done.stdout.split()


def exponent(sizes, times):
    """The slope of log time against log size."""
    x, y = torch.tensor(sizes).double().log(), torch.tensor(times).double().log()
    return float(((x - x.mean()) * (y - y.mean())).sum() / (x - x.mean()).square().sum())


def growth(what, sizes, times):
    """A row for how times grow; children that took too long are left out, and said."""
    known = [(size, t) for size, t in zip(sizes, times, strict=True) if t is not None]
    missing = "" if len(known) == len(sizes) else f"; {len(sizes) - len(known)} took more than {LONGEST} s"
    value = ", ".join(f"{t:.3g} s" for _, t in known) + missing
    slope = exponent(*map(list, zip(*known, strict=True))) if len(known) > 1 else None
    return Row("growth", f"{what}: {', '.join(f'{size:,}' for size in sizes)}", value, "exponent", slope)


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
