"""Two gloo processes of one thread against one process of two threads, and what they tell each other."""

import json
import socket
import subprocess
import sys

from measuring import LONGEST, Row, environment

STEP = """
import json, os, sys, time
sys.path.insert(0, {folder!r})
import torch
import torch.distributed as dist
from lsdc import allocator, parallel
from steps import CASES, stage_of
parallel.join()
torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
allocator.keep_freed_memory()
shape, parameters, _ = CASES["VGG-4, quarter"]
stage = stage_of(shape, parameters)
stage.module.train()
indices, received = torch.arange(256), [0.0]
mine = parallel.own(indices, 256)
W = parallel.size()

def counted(name, share):
    run = getattr(dist, name)
    def call(*tensors, **options):
        received[0] += share * tensors[-1 if name == "all_gather" else 0].nbytes
        return run(*tensors, **options)
    setattr(dist, name, call)

counted("all_gather", W - 1)  # the parts of the others
counted("all_reduce", 2 * (W - 1) / W)  # as a ring sends them
for i in range(7):
    if i == 2:
        started, received[0] = time.perf_counter(), 0.0
    stage._train_step(indices, stage.data.batch(mine), 0, 1000)
taken = (time.perf_counter() - started) / 5
f, d, k = stage.objective.network.backbone.n_features, stage.data.batch(mine[:1]).numel(), 10
weights = sum(p.numel() for group in stage.optimizer.param_groups for p in group["params"])
others = 256 - len(mine)
least = 4 * others * (f + 3 * k + 2 * d) + 4 * 2 * (W - 1) / W * weights
if parallel.rank() == 0:
    print(json.dumps([taken, received[0] / 5, least]))
parallel.leave()
"""


def started(code, threads, place):
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", code],
        env=environment(threads) | place,
        stdout=subprocess.PIPE,
        text=True,
    )


def together(code, n):
    """What the first of ``n`` processes says."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    place = {"WORLD_SIZE": str(n), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)} if n > 1 else {}
    running = [started(code, 1 if n > 1 else 2, place | ({"RANK": str(r)} if n > 1 else {})) for r in range(n)]
    try:
        said = [process.communicate(timeout=LONGEST)[0] for process in running]
    finally:
        for process in running:
            process.kill()
    if any(process.returncode for process in running):
        raise RuntimeError("a process of the benchmark failed")
    return json.loads(said[0].splitlines()[-1])


def rows(folder, small=False):
    code = STEP.format(folder=folder)
    (alone, *_), (two, received, least) = together(code, 1), together(code, 2)
    what = "VGG-4 step, two processes of one thread"
    return [
        Row("processes", what, f"{two:.3f} s", f"one of two threads, {alone:.3f} s", two / alone),
        Row(
            "processes",
            "bytes a process receives in a step",
            f"{received / 2**20:.2f} MB",
            f"features, probabilities, views and gradients, {least / 2**20:.2f} MB",
            received / least,
        ),
    ]
