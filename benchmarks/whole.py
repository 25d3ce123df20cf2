"""Whole commands and fits: start-up, threads, prediction."""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from measuring import LONGEST, Row, child, environment
from scale import held
from startup import seconds as command_seconds

from lsdc import LSDC

FIT = """
import sys, time, numpy as np, torch, lsdc
torch.set_num_threads(int(sys.argv[1]))
{data}
started, cpu = time.perf_counter(), time.process_time()
model = lsdc.{model}.fit(X)
fit, cpu = time.perf_counter() - started, time.process_time() - cpu
started = time.perf_counter()
model.predict(X)
print(fit, cpu, time.perf_counter() - started, len(X))
"""
EMBEDDINGS = """
rng = np.random.default_rng(0)
X = (rng.normal(size=(20, 384))[rng.integers(20, size={n})] + rng.normal(size=({n}, 384))).astype("float32")
"""
FITS = {
    "10,000 x 384 embeddings": (EMBEDDINGS.format(n=10_000), "LSDC(20, random_state=0)"),
    "digits": ('X = lsdc.datasets.load("digits").X', "LSDC(10, random_state=0)"),
}
SMALL = {"500 x 384 embeddings": (EMBEDDINGS.format(n=500), "LSDC(20, random_state=0)")}
FIRST_STEP = """
import os, sys, time
from lsdc.training import loop
step = loop.Stage._train_step
def first(*arguments):
    step(*arguments)
    print(time.process_time(), flush=True)
    os._exit(0)
loop.Stage._train_step = first
from lsdc.__main__ import main
sys.argv = ["lsdc", "fit", "digits", "--quiet", "--out", sys.argv[1]]
main()
"""
PREDICT = """
import sys, time, numpy as np, lsdc
model = lsdc.load(sys.argv[1])
X = np.load(sys.argv[2], mmap_mode="r")
started = time.process_time()
model.predict(X)
print(time.process_time() - started)
"""


def startup(small=False):
    python = command_seconds(["-c", "pass"])
    words = {"lsdc --help": ["-m", "lsdc", "--help"], "import lsdc": ["-c", "import lsdc"]}
    taken = {name: command_seconds(call) for name, call in words.items()}
    with tempfile.TemporaryDirectory() as folder:
        said = child(FIRST_STEP, 1, [Path(folder) / "run"])
        if said:
            taken["lsdc fit digits, to the end of the first step"] = float(said[-1])
    return [
        Row("start-up", name, f"{s:.2f} s", f"python -c pass, {python:.3f} s", s / python) for name, s in taken.items()
    ]


def fits(small=False):
    result = []
    for name, (data, model) in (SMALL if small else FITS).items():
        code = FIT.format(data=data, model=model)
        said = [child(code, threads, [threads]) for threads in (1, 2)]
        if None in said:
            result.append(Row("fit", name, "-", f"took more than {LONGEST} s", None))
            continue
        one, two = (list(map(float, words)) for words in said)
        against = f"one thread, {one[0]:.1f} s ({one[1]:.1f} s of processor, {two[1]:.1f} s with two)"
        result.append(Row("fit", f"{name}, two threads", f"{two[0]:.1f} s", against, two[0] / one[0]))
        rate = one[3] / one[2]
        result.append(
            Row("predict", f"{name}, one thread", f"{rate:,.0f} samples/s", "time of the fit", one[2] / one[0])
        )
    return result


def prediction(small=False):
    """A mapped file: how many samples a second, and what is held in memory beyond the mapping."""
    sizes = (2_000, 4_000) if small else (100_000, 400_000)
    rng = np.random.default_rng(0)
    centres, result, most = rng.normal(size=(20, 384)).astype(np.float32), [], []
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        few = centres[rng.integers(20, size=1_000)] + rng.normal(size=(1_000, 384)).astype(np.float32)
        LSDC(20, random_state=0).fit(few).save(place / "model.safetensors")
        for n in sizes:
            X = np.lib.format.open_memmap(place / "x.npy", "w+", np.float32, (n, 384))
            for rows in np.array_split(np.arange(n), max(1, n // 10_000)):
                X[rows] = centres[rng.integers(20, size=len(rows))] + rng.normal(size=(len(rows), 384))
            X.flush()
            run = [sys.executable, "-c", PREDICT, str(place / "model.safetensors"), str(place / "x.npy")]
            process = subprocess.Popen(run, env=environment(1), stdout=subprocess.PIPE, text=True)
            most.append(0.0)
            while process.poll() is None:
                most[-1] = max(most[-1], held(process.pid)[0])
                time.sleep(0.02)
            taken, size = float(process.communicate()[0]), n * 384 * 4 / 2**20
            what = f"{n:,} x 384 from a mapped file, {n / taken:,.0f} samples a processor second"
            result.append(Row("predict", what, f"{most[-1]:.0f} MB held", f"the file, {size:.0f} MB", most[-1] / size))
    grown, more = most[1] - most[0], (sizes[1] - sizes[0]) * 384 * 4 / 2**20
    result.append(Row("predict", "memory held per MB of file", f"{grown:.0f} MB more", f"{more:.0f} MB", grown / more))
    return result
