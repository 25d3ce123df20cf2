"""Rerun a table of the paper: data set x variant x seed, each run once, the table rewritten after each."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lsdc.data import cache
from lsdc.data.datasets import DATASETS
from lsdc.errors import InputError, unknown
from lsdc.experiments import results
from lsdc.experiments.engine import Place, State, Watch, run_table
from lsdc.experiments.job import Job, Source, inputs_of
from lsdc.experiments.paper import TABLES, VARIANTS, belongs, changes, check_datasets, columns, published
from lsdc.experiments.recipes import SCALES, ablation, merged, recipe
from lsdc.experiments.table import SCORED, Row, noted, summarise, write
from lsdc.methods.lsdc_settings import IN_BATCH

DataFacts = Mapping[str, dict[str, Any]]  # what is known of each data set (``results.data_facts``)
COLUMNS = ("data", *SCORED, "published")
SHORT = ("data", "method", "ACC % (n)", "worst", "published")  # for a terminal
MANY = 20_000  # samples beyond which K-means has only 5 starts, as each takes long


def job(data: dict[str, Any], dataset: str, variant: str, scale: str, seed: int, samples: int | None = None) -> Job:
    """The job for a data set, or for some samples of it, a variant and a seed."""
    v = VARIANTS[variant]
    common = {"n_clusters": data["n_clusters"], "random_state": seed}
    starts = {"n_init": 20 if data["n"] <= MANY else 5} if v.method == "kmeans" else {}
    is_lsdc = v.method == "lsdc" or v.on == "pretext"
    params = _params(data, dataset, variant, scale, samples) if is_lsdc else {}
    group = f"{dataset}{f'-{samples}' if samples else ''}-{scale}-{variant}"
    return Job(
        name=f"{group}-seed{seed}",
        group=group,
        source=Source(dataset, samples=samples),
        method=v.method,
        params={**params, **common},
        facts={"dataset": dataset, "variant": variant, "scale": scale, "seed": seed},
        on=v.on,
        starts=starts,
        optional=v.method not in ("lsdc", "kmeans"),
    )


def _params(data: dict[str, Any], dataset: str, variant: str, scale: str, samples: int | None) -> dict[str, Any]:
    """LSD-C's recipe for a data set, with a variant's changes."""
    params = recipe(scale, dataset, tuple(data["shape"]))
    if samples and scale == "cpu":  # the recipe's epochs are for the whole set; a part gets enough steps instead
        params["epochs"] = "auto"
    if VARIANTS[variant].images_only and scale == "cpu":
        params |= ablation(dataset, data["n"])
    changed = changes(variant, dataset, scale)
    if changed.get("neighbours") == "graph":
        params = {name: value for name, value in params.items() if name not in IN_BATCH}
    params = merged(params, changed)
    if samples and scale == "cpu":
        params["pretext_plan"] = {k: v for k, v in params.get("pretext_plan", {}).items() if k != "epochs"}
    return params


def parts(name: str) -> dict[str, Any] | None:
    """The arguments of ``job`` for a job of this name."""
    sets, scales, variants = ("|".join(map(re.escape, names)) for names in (DATASETS, SCALES, VARIANTS))
    pattern = (
        rf"(?P<dataset>{sets})(?:-(?P<samples>\d+))?-(?P<scale>{scales})-(?P<variant>{variants})-seed(?P<seed>\d+)"
    )
    if not (found := re.fullmatch(pattern, name)):
        return None
    given = found.groupdict()
    return {**given, "seed": int(given["seed"]), "samples": int(given["samples"]) if given["samples"] else None}


def read_data(
    name: str,
    datasets: Sequence[str],
    scale: str,
    root: Path,
    samples: int | None = None,
    watch: cache.Watch = cache.quiet,
) -> DataFacts:
    """Facts about a table's data sets, all of which are read before anything runs."""
    if scale not in SCALES:
        raise unknown("scale", scale, SCALES)
    for dataset in datasets:
        if dataset not in DATASETS:
            raise unknown("data set", dataset, DATASETS)
    found = {dataset: _facts(Source(dataset, samples=samples), root, watch) for dataset in datasets}
    check_datasets(name, {dataset: len(data["shape"]) == 3 for dataset, data in found.items()})
    return found


def _facts(source: Source, root: Path, watch: cache.Watch) -> dict[str, Any]:
    dataset = source.open(root, watch)
    if dataset.y is None:
        raise InputError(f"{source.data}: has no labels to measure against")
    return results.data_facts(dataset, inputs_of(dataset))


