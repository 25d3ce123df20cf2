"""Which level of FINCH's hierarchy to take (decision 38): python benchmarks/finch.py, under a minute on one core.

Blobs of 3 to 40 clusters in 300 and 2,000 samples, with standard deviations of 1 to 2.5. For each number of features:
ACC of the level that ``natural`` takes, of the coarsest with two clusters or more, and of the best one by the labels.
With ``--large`` instead: the time and the peak memory of 100,000 samples of 64 features.
"""

import resource
import sys
import time

import numpy as np
import torch
from sklearn.datasets import make_blobs

from lsdc.functional import finch_partitions, natural
from lsdc.metrics import clustering_accuracy


def scores(X, y, metric):
    partitions = finch_partitions(torch.tensor(X - X.mean(0), dtype=torch.float32), metric)
    acc = [clustering_accuracy(y, partition.labels.numpy()) for partition in partitions]
    return acc[natural(partitions)], acc[max(len(acc) - 2, 0)], max(acc)


def main():
    torch.set_num_threads(1)
    print("| metric | features | natural | coarsest | best | n |\n|---|---|---|---|---|---|")
    cases = [(seed, k, n) for seed in range(4) for k in (3, 5, 10, 20, 40) for n in (300, 2000)]
    for metric in ("cosine", "l2"):
        for d in (2, 5, 30):
            rows = []
            for seed, k, n in cases:
                X, y = make_blobs(n, d, centers=k, random_state=100 + seed, cluster_std=1 + seed / 2)
                rows.append(scores(X, y, metric))
            means = " | ".join(f"{value:.3f}" for value in np.mean(rows, 0))
            print(f"| {metric} | {d} | {means} | {len(rows)} |")


def large():
    torch.set_num_threads(1)
    f = torch.randn(100_000, 64, generator=torch.Generator().manual_seed(0))
    started = time.perf_counter()
    n = len(finch_partitions(f))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"100,000 x 64: {n} partitions, {time.perf_counter() - started:.0f} s, peak {peak:.2f} GB (at most 2)")
    sys.exit(peak > 2)


if __name__ == "__main__":
    large() if "--large" in sys.argv else main()
