"""Fit, predict, save and load again and again: memory, open files and threads must not grow.

``python benchmarks/soak.py --minutes 20 [--out results/soak.json]``; fits in two threads at a time must give what each
gives alone. Exits with 1 if something grew or differed.
"""

import argparse
import gc
import json
import os
import sys
import tempfile
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import torch

import lsdc
from lsdc.runs.environment import environment

GROWTH_MB = 40  # allocators keep some; a leak of one small network a round is more than this in a minute
WARM = 10  # rounds before growth counts: caches fill


def resources():
    """Megabytes of memory, open files and threads of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    files = len(os.listdir("/proc/self/fd"))
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20, files, threading.active_count()


def fitted(X, seed, folder=None):
    options = {"epochs": 2, "pretext_plan": {"epochs": 1}, "width": 0.1, "batch_size": 128, "random_state": seed}
    return lsdc.LSDC(10, **options).fit(X, run=folder)


def one_round(X, i, alone):
    """One fit in a run folder, saved, loaded and resumed; then two at once, against what they gave alone."""
    with tempfile.TemporaryDirectory() as place:
        model = fitted(X, i % 5, Path(place) / "run")
        again = lsdc.load(Path(place) / "run")
        assert np.array_equal(again.predict_proba(X), model.predict_proba(X)), "a loaded model differs"
        assert np.array_equal(model.labels_, alone[i % 5]), "the same seed gave other labels"
    found = {}
    seeds = (i % 5, (i + 1) % 5)
    threads = [threading.Thread(target=lambda s=s: found.update({s: fitted(X, s).labels_})) for s in seeds]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(np.array_equal(found[s], alone[s]) for s in found), "concurrent fits differ from those alone"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--out", type=Path)
    words = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", lsdc.HealthWarning)
    X = lsdc.datasets.load("digits").X[:500]
    alone = {seed: fitted(X, seed).labels_ for seed in range(5)}
    started, rounds, first = time.time(), 0, None
    while rounds <= WARM or time.time() - started < 60 * words.minutes:
        one_round(X, rounds, alone)
        gc.collect()
        rounds += 1
        now = resources()
        first = now if rounds == WARM else first
        if rounds % 10 == 0:
            print(f"{rounds} rounds: {now[0]:.0f} MB, {now[1]} files, {now[2]} threads", flush=True)
    grown = [b - a for a, b in zip(first, now, strict=True)]
    result = {
        "command": f"python benchmarks/soak.py --minutes {words.minutes:g}",
        "rounds": rounds,
        "fits": 3 * rounds,
        "minutes": round((time.time() - started) / 60, 1),
        "after_warm_up": dict(zip(("mb", "files", "threads"), first, strict=True)),
        "at_the_end": dict(zip(("mb", "files", "threads"), now, strict=True)),
        "environment": environment(),
    }
    print(json.dumps({k: v for k, v in result.items() if k != "environment"}, indent=1))
    if words.out:
        words.out.write_text(json.dumps(result, indent=1) + "\n")
    sys.exit(grown[0] > GROWTH_MB or grown[1] > 0 or grown[2] > 0)


if __name__ == "__main__":
    main()
