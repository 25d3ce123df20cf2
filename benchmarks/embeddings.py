"""LSD-C beside K-means on files of vectors with labels: python benchmarks/embeddings.py FILE.npz ... [--seeds 0 1 2]

A file holds X (n, d) and y (n,); the labels serve this table only.
"""

import argparse
import time
import warnings

import numpy as np
from sklearn.cluster import KMeans

from lsdc import LSDC
from lsdc.metrics import clustering_accuracy


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| data | n x d | K | LSD-C | K-means | seconds of LSD-C |\n|---|---|---|---|---|---|")
    for file in options.files:
        with np.load(file) as arrays:
            X, y = arrays["X"], arrays["y"]
        n_clusters, rows = len(np.unique(y)), []
        for seed in options.seeds:
            started = time.perf_counter()
            labels = LSDC(n_clusters, random_state=seed).fit_predict(X)
            seconds = time.perf_counter() - started
            plain = KMeans(n_clusters, n_init=10, random_state=seed).fit_predict(X)
            rows.append((clustering_accuracy(y, labels), clustering_accuracy(y, plain), seconds))
        (lsdc, kmeans, seconds), (sd, sd_kmeans, _) = np.mean(rows, 0), np.std(rows, 0)
        figures = f"{lsdc:.3f} ± {sd:.3f} | {kmeans:.3f} ± {sd_kmeans:.3f} | {seconds:.0f}"
        print(f"| {file} | {X.shape[0]:,} x {X.shape[1]} | {n_clusters} | {figures} |", flush=True)


if __name__ == "__main__":
    main()
