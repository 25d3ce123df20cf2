"""``lsdc refine``: from a run and its journal to a new, complete run; the first one stays unchanged."""

import os
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch

from lsdc.data.reading import Dataset
from lsdc.errors import InputError
from lsdc.explore.edits import OUTLIER, Move, Name, Outlier
from lsdc.explore.journal import NAME, Journal, corrected, header_of
from lsdc.explore.refine import Corrections, corrections, refined
from lsdc.methods import load
from lsdc.methods.assignment import best_two
from lsdc.runs.folder import Run
from lsdc.training.context import Context, Progress


class RefinementResult(NamedTuple):
    """How many samples were moved by hand, how many of them the model followed, and how many others changed."""

    n_clusters: int
    corrected: int
    followed: int
    others: int


def refine_run(
    run: Run, new: Run, config: dict[str, Any], dataset: Dataset, epochs: int, monitor: Callable[[Progress], None]
) -> RefinementResult:
    """Teach a run's model the corrections in its journal, and write the new run."""
    ids, labels, _ = run.read_labels()
    _, history = corrected(run, labels, config["params"]["n_clusters"])
    try:
        given = corrections(history)
    except InputError as error:
        raise error.within(run.path) from None
    model = load(run.path, device="cpu")
    seed = int(config["seed"])
    with new.alone():
        new.source, new.ids = config["data"], ids
        k = len(given.sources)
        settings = {"method": model.method, "behaviour": model.behaviour_with(config["settings"]), "seed": seed}
        settings |= {"settings": {**config["settings"], "n_clusters": k}, "refines": config["fingerprint"]}
        content = {name: config["data"][name] for name in ("n", "shape", "digest") if name in config["data"]}
        new.start(settings, {**config["params"], "n_clusters": k}, content)
        if (run.path / "read.json").exists():
            new.write_json("read.json", run.read_json("read.json"))
        if (new.path / NAME).exists():  # left by the refined run that is replaced
            os.replace(new.path / NAME, new.path / "edits.previous.jsonl")
        better = refined(model, dataset, given, epochs, Context(seed, torch.device("cpu"), 0, new, monitor))
        found = best_two(better.predict_proba(dataset))
        new.write_labels(ids, found.labels, found.confidence, found.runner_up())
        better.save(new.path / "model.safetensors")
        carry_over(new, given, better.labels_)
    moved, wanted = given.moved.numpy(), given.labels.numpy()
    others = ~moved & (wanted != OUTLIER) & (better.labels_ != wanted)
    followed = int((better.labels_ == wanted)[moved].sum())
    return RefinementResult(k, int(moved.sum()), followed, int(np.count_nonzero(others)))


def carry_over(new: Run, given: Corrections, labels: np.ndarray) -> None:
    """Carry over what the model has not learnt: names, outliers, and moves it did not follow."""
    journal, _ = Journal.open(new.path / NAME, header_of(new.path / "labels.csv"))
    for cluster, name in sorted(given.names.items()):
        journal.append(Name(do="name", cluster=cluster, name=name))
    wanted = given.labels.numpy()
    differ = given.moved.numpy() & (labels != wanted)
    for cluster in np.unique(wanted[differ]).tolist():
        rows = np.flatnonzero(differ & (wanted == cluster)).tolist()
        journal.append(Move(do="move", samples=rows, to=cluster))
    outliers = (given.labels == OUTLIER).nonzero()[:, 0].tolist()
    if outliers:
        journal.append(Outlier(do="outlier", samples=outliers))
