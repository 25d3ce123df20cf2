"""Runs of the command line, killed at random moments and resumed: the results must be those of a run left in peace.

``python benchmarks/chaos.py --kills 50 [--out results/chaos.json]``: SIGKILL at random times, SIGTERM and SIGINT among
them, and now and then a full disk (a limit on the size of files). Exits with 1 if anything was lost.
"""

import argparse
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from lsdc.runs.environment import environment

SETTINGS = ["--set", "epochs=6", "--set", "pretext_plan.epochs=3", "--set", "width=0.1", "--save-every", "0.2"]
KINDS = (signal.SIGKILL, signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT)


def command(folder):
    return [sys.executable, "-m", "lsdc", "fit", "digits", "--out", str(folder), "--resume", *SETTINGS]


def start(folder, limit=None):
    def restrict():
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if limit:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    return subprocess.Popen(
        command(folder), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, preexec_fn=restrict
    )


def left(folder):
    """What does not depend on the clock: labels, losses, weights."""
    losses = [json.loads(line)["loss"] for line in (folder / "metrics.jsonl").read_text().splitlines()]
    model = (folder / "model.safetensors").read_bytes()
    return (folder / "labels.csv").read_text(), losses, model[8 + int.from_bytes(model[:8], "little") :]


def chaos(folder, rng, kills, seconds):
    """Kill a run again and again; counts by kind. A run that ends before it was killed is begun anew elsewhere."""
    counts, runs = {}, [folder / "0"]
    while sum(counts.values()) < kills:
        kind = rng.choice(KINDS)
        limit = 20_000 if rng.random() < 0.1 else None
        process = start(runs[-1], limit)
        time.sleep(rng.uniform(0.5, 1.0) * seconds)
        if process.poll() is not None and (runs[-1] / "labels.csv").exists():
            runs.append(folder / str(len(runs)))
            continue
        process.send_signal(kind)
        process.communicate()
        name = signal.Signals(kind).name + (" on a full disk" if limit else "")
        counts[name] = counts.get(name, 0) + 1
        print(f"{sum(counts.values())} killed, {len(runs)} runs", flush=True)
    process = start(runs[-1])
    assert process.wait() == 0, process.stderr.read()
    return counts, runs


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    words = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        started = time.time()
        assert start(folder / "whole").wait() == 0
        seconds = time.time() - started
        counts, runs = chaos(folder, random.Random(words.seed), words.kills, seconds)
        survived = [left(run) == left(folder / "whole") for run in runs]
    result = {
        "command": f"python benchmarks/chaos.py --kills {words.kills} --seed {words.seed}",
        "kills": counts,
        "runs": len(runs),
        "identical_to_an_undisturbed_run": sum(survived),
        "environment": environment(),
    }
    print(json.dumps({k: v for k, v in result.items() if k != "environment"}, indent=1))
    if words.out:
        words.out.write_text(json.dumps(result, indent=1) + "\n")
    sys.exit(not all(survived))


if __name__ == "__main__":
    main()
