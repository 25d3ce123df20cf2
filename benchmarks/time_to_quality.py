"""How long until clusters are good: ACC against seconds, for every method; labels only stop the clock.

    python benchmarks/time_to_quality.py digits mnist fashion-mnist reuters10k [--methods lsdc kmeans umap ...]
        [--seeds 0] [--threads 2] [--minutes 60] [--out benchmarks/results]
    python benchmarks/time_to_quality.py --table

Each fit is a process of its own. At the end of an epoch the clock stands still while the clusters of some samples (all,
up to 5,000) are compared with the labels, which the fit never sees; the last point is the fit's own result on all of
them. Every fit is a line of time-to-quality.jsonl, none is run twice, and the plots are drawn anew. A fit that takes
longer than ``--minutes`` is ended and keeps the points it had.
"""

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import torch
from measuring import Row, environment
from quality import load

from lsdc import METHODS
from lsdc.methods import graph, graph_network
from lsdc.methods.deep import DeepObjective
from lsdc.metrics import clustering_accuracy
from lsdc.runs.environment import environment as known_environment
from lsdc.training import loop

HERE = Path(__file__).resolve().parent
TARGETS = {"digits": (0.95,), "mnist": (0.97, 0.98), "fashion-mnist": (0.66,), "reuters10k": (0.77,)}
LOOKED_AT = 5_000
NAMES = {"lsdc": "LSD-C", "kmeans": "K-means", "umap": "UMAP + mixture", "finch": "FINCH"}


class Clock:
    """Seconds of a fit, by the wall and of the processor, without those in which it stood still."""

    def __init__(self):
        self.wall, self.cpu = time.perf_counter(), time.process_time()

    def read(self):
        return time.perf_counter() - self.wall, time.process_time() - self.cpu

    def standing(self, function):
        wall, cpu = self.read()
        try:
            return function()
        finally:
            self.wall, self.cpu = time.perf_counter() - wall, time.process_time() - cpu


@torch.no_grad()
def clusters_of(objective, rows, sampled):
    """What a stage makes of some samples now, and which of them these are; None where it has no clusters yet."""
    if isinstance(objective, graph.ClassifierTraining):  # on a sample of its own
        f = objective.fixed.features[:LOOKED_AT]
        return objective.classifiers(f)[objective.classifiers.best].argmax(1), sampled[-1][: len(f)]
    if isinstance(objective, graph_network.NetworkTraining):
        encoder = objective.encoder
        f = encoder.features(rows)
        head = objective.module["norm"].eval()
        return objective.classifiers(head(f))[objective.classifiers.best].argmax(1), rows
    if isinstance(objective, DeepObjective):
        network = objective.network.eval()
        x = [objective.views.plain(objective.data.batch(part)) for part in torch.split(rows, 1000)]
        return torch.cat([network(part).p.argmax(1) for part in x]), rows
    return None


def watch(clock, y, points, say):
    """Look at the clusters at the end of every epoch, with the clock standing still."""
    rows = torch.randperm(len(y), generator=torch.Generator().manual_seed(0))[:LOOKED_AT].sort().values
    sampled, finish = [], loop.Stage.finish_epoch

    def look(stage):
        found = clusters_of(stage.objective, rows, sampled)
        if found:
            labels, which = found
            points.append((*clock.read(), clustering_accuracy(y[which.numpy()], labels.numpy())))
            say(points)

    def finish_epoch(stage):
        finish(stage)
        clock.standing(lambda: look(stage))

    def remembering(*place):
        sampled.append(graph_sample(*place))
        return sampled[-1]

    graph_sample = graph.sample
    graph.sample = graph_network.sample = remembering
    loop.Stage.finish_epoch = finish_epoch


