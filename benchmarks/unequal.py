"""Three blobs of unequal size, default settings with and without the balance term.

    python benchmarks/unequal.py [--seeds 3]

The same 1,000 points for every seed and setting; labels are used for nothing but this table.
"""

import argparse

import numpy as np

from lsdc import LSDC
from lsdc.metrics import clustering_accuracy


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    seeds = range(parser.parse_args().seeds)
    print("| sizes | balance | ACC of each seed |\n|---|---|---|")
    for sizes in ([500, 300, 200], [700, 200, 100]):
        rng = np.random.default_rng(0)
        centres = rng.normal(size=(3, 8)) * 6
        y = np.repeat([0, 1, 2], sizes)
        X = centres[y] + rng.normal(size=(len(y), 8))
        for balance in (LSDC().balance, 0.0):
            accs = [clustering_accuracy(y, LSDC(3, random_state=s, balance=balance).fit_predict(X)) for s in seeds]
            print(f"| {sizes} | {balance} | {', '.join(f'{acc:.3f}' for acc in accs)} |", flush=True)


if __name__ == "__main__":
    main()
