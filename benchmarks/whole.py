"""Whole commands and fits: start-up, threads, processes, other packages, prediction."""

import importlib.util

from measuring import Row, child
from startup import seconds as command_seconds

FIT = """
import sys, time, numpy as np, torch, lsdc
torch.set_num_threads(int(sys.argv[1]))
{data}
started = time.perf_counter()
model = lsdc.{model}.fit(X)
fit = time.perf_counter() - started
started = time.perf_counter()
model.predict(X)
print(fit, time.perf_counter() - started, len(X))
"""
EMBEDDINGS = """
rng = np.random.default_rng(0)
X = (rng.normal(size=(20, 384))[rng.integers(20, size=10_000)] + rng.normal(size=(10_000, 384))).astype("float32")
"""
DIGITS = 'X = lsdc.datasets.load("digits").X'
FITS = {
    "10,000 x 384 embeddings": (EMBEDDINGS, "LSDC(20, random_state=0)"),
    "digits": (DIGITS, "LSDC(10, random_state=0)"),
}
PEER = """
import sys, time, numpy as np, torch, lsdc
torch.set_num_threads(int(sys.argv[1]))
{data}
started = time.perf_counter()
{work}
print(time.perf_counter() - started)
"""
PEERS = {
    "K-means": (
        "lsdc.KMeans(20, random_state=0).fit(X)",
        "sklearn",
        "scikit-learn",
        "KMeans(20, n_init=10, random_state=0).fit(X)",
        "from sklearn.cluster import KMeans",
    ),
    "FINCH": (
        "lsdc.FINCH().fit(X)",
        "finch",
        "finch-clust",
        "FINCH(X, distance='cosine', verbose=False)",
        "from finch import FINCH",
    ),
}
STEP = """
import os, sys, time
sys.path.insert(0, {folder!r})
import torch
from lsdc import allocator, parallel
from steps import stage_of, CASES
parallel.join()
torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
allocator.keep_freed_memory()
shape, parameters, _ = CASES["VGG-4, quarter"]
stage = stage_of(shape, parameters)
stage.module.train()
indices = torch.arange(256)
mine = parallel.own(indices, 256)
for i in range(12):
    if i == 2:
        started = time.perf_counter()
    stage._train_step(indices, stage.data.batch(mine), 0, 1000)
if parallel.rank() == 0:
    print((time.perf_counter() - started) / 10)
parallel.leave()
"""


def startup():
    python = command_seconds(["-c", "pass"])
    words = {"lsdc --help": ["-m", "lsdc", "--help"], "import lsdc": ["-c", "import lsdc"]}
    taken = {name: command_seconds(list(call)) for name, call in words.items()}
    return [
        Row("start-up", name, f"{s:.2f} s", f"python -c pass, {python:.3f} s", s / python) for name, s in taken.items()
    ]


def fits():
    result = []
    for name, (data, model) in FITS.items():
        code = FIT.format(data=data, model=model)
        one, two = (list(map(float, child(code, threads, [threads]))) for threads in (1, 2))
        result.append(
            Row("fit", f"{name}, two threads", f"{two[0]:.1f} s", f"one thread, {one[0]:.1f} s", two[0] / one[0])
        )
        rate = one[2] / one[1]
        result.append(
            Row("predict", f"{name}, one thread", f"{rate:,.0f} samples/s", "time of the fit", one[1] / one[0])
        )
    return result


def peers():
    result = []
    for name, (ours, module, package, theirs, imported) in PEERS.items():
        if importlib.util.find_spec(module) is None:
            continue
        mine = float(child(PEER.format(data=EMBEDDINGS, work=ours), 1, [1])[-1])
        other = float(child(PEER.format(data=f"{EMBEDDINGS}\n{imported}", work=theirs), 1, [1])[-1])
        result.append(Row("peers", f"{name}, 10,000 x 384", f"{mine:.2f} s", f"{package}, {other:.2f} s", mine / other))
    return result


def processes(folder):
    """Two gloo processes of one thread against one process of two threads."""
    import os
    import socket
    import subprocess
    import sys

    code = STEP.format(folder=folder)
    alone = float(child(code, 2)[0])
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    place = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "OMP_NUM_THREADS": "1"}
    running = [
        subprocess.Popen(
            [sys.executable, "-c", code],
            env=os.environ | place | {"RANK": str(rank)},
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    together = float(running[0].communicate()[0].split()[0])
    running[1].communicate()
    return [
        Row(
            "processes",
            "VGG-4 step, two processes of one thread",
            f"{together:.3f} s",
            f"one of two threads, {alone:.3f} s",
            together / alone,
        )
    ]