def fitted(name, method, seed, threads, file):
    """One fit, in this process; its points are written as they come."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(threads)
    X, y = load(name)
    y = np.unique(y, return_inverse=True)[1]
    model, points, clock = METHODS[method](len(np.unique(y)), random_state=seed), [], Clock()
    watch(clock, y, points, lambda points: file.write_text(json.dumps(points)))
    model.fit(X)
    points.append((*clock.read(), clustering_accuracy(y, model.labels_)))
    file.write_text(json.dumps(points))


def run(name, method, seed, threads, minutes, out):
    """One fit in a process of its own, as a record."""
    file = out / f"points-{os.getpid()}.json"
    file.write_text("[]")
    words = [sys.executable, __file__, "--one", name, method, str(seed), str(threads), str(file)]
    process = subprocess.Popen(words, env=environment(threads))
    try:
        ended = process.wait(60 * minutes) == 0
    except subprocess.TimeoutExpired:
        ended = False
    finally:
        process.kill()
        process.wait()
    points = [[round(value, 4) for value in point] for point in json.loads(file.read_text())]
    file.unlink()
    known = known_environment()
    place = {"processor": known["processor"], "commit": known["commit"], "load": [round(x, 1) for x in os.getloadavg()]}
    fit = {"data": Path(name).stem, "method": method, "seed": seed, "threads": threads, "ended": ended}
    return {**fit, "points": points, **place}


def reached(points, target):
    """The first moment at which the clusters were that good: wall and processor seconds."""
    return next(((wall, cpu) for wall, cpu, acc in points if acc >= target), None)


def read(file):
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def table(records):
    lines = ["| data | method | seed | ACC at the end | seconds | " + "ACC reached: seconds (of processor) |"]
    lines.append("|---|---|---|---|---|---|")
    for record in records:
        points, targets = record["points"], TARGETS.get(record["data"], ())
        when = {target: reached(points, target) for target in targets}
        said = ", ".join(f".{round(100 * t)}: " + (f"{w[0]:.1f} ({w[1]:.1f})" if w else "-") for t, w in when.items())
        last = points[-1] if points else (float("nan"),) * 3
        end = f"{last[2]:.3f}" + ("" if record["ended"] else ", ended early")
        lines.append(f"| {record['data']} | {record['method']} | {record['seed']} | {end} | {last[0]:.1f} | {said} |")
    return "\n".join(lines)


def plot(records, out):
    """ACC against seconds, one picture for each data set."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "lsdc"
    import matplotlib.pyplot as plt

    for name in dict.fromkeys(record["data"] for record in records):
        figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
        colours = {}
        for record in (record for record in records if record["data"] == name and record["points"]):
            wall, _, acc = zip(*record["points"], strict=True)
            new = record["method"] not in colours
            colour = colours.setdefault(record["method"], f"C{len(colours)}")
            axes.plot(wall, acc, color=colour, alpha=0.6)
            label = NAMES.get(record["method"], record["method"]) if new else None
            axes.plot(wall[-1], acc[-1], "o", color=colour, label=label)
        for target in TARGETS.get(name, ()):
            axes.axhline(target, color="grey", linewidth=0.8, linestyle=":")
        axes.set(xscale="log", xlabel="seconds", ylabel="ACC", title=name)
        axes.legend(loc="lower right", fontsize="small")
        figure.savefig(out / f"time-to-quality-{name}.svg", metadata={"Date": None})
        plt.close(figure)


def rows(small=False):
    """For the benchmark: digits with the default, beside K-means and UMAP with a mixture."""
    out = HERE / "results"
    out.mkdir(exist_ok=True)
    found = {m: run("digits", m, 0, 2, 0.5 if small else 3, out) for m in ("kmeans", "umap", "lsdc")}
    target, result = TARGETS["digits"][0], []
    slowest = max((record["points"][-1][0] for record in found.values() if record["points"]), default=0.0)
    for method, record in found.items():
        when, last = reached(record["points"], target), record["points"][-1] if record["points"] else None
        what = f"digits to {target}: {NAMES[method]}, ends at {last[2]:.3f} after {last[0]:.1f} s" if last else method
        value = f"{when[0]:.1f} s, {when[1]:.1f} s of processor" if when else "not reached"
        result.append(Row("quality", what, value, f"slowest fit, {slowest:.1f} s", when[0] / slowest if when else None))
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="*")
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--out", type=Path, default=HERE / "results")
    parser.add_argument("--table", action="store_true", help="print what is there")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    file = options.out / "time-to-quality.jsonl"
    done = {(each["data"], each["method"], each["seed"], each["threads"]) for each in read(file)}
    for name in options.data:
        for method in options.methods:
            for seed in options.seeds:
                if (Path(name).stem, method, seed, options.threads) in done:
                    continue
                record = run(name, method, seed, options.threads, options.minutes, options.out)
                with file.open("a") as lines:
                    lines.write(json.dumps(record) + "\n")
                print(table([record]).splitlines()[-1], flush=True)
    records = read(file)
    plot(records, options.out)
    if options.table:
        print(table(records))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        name, method, seed, threads, path = sys.argv[2:]
        fitted(name, method, int(seed), int(threads), Path(path))
    else:
        main()
