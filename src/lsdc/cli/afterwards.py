"""After a fit: what was found, how K-means compares, whether K is plausible, near-duplicates, and the report."""

import json
import shlex
from typing import TYPE_CHECKING, Any

import typer

from lsdc.cli.console import Terminated, err, line, out, program, say_next

if TYPE_CHECKING:
    import numpy as np

    from lsdc.data.datasets import Dataset
    from lsdc.data.sources import Data
    from lsdc.runs.folder import Run


def show_result(run: "Run", dataset: "Dataset", model: Any, asked: bool, as_json: bool) -> None:
    """Look at a finished run and write its report; Ctrl-C costs no more than that."""
    try:
        with run.again():
            _show(run, dataset, model, asked)
            result = json.dumps(_result(run, dataset, model)) if as_json else ""
    except KeyboardInterrupt as error:
        again = shlex.join([*program(), "report", str(run.path)])
        line(err, f"stopped; the run is finished and saved. Write its report with:  {again}")
        raise typer.Exit(error.code if isinstance(error, Terminated) else 130) from None
    if as_json:
        print(result)


def _show(run: "Run", dataset: "Dataset", model: Any, asked: bool) -> None:
    """Print what the user wants to know when a fit is done."""
    from lsdc.methods import read_config
    from lsdc.metrics import score
    from lsdc.report.terminal import scores_table, sizes_table
    from lsdc.report.write import write_report

    _, labels, confidence = run.read_labels()
    names = model.cluster_names_ if any(model.cluster_terms_) else None
    out.print(sizes_table(labels, confidence, model.n_clusters_, names))
    if dataset.y is not None:
        out.print(scores_table({model.method: score(dataset.y, labels, confidence)}, dataset.title or dataset.name))
    for note in second_look(run, dataset, model, asked):
        line(err, note)
    write_report(run, read_config(run), dataset, model)
    labelled = dataset.y is not None
    say_next(run.path, *(("evaluate", run.path, "--baselines") if labelled else ("predict", run.path, "NEW_DATA")))


def second_look(run: "Run", dataset: "Dataset", model: Any, asked: bool) -> list[str]:
    """What to tell the user about the data after a fit, one line each; writes duplicates.csv if there are any.

    The pixels of colour images say too little about what they show, so those are skipped.
    """
    from lsdc.methods.choosing import MIN_SAMPLES, doubts, features

    data = model._data(dataset, reset=False)
    ids, labels, _ = run.read_labels()
    notes = []
    if (left := int((labels < 0).sum())) > 0:
        notes.append(f"outliers: {left:,} of {len(labels):,} samples, the least certain, are left unassigned (-1)")
    notes += _worse_than_kmeans(run, model, data)
    if len(data) < MIN_SAMPLES or (data.spec.is_image and data.spec.shape[0] > 1):
        return notes
    f, rows = features(data, 0)
    if asked and not hasattr(model, "suggestion_"):
        notes += [f"{doubt}; see lsdc suggest-k" for doubt in doubts(f, model.n_clusters_)]
    return notes + _near_duplicates(run, f, [ids[row] for row in rows])


def _worse_than_kmeans(run: "Run", model: Any, data: "Data") -> list[str]:
    """A line if K-means explains the neighbours better; comparison.json has the figures either way."""
    from lsdc.methods.against_kmeans import compare_with_kmeans

    comparison = compare_with_kmeans(model, data)
    if comparison is None:
        return []
    run.write_json("comparison.json", comparison.as_dict())
    return [f"doubtful: {comparison.verdict} (--seed, --method kmeans)"] if comparison.is_worse else []


def _near_duplicates(run: "Run", f: "np.ndarray", ids: list[str]) -> list[str]:
    """A line if there are near-duplicates, and duplicates.csv with all of them."""
    from lsdc.data.spreadsheet import cell
    from lsdc.methods.choosing import near_duplicates
    from lsdc.runs.atomic import write_atomic

    copies = [(ids[i], ids[j], distance) for i, j, distance in near_duplicates(f)]
    if not copies:
        return []
    file = run.path / "duplicates.csv"
    text = "".join(f"{cell(a)},{cell(b)},{distance:.6g}\n" for a, b, distance in copies)
    write_atomic(file, ("id,like,distance\n" + text).encode(errors="backslashreplace"))
    first, second, _ = copies[0]
    return [f"near-duplicates: {len(copies):,} samples have one, e.g. {first} and {second}; the full list is in {file}"]


def _result(run: "Run", dataset: "Dataset", model: Any) -> dict[str, Any]:
    """The result of a fit, for programs."""
    from lsdc.metrics import CONFIDENT, cluster_sizes, score

    _, labels, confidence = run.read_labels()
    result = {
        "run": str(run.path),
        "method": model.method,
        "seed": model.seed_,
        "n": len(labels),
        "n_clusters": model.n_clusters_,
        "sizes": cluster_sizes(labels, model.n_clusters_).tolist(),
        "unassigned": int((labels < 0).sum()),
        "confident_share": float((confidence > CONFIDENT).mean()),
    }
    if dataset.y is not None:
        result["scores"] = score(dataset.y, labels, confidence).as_json()
    return result
