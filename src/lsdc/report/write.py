"""Writes a run's report.html from its folder, data and model."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lsdc.data.reading import Dataset
from lsdc.errors import InputError
from lsdc.methods import load
from lsdc.methods.base import Estimator
from lsdc.report.cards import Cards, each_of
from lsdc.report.facts import Facts, retries_of, settings_rows, warnings_of
from lsdc.report.html import colours, rendered
from lsdc.report.map import draw_map
from lsdc.report.matrix import LARGEST
from lsdc.report.nearness import MERGE, nearest_pairs, nearness
from lsdc.report.outputs import Outputs, doubtful, outputs, picked
from lsdc.report.training import courses
from lsdc.report.truth import against
from lsdc.runs.atomic import write_atomic
from lsdc.runs.folder import Run


@dataclass(frozen=True)
class Inputs:
    """The samples as the model sees them, texts as tf-idf."""

    X: Any
    words: tuple[str, ...]


def write_report(
    run: Run,
    config: dict[str, Any],
    dataset: Dataset | None,
    model: Estimator | None = None,
    missing: str = "",
    to: Path | None = None,
) -> None:
    """Write report.html, or another file; ``missing`` says why there is no data, if so."""
    facts = Facts.of(run, config)
    if dataset is not None and model is None:
        try:
            model = load(run.path)
        except InputError as error:
            dataset, missing = None, error.text
    write_atomic(to or run.path / "report.html", page(facts, dataset, model, missing))


def page(facts: Facts, dataset: Dataset | None, model: Estimator | None, missing: str = "") -> bytes:
    """The whole page."""
    inputs, out = None, None
    if dataset is not None and model is not None:
        inputs = _inputs(model, dataset)
        least = doubtful(facts.labels, facts.confidence, each_of(facts, dataset))
        try:
            out = outputs(model, dataset, picked(facts.labels, facts.n_clusters), least)
        except InputError as error:
            missing = error.text
        if out is not None and facts.n_clusters > (known := out.p.shape[1]):
            worst = facts.n_clusters - 1
            raise InputError(f"{facts.path / 'labels.csv'}: names cluster {worst}, but the model has {known} clusters")
    return drawn(facts, dataset, inputs, out, missing)


def _inputs(model: Estimator, dataset: Dataset) -> Inputs | None:
    if isinstance(dataset.X, list):
        return Inputs(model.words_.transform(dataset.X), model.words_.words) if model.words_ else None
    return Inputs(dataset.X, ())


def drawn(facts: Facts, dataset: Dataset | None, inputs: Inputs | None, out: Outputs | None, missing: str) -> bytes:
    """The page, without what only the data or the model could add where they are missing."""
    y = dataset.y if dataset is not None else None
    truth = against(facts, np.asarray(y), dataset.class_names) if dataset is not None and y is not None else None
    maker = Cards(facts, dataset, inputs, out)
    cards, others = maker.all(truth.mostly if truth else {})
    near = nearness(facts.labels[out.rows[: out.mapped]], out.p[: out.mapped]) if out is not None else None
    return rendered(
        "report.html",
        facts=facts,
        warnings=warnings_of(facts),
        retries=retries_of(facts),
        settings=settings_rows(facts.config),
        cards=cards,
        others=others,
        reach=max((abs(f.deviations) for card in cards for f in card.apart), default=0.0) or 1.0,
        map=draw_map(facts, maker.seen, out, maker.pictures) if out is not None else None,
        colours=colours(facts.n_clusters),
        near=near.tolist() if near is not None and facts.n_clusters <= LARGEST else None,
        pairs=nearest_pairs(near) if near is not None else [],
        merge=MERGE,
        courses=courses(facts.history, facts.n_clusters),
        truth=truth,
        missing=missing,
    )
