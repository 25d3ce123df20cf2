"""How much 20 corrections are worth: digits are fitted, 20 mistakes are moved where they belong, the model is refined.

Labels play the person: they say which samples are mistaken and where they belong, and measure what came of it. The
row "nothing corrected" is the same training without them, so that what the corrections add can be told apart.

    python benchmarks/refine.py --seeds 5 --runs runs/refine
"""

import argparse
from pathlib import Path

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment

from lsdc import LSDC, load
from lsdc.data.files import open_data
from lsdc.explore.edits import Move, Name, initial, replayed
from lsdc.explore.refine import EPOCHS, corrections, refined
from lsdc.training.context import Context


def truth(labels, y):
    """The cluster in which each sample belongs, by the best one-to-one match of clusters and classes."""
    table = np.zeros((labels.max() + 1, y.max() + 1))
    np.add.at(table, (labels, y), 1)
    clusters, classes = linear_sum_assignment(-table)
    cluster_of = dict(zip(classes.tolist(), clusters.tolist(), strict=True))
    return np.array([cluster_of[c] for c in y.tolist()])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--corrections", type=int, default=20)
    parser.add_argument("--runs", type=Path, help="run folders of these seeds, RUNS/SEED; fitted if they are missing")
    options = parser.parse_args()
    dataset = open_data("digits")
    context = Context(0, torch.device("cpu"))
    print("| seed | mistakes | corrected | followed | right before | right after | of the others, more right |")
    print("|---|---|---|---|---|---|---|")
    for seed in options.seeds:
        folder = options.runs / str(seed) if options.runs else None
        if folder and (folder / "model.safetensors").exists():
            model = load(folder)
        else:
            model = LSDC(10, random_state=seed).fit(dataset, run=folder)
        base, right = initial(model.labels_, 10), truth(model.labels_, dataset.y)
        wrong = np.flatnonzero(model.labels_ != right)
        for draw in range(-1, options.draws):
            picked = np.random.default_rng(draw + 1).permutation(wrong)[: options.corrections if draw >= 0 else 0]
            edits = [Move(do="move", samples=[int(i)], to=int(right[i])) for i in picked]
            history = replayed(base, edits or [Name(do="name", cluster=0, name="a name teaches nothing")])
            labels = refined(model, dataset, corrections(history), EPOCHS, context).labels_
            before, after = model.labels_ == right, labels == right
            others = np.ones(len(right), bool)
            others[picked] = False
            what = f"{len(picked)}" if len(picked) else "nothing corrected"
            more = int(after[others].sum()) - int(before[others].sum())
            row = (seed, len(wrong), what, int(after[picked].sum()), int(before.sum()), int(after.sum()), f"{more:+d}")
            print("| " + " | ".join(map(str, row)) + " |", flush=True)


if __name__ == "__main__":
    main()
