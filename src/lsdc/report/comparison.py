"""Several runs on the same samples, side by side: comparison.html in the first run's folder."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lsdc.errors import InputError
from lsdc.metrics import ari, crosstab, nmi
from lsdc.report.facts import Facts
from lsdc.report.figures import Histogram, histogram
from lsdc.report.html import rendered
from lsdc.report.matrix import Match, Matrix, matrix
from lsdc.runs.atomic import write_atomic
from lsdc.runs.folder import Run


@dataclass(frozen=True)
class Column:
    """One run of the comparison, and how it agrees with the first."""

    name: str
    facts: Facts
    bars: Histogram
    ari: float
    nmi: float
    same: float  # the share of samples in matching clusters
    matrix: Matrix | None
    matches: list[tuple[str, str, int, int, int]]  # the first run's cluster, this one's, their sizes, what they share


def write_comparison(runs: list[Run], configs: list[dict[str, Any]]) -> None:
    """Write comparison.html; samples are matched by id."""
    all_facts = [Facts.of(run, config) for run, config in zip(runs, configs, strict=True)]
    names = [str(run.path) for run in runs]
    labels, n = _joined(all_facts, names)
    columns = [_column(names[i], all_facts[i], all_facts[0], labels[i], labels[0]) for i in range(len(runs))]
    between = [[ari(a, b) for b in labels] for a in labels]
    text = rendered("comparison.html", runs=columns, between=between, n=n)
    write_atomic(runs[0].path / "comparison.html", text)


def _joined(runs: list[Facts], names: list[str]) -> tuple[list[NDArray[np.int64]], int]:
    """The clusters of the samples that all runs share, in the first run's order."""
    if all(facts.ids == runs[0].ids for facts in runs):
        return [facts.labels for facts in runs], len(runs[0].ids)
    rows = [{name: i for i, name in enumerate(facts.ids)} for facts in runs]
    for facts, found, name in zip(runs, rows, names, strict=True):
        if len(found) < len(facts.ids):
            raise InputError(f"{name}: several samples have the same id, so runs cannot be matched by it")
    common = [name for name in runs[0].ids if all(name in found for found in rows)]
    if not common:
        raise InputError(f"{names[0]} and {names[1]}: have no samples in common; compare runs on the same data")
    picked = [np.array([found[name] for name in common]) for found in rows]
    return [facts.labels[rows_] for facts, rows_ in zip(runs, picked, strict=True)], len(common)


def _column(name: str, facts: Facts, first: Facts, labels: NDArray[np.int64], others: NDArray[np.int64]) -> Column:
    table = crosstab(others, labels, (first.n_clusters, facts.n_clusters))
    match = Match.of(table)
    heads = [first.name(k) for k in range(first.n_clusters)]
    columns = [str(k) for k in range(facts.n_clusters)]
    pairs = [
        (first.name(a), facts.name(b), int(table[a].sum()), int(table[:, b].sum()), int(table[a, b]))
        for a, b in match.column_of.items()
    ]
    return Column(
        name,
        facts,
        histogram(facts.confidence),
        ari(others, labels),
        nmi(others, labels),
        sum(pair[4] for pair in pairs) / len(labels),
        matrix("Samples in both", table, heads, columns, match),
        pairs,
    )