def grid(
    name: str, datasets: DataFacts, seeds: int, scale: str, samples: int | None = None, methods: Sequence[str] = ()
) -> list[Job]:
    """The jobs of a table for some or all methods; those on a pretext's features only where there is a pretext."""
    jobs = [
        (job(data, dataset, variant, scale, seed, samples), data)
        for dataset, data in datasets.items()
        for seed in range(seeds)
        for variant in columns(name, dataset, methods)
    ]
    return [each for each, data in jobs if each.on != "pretext" or each.pretext(data)]


def reproduce(
    name: str, jobs: Sequence[Job], datasets: DataFacts, scale: str, place: Place, watch: Watch = lambda state: None
) -> tuple[list[Row], State]:
    """Run the jobs of a table that have no result yet, and write OUT/TABLE-SCALE.md, .tex and .json."""
    if not jobs:
        raise InputError(f"nothing to run: table {name} has none of these methods on {', '.join(datasets)}")
    keys = {each.name: each.pretext(datasets[each.source.data]) for each in jobs}
    now = {each.name: datasets[each.source.data] for each in jobs}
    found = existing(name, scale, place.out, now, tuple(datasets))
    rows: list[Row] = []

    def written(finished: Sequence[dict[str, Any]], state: State) -> None:
        rows[:] = rows_of(name, scale, finished, tuple(datasets))
        facts = {"table": name, "scale": scale, **state.ends}
        write(place.out / f"{name}-{scale}", title_of(name, scale), COLUMNS, rows, state.notes, facts)

    asked = [each.group for each in jobs]
    return rows, run_table(jobs, found, place, written, asked=asked, keys=keys, watch=watch)


def existing(name: str, scale: str, out: Path, now: DataFacts, asked: Sequence[str] = ()) -> dict[str, dict[str, Any]]:
    """The results of a table below ``out``, whichever call made them, if their settings are current.

    Data sets in ``now`` are compared with it; for others, what their files say is taken.
    """
    found = {}
    for file in sorted((out / "cells").glob("*.json")):
        if (given := parts(file.stem)) and _stands_in(name, scale, given, asked):
            result = results.parsed(file)
            data = now.get(file.stem, result["config"]["data"])
            found[file.stem] = _current(file, result, data, given)
    return found


def _stands_in(name: str, scale: str, facts: Mapping[str, Any], asked: Sequence[str]) -> bool:
    """Whether a result belongs in a table: its scale and variant do, and its data is asked for or there by default."""
    at_home = facts["dataset"] in asked or belongs(name, facts["dataset"])
    return facts["scale"] == scale and facts["variant"] in columns(name) and at_home


def _current(file: Path, result: dict[str, Any], data: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    try:
        each = job(data, **given)
    except (KeyError, TypeError):
        raise results.not_a_result(file) from None
    return results.current(file, each.checked(result, file), lambda: each.config(data))


def rows_of(name: str, scale: str, found: Sequence[Mapping[str, Any]], asked: Sequence[str] = ()) -> list[Row]:
    """The rows of a table: its own data sets first, then others, with variants in its order."""
    wanted = TABLES[name]
    groups: dict[tuple[int, str, str, int], list[Mapping[str, Any]]] = {}
    for result in (each for each in found if _stands_in(name, scale, each, asked)):
        dataset, variant = result["dataset"], result["variant"]
        place = wanted.datasets.index(dataset) if dataset in wanted.datasets else len(wanted.datasets)
        groups.setdefault((place, dataset, result["title"], wanted.variants.index(variant)), []).append(result)
    return noted(
        summarise(
            group, variant := wanted.variants[i], VARIANTS[variant].title, published(name, dataset, variant, title)
        )
        for (_, dataset, title, i), group in sorted(groups.items())
    )


def title_of(name: str, scale: str) -> str:
    """The title of a table."""
    return f"{TABLES[name].title}, scale `{scale}`"


def lsdc_results(
    datasets: DataFacts, scale: str, out: Path, samples: int | None = None
) -> dict[str, list[dict[str, Any]]]:
    """LSD-C's results on each data set, seed by seed, for the figures."""
    found: dict[str, list[dict[str, Any]]] = {}
    for dataset, data in datasets.items():
        seed = 0
        while (each := job(data, dataset, "lsdc", scale, seed, samples)).file(out).exists():
            found.setdefault(each.group.removesuffix("-lsdc"), []).append(each.read(out))
            seed += 1
    return found
