"""Several methods on one data set: method x seed, each run once, the table rewritten after each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from lsdc.data.datasets import Dataset
from lsdc.errors import InputError, counted, printable
from lsdc.experiments.engine import Place, State, Watch, run_table
from lsdc.experiments.job import Job, Source, inputs_of
from lsdc.experiments.results import data_facts
from lsdc.experiments.table import BASE, SCORED, UNLABELLED, Row, noted, summarise, write


@dataclass(frozen=True)
class Comparison:
    """What is compared: the data, the methods asked for, and the jobs to run."""

    title: str
    labelled: bool
    data: dict[str, Any]
    asked: tuple[str, ...]
    jobs: tuple[Job, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of its table."""
        return (*SCORED, "note") if self.labelled else UNLABELLED


def job(source: Source, method: str, n_clusters: int, seed: int, changes: Mapping[str, Any] | None = None) -> Job:
    """A method with its defaults and some changes; all but K-means are left out if they cannot handle the data."""
    return Job(
        name=f"{method}-seed{seed}",
        group=method,
        source=source,
        method=method,
        params={**(changes or {}), "n_clusters": n_clusters, "random_state": seed},
        facts={"method": method, "seed": seed},
        optional=method != BASE,
    )


def plan(
    source: Source,
    dataset: Dataset,
    methods: Sequence[str],
    seeds: int,
    n_clusters: int,
    changes: Mapping[str, dict[str, Any]] | None = None,
) -> Comparison:
    """Everything to run on a data set, checked before it runs; K-means is always among the methods."""
    wanted = methods if BASE in methods else [*methods, BASE]
    data = data_facts(dataset, inputs_of(dataset))
    jobs = [job(source, m, n_clusters, seed, (changes or {}).get(m)) for seed in range(seeds) for m in wanted]
    for each in jobs[: len(wanted)]:
        each.check(data)
    title = (
        f"{printable(dataset.title or dataset.name)}: {counted(data['n'], 'sample')}, {counted(n_clusters, 'cluster')}"
    )
    return Comparison(title, dataset.y is not None, data, tuple(methods), tuple(jobs))


def compare(wanted: Comparison, place: Place, watch: Watch = lambda state: None) -> tuple[list[Row], State]:
    """Run the jobs that have no result yet, and write OUT/compare.md, .tex and .json."""
    _check_place(place.out)
    found = {each.name: each.read_if_done(place.out, wanted.data) for each in wanted.jobs}
    keys = {each.name: each.pretext(wanted.data) for each in wanted.jobs}
    rows: list[Row] = []

    def written(results: Sequence[dict[str, Any]], state: State) -> None:
        rows[:] = rows_of(results)
        write(place.out / "compare", wanted.title, wanted.columns, rows, state.notes, state.ends)

    finished = {name: result for name, result in found.items() if result is not None}
    return rows, run_table(wanted.jobs, finished, place, written, asked=wanted.asked, keys=keys, watch=watch)


def _check_place(out: Path) -> None:
    """Refuse a folder that holds something else."""
    if not out.exists():
        return
    if not out.is_dir() or (any(out.iterdir()) and not (out / "compare.json").exists()):
        raise InputError(f"{out}: already exists and was not written by lsdc compare; choose another folder")


def rows_of(results: Sequence[Mapping[str, Any]]) -> list[Row]:
    """One row per method, best first."""
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for result in results:
        groups.setdefault(result["method"], []).append(result)
    rows = noted(summarise(group, method) for method, group in groups.items())
    return sorted(rows, key=lambda row: -fmean(row.leading) if row.leading else float("inf"))
