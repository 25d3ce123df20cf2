"""How many of the pairwise labels are right, before any clustering: digits, features of a pretext, k = 0.7 N/K.

    python benchmarks/purity.py [--seeds 3]

Labels are used for nothing but this table.
"""

import argparse

import numpy as np
import torch

from lsdc import LSDC, datasets
from lsdc.functional import knn


def features(pretext, seed):
    """Features of all digits after the pretext alone, in the default settings."""
    data = datasets.load("digits")
    model = LSDC(data.n_clusters, neighbours="batch", pretext=pretext, epochs=0, random_state=seed)
    return torch.from_numpy(model.fit(data.X).transform(data.X)), data.y


def purity(f, y, n, seed):
    """The share of edges between samples of one class, the diagonal left out."""
    chosen = torch.randperm(len(f), generator=torch.Generator().manual_seed(seed))[:n]
    A = knn(f[chosen], round(0.7 * n / 10)).fill_diagonal_(0)
    same = torch.from_numpy(y)[chosen][:, None] == torch.from_numpy(y)[chosen]
    return float((A * same).sum() / A.sum())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    seeds = range(parser.parse_args().seeds)
    print("| pretext | N | right edges, mean (min to max) | n |\n|---|---|---|---|")
    for pretext in ("autoencoder", "rotnet"):
        learned = [features(pretext, seed) for seed in seeds]
        for n in (256, 1024):
            values = [purity(f, y, n, seed) for seed, (f, y) in zip(seeds, learned, strict=True)]
            spread = f"{np.mean(values):.3f} ({min(values):.3f} to {max(values):.3f})"
            print(f"| {pretext} | {n:,} | {spread} | {len(values)} |", flush=True)


if __name__ == "__main__":
    main()
