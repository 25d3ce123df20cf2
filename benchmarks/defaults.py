"""What each part of the default settings is worth: several seeds, one part changed at a time.

    python benchmarks/defaults.py [--data digits] [--seeds 5] [--first-seed 0] [--only NAME ...]

Results are kept in results/DATA-defaults.json as they come, so that an interrupted run goes on where it was; the
table is printed as Markdown. ACC is that of the last epoch; labels are used for nothing but this table.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np

from lsdc import LSDC, KMeans, datasets
from lsdc.experiments.recipes import recipe
from lsdc.metrics import clustering_accuracy, nmi
from lsdc.runs.atomic import write_atomic
from lsdc.runs.environment import environment

RESULTS = Path(__file__).parent.parent / "results"

VARIANTS = {
    "default": {},
    "connected pairs not weighted": {"weighted": False},
    "no balance term": {"balance": 0.0},
    "plain kNN, same k": {"similarity": "knn"},
    "neighbours from the batch only": {"pool": 0},
    "k fixed at the density 1/K (0.7 N/K)": {"k": "fixed"},
    "no composition": {"composition": "none"},
    "RotNet instead of autoencoder": {"pretext": "rotnet"},
    "recipe paper": recipe("paper", shape=(1, 8, 8)),
}


def run(data, variant, seed):
    started = time.perf_counter()
    settings = dict(VARIANTS[variant])
    if settings.get("k") == "fixed":
        settings["k"] = round(0.7 * 1024 / data.n_clusters)
    model = LSDC(data.n_clusters, random_state=seed, **settings).fit(data.X)
    confidence = model.predict_proba(data.X).max(1)
    return {
        "acc": clustering_accuracy(data.y, model.labels_),
        "nmi": nmi(data.y, model.labels_),
        "alive": model.history_[-1]["alive"],
        "confident": float((confidence > 0.9).mean()),
        "seconds": round(time.perf_counter() - started, 1),
    }


def kmeans(data, seed):
    labels = KMeans(data.n_clusters, random_state=seed).fit_predict(data.X)
    return {"acc": clustering_accuracy(data.y, labels), "nmi": nmi(data.y, labels)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="digits", choices=("digits", "blobs", "two-moons"))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--only", nargs="*", default=list(VARIANTS))
    options = parser.parse_args()
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    data, file = datasets.load(options.data), RESULTS / f"{options.data}-defaults.json"
    results = json.loads(file.read_text()) if file.exists() else {"environment": environment(), "runs": {}}
    for variant in ("K-means on inputs", *options.only):
        rows = results["runs"].setdefault(variant, {})
        for seed in seeds:
            if str(seed) not in rows:
                rows[str(seed)] = kmeans(data, seed) if variant == "K-means on inputs" else run(data, variant, seed)
                print(variant, seed, rows[str(seed)], flush=True)
                write_atomic(file, (json.dumps(results, indent=1) + "\n").encode())
    print(f"\n| {options.data} | ACC, mean ± sd | worst | NMI | clusters alive | confident | n | seconds |")
    print("|---|---|---|---|---|---|---|---|")
    for variant, rows in results["runs"].items():
        accs = np.array([row["acc"] for row in rows.values()])
        means = {key: np.mean([row[key] for row in rows.values()]) for key in next(iter(rows.values()))}
        alive = "-" if "alive" not in means else f"{min(row['alive'] for row in rows.values())} to {data.n_clusters}"
        rest = ("-", "-") if "alive" not in means else (f"{means['confident']:.2f}", f"{means['seconds']:.0f}")
        print(
            f"| {variant} | {accs.mean():.3f} ± {accs.std(ddof=1) if len(accs) > 1 else 0:.3f} | {accs.min():.3f} "
            f"| {means['nmi']:.3f} | {alive} | {rest[0]} | {len(accs)} | {rest[1]} |"
        )


if __name__ == "__main__":
    main()
