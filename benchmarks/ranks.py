"""Which method is ahead over many data sets: mean ranks, the critical difference, and paired tests; no fit is run.

    python benchmarks/ranks.py

From results/quality.jsonl (the default, K-means, UMAP with a mixture) and from the tables in results/ (all methods).
Each data set counts once, with the mean ACC over its seeds. Two mean ranks differ at the 5 % level if they are further
apart than Nemenyi's critical difference; p is that of Wilcoxon's signed ranks against the first method. Data sets made
from the same texts or photos are no independent draws, so p is smaller than it should be.
"""

import json
import math
from pathlib import Path
from statistics import mean

import numpy as np
from quality import TITLES, read
from scipy.stats import rankdata, studentized_range, wilcoxon

from lsdc.experiments.paper import VARIANTS

RESULTS = Path(__file__).parents[1] / "results"


def critical_difference(n_methods, n_sets, level=0.05):
    """How far apart two mean ranks have to be (Nemenyi; Demsar 2006)."""
    q = studentized_range.ppf(1 - level, n_methods, np.inf) / math.sqrt(2)
    return float(q * math.sqrt(n_methods * (n_methods + 1) / (6 * n_sets)))


def summary(scores):
    """Lines of a table: ``scores`` are {data set: {method: ACC}}, of the methods that every data set has."""
    methods = [m for m in next(iter(scores.values())) if all(m in found for found in scores.values())]
    table = np.array([[found[m] for m in methods] for found in scores.values()])
    ranks = np.array([rankdata(-row) for row in table]).mean(0)
    lines = ["| method | mean rank | mean ACC | ahead of it on | p |", "|---|---|---|---|---|"]
    for j in np.argsort(ranks, kind="stable"):
        others = table[:, 0] - table[:, j]
        p = wilcoxon(others).pvalue if j and others.any() else None
        p = "-" if p is None else f"{p:.4f}" if p >= 1e-4 else "below 0.0001"
        ahead = f"{int((others > 0).sum())} of {len(table)}" if j else "-"
        lines.append(f"| {methods[j]} | {ranks[j]:.2f} | {100 * table[:, j].mean():.1f} | {ahead} | {p} |")
    gap = critical_difference(len(methods), len(table))
    return [*lines, "", f"{len(table)} data sets, critical difference of mean ranks {gap:.2f}."]


def many_kinds():
    """The default and what people use, on data of many kinds."""
    found = {}
    for each in read():
        found.setdefault(each["data"], {}).setdefault(TITLES[each["method"]], []).append(each["acc"])
    means = {data: {m: mean(acc) for m, acc in runs.items()} for data, runs in found.items()}
    return {data: {m: means[data][m] for m in TITLES.values()} for data in means if len(means[data]) == len(TITLES)}


def all_methods():
    """Every method, on the paper's kinds of data; a part of a data set stands in where nobody ran the whole."""
    found = {}
    for file in (RESULTS / "table1-cpu.json", RESULTS / "reuters-cpu.json"):
        for row in json.loads(file.read_text())["rows"]:
            data = found.setdefault(row["title"].split(",")[0], {})
            data.setdefault(VARIANTS[row["variant"]].title, float(row["measured"].split()[0]) / 100)
    return {data: scores for data, scores in found.items() if len(scores) > 3}


if __name__ == "__main__":
    for scores in (many_kinds(), all_methods()):
        print("\n".join(summary(scores)), end="\n\n")
