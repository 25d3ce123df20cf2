"""The default beside K-means and UMAP with a mixture, on any data with labels; every run is kept, none is run twice.

    python benchmarks/quality.py digits blobs-70-20-10 FILE.npz ... [--seeds 0 1 2] [--methods lsdc kmeans umap]
    python benchmarks/quality.py --table

DATA is a name (lsdc list datasets), fashion-mnist, blobs-A-B-... (shares in per cent, 16 dimensions), or a file of
benchmarks/data.py: an .npz with X and y, or with a sparse matrix and y. Labels serve the table only. Data sets that
need files take these from LSDC_DATA; Fashion-MNIST's official files are in its folder fashion-mnist. Runs are lines of
results/quality.jsonl.
"""

import argparse
import gzip
import json
import os
import statistics
import time
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp
import torch
from sklearn.metrics import normalized_mutual_info_score

from lsdc import METHODS, datasets
from lsdc.data.benchmarks import read_idx
from lsdc.metrics import clustering_accuracy
from lsdc.runs.environment import environment

PARTS, IDX = ("train", "t10k"), {"images-idx3-ubyte.gz": 3, "labels-idx1-ubyte.gz": 1}
RUNS = Path(__file__).parents[1] / "results" / "quality.jsonl"
TITLES = {"lsdc": "LSD-C", "kmeans": "K-means", "umap": "UMAP + mixture"}


def load(name):
    if name.startswith("blobs-"):
        shares = [int(part) for part in name.split("-")[1:]]
        rng = np.random.default_rng(0)
        y = rng.permutation(np.repeat(np.arange(len(shares)), [20 * share for share in shares]))
        centres = rng.uniform(-10, 10, (len(shares), 16))
        return (centres[y] + rng.normal(size=(len(y), 16))).astype(np.float32), y
    if name == "fashion-mnist":
        root = Path(os.environ.get("LSDC_DATA", "")) / name
        return tuple(
            np.concatenate([idx(root / f"{part}-{kind}", ndim) for part in PARTS]) for kind, ndim in IDX.items()
        )
    if name in datasets.DATASETS:
        data = datasets.load(name, os.environ.get("LSDC_DATA", ""))
        return data.X, data.y
    with np.load(name) as file:
        if "indptr" in file:
            return sp.csr_matrix((file["data"], file["indices"], file["indptr"]), file["shape"]), file["y"]
        return file["X"], file["y"]


def idx(file, ndim):
    return read_idx(np.frombuffer(gzip.decompress(file.read_bytes()), np.uint8), ndim)


def run(name, method, seed):
    torch.set_num_threads(1)
    X, y = load(name)
    started, cpu = time.perf_counter(), time.process_time()
    model = METHODS[method](len(np.unique(y)), random_state=seed).fit(X)
    seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    classes = np.unique(y)
    clusters = [np.bincount(model.labels_[y == c], minlength=len(classes)) for c in classes]
    found = {"data": Path(name).stem, "n": int(X.shape[0]), "k": len(classes), "method": method, "seed": seed}
    found |= {"acc": clustering_accuracy(y, model.labels_), "nmi": normalized_mutual_info_score(y, model.labels_)}
    found |= {"seconds": round(seconds, 1), "cpu_seconds": round(cpu, 1), "threads": torch.get_num_threads()}
    known = environment()
    kept = {"table": np.array(clusters).tolist(), "processor": known["processor"], "commit": known["commit"]}
    return {**found, **kept}


def read():
    return [json.loads(line) for line in RUNS.read_text().splitlines()] if RUNS.exists() else []


def table():
    rows = {}
    for each in read():
        rows.setdefault(each["data"], {}).setdefault(each["method"], []).append(each)
    print("| data | n | K | LSD-C | worst | K-means | UMAP + mixture | CPU s |\n|---|---|---|---|---|---|---|---|")
    for name, methods in rows.items():
        first = next(iter(methods.values()))[0]
        cells = {}
        for method, runs in methods.items():
            acc = [each["acc"] for each in runs]
            spread = f" ± {statistics.stdev(acc):.3f}" if len(acc) > 1 else ""
            cells[method] = f"{statistics.mean(acc):.3f}{spread} ({len(acc)})"
        own = methods.get("lsdc", [])
        worst = f"{min(each['acc'] for each in own):.3f}" if own else "-"
        seconds = f"{statistics.mean(each['cpu_seconds'] for each in own):.0f}" if own else "-"
        shown = [cells.get("lsdc", "-"), worst, cells.get("kmeans", "-"), cells.get("umap", "-"), seconds]
        print(f"| {name} | {first['n']:,} | {first['k']} | {' | '.join(shown)} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="*")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--methods", nargs="+", default=["lsdc", "kmeans"], choices=list(TITLES))
    parser.add_argument("--table", action="store_true", help="print what is there")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    done = {(each["data"], each["method"], each["seed"]) for each in read()}
    for name in options.data:
        for method in options.methods:
            for seed in options.seeds:
                if (Path(name).stem, method, seed) not in done:
                    found = run(name, method, seed)
                    with RUNS.open("a") as file:
                        file.write(json.dumps(found) + "\n")
                    print({key: found[key] for key in ("data", "method", "seed", "acc", "seconds")}, flush=True)
    if options.table:
        table()


if __name__ == "__main__":
    main()
