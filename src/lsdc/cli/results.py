"""Using a finished run: ``lsdc predict``, ``evaluate`` and ``report``."""

import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lsdc.cli.console import about_data, err, line, out, readable_warnings, say_next
from lsdc.cli.importing import importing
from lsdc.cli.options import (
    ArrayOption,
    ColumnsOption,
    DataArgument,
    DeviceOption,
    EncoderOption,
    IdOption,
    RootOption,
    RunArgument,
    TextEncoderOption,
    reading,
    root_of,
)
from lsdc.cli.reading import ReadingBar
from lsdc.cli.wording import say_reading
from lsdc.cli.writing import check_output
from lsdc.errors import InputError

if TYPE_CHECKING:
    from lsdc.data.datasets import Dataset


def predict(
    context: typer.Context,
    run: RunArgument,
    data: DataArgument,
    out_: Annotated[Path | None, typer.Option("--out", "-o", help="a CSV file (default: standard output)")] = None,
    device: DeviceOption = None,
    data_root: RootOption = None,
    columns: ColumnsOption = None,
    id_column: IdOption = None,
    array: ArrayOption = None,
    encoder: EncoderOption = None,
    text_encoder: TextEncoderOption = None,
) -> None:
    """Label new DATA with a run's model: id, cluster, confidence. The run's encoder is used unless it has moved."""
    with importing():
        from lsdc import parallel
        from lsdc.data.files import open_data
        from lsdc.data.reading import from_config
        from lsdc.methods import load, read_config
        from lsdc.methods.assignment import best_two
        from lsdc.methods.validation import warn_of_wordless
        from lsdc.runs.atomic import write_atomic
        from lsdc.runs.folder import Run
        from lsdc.runs.labels import labels_csv

    known = from_config(read_config(Run.open(run))["data"])
    if out_ is not None:
        check_output(out_, run, data)
    known = replace(known, matched=True) if columns is None else replace(known, id_column=None)
    model = load(run, **({"device": device} if device else {}))
    how = reading(known, columns=columns, id_column=id_column, array=array, encoder=encoder, text_encoder=text_encoder)
    with ReadingBar(err) as bar:
        dataset = open_data(data, root_of(data_root), bar, **vars(how))
    try:
        with readable_warnings():
            p = model.predict_proba(dataset.X)
            if model.words_:
                warn_of_wordless(model.words_.transform(dataset.X))
    except InputError as error:
        raise about_data(error, data) from None
    if parallel.rank() > 0:
        return
    say_reading(dataset, context)
    found = best_two(p)
    ids, beside = dataset.ids or range(len(p)), dataset.beside
    text = labels_csv(ids, found.labels.tolist(), found.confidence.tolist(), found.runner_up(), model._names, beside)
    if out_ is None or str(out_) == "-":
        sys.stdout.write(text.encode(errors="backslashreplace").decode())
        return
    try:
        write_atomic(out_, text.encode(errors="backslashreplace"))
    except OSError as error:
        raise InputError(f"{out_}: cannot be written ({error.strerror})") from None
    line(err, f"{len(p):,} samples labelled in {out_}")


def evaluate(
    run: RunArgument,
    labels: Annotated[
        Path | None,
        typer.Option(
            "--labels",
            help="true labels: a table with id and label, or a .npy or text file with one per sample, in order",
        ),
    ] = None,
    labels_from_folders: Annotated[
        bool, typer.Option("--labels-from-folders", help="take the sub-folder of each photo as its true label")
    ] = False,
    baselines: Annotated[
        bool, typer.Option("--baselines", help="add K-means on the inputs and on the pretext's features")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
    data_root: RootOption = None,
) -> None:
    """Show how good a run's clusters are: scores if there are labels, otherwise sizes and confidence."""
    with importing():
        from lsdc.data.truth import folders_of, read_true_labels
        from lsdc.experiments.baselines import kmeans_rows
        from lsdc.methods import read_config
        from lsdc.metrics import CONFIDENT, cluster_sizes, score
        from lsdc.report.terminal import scores_table, sizes_table
        from lsdc.runs.folder import Run

    folder = Run.open(run)
    config = read_config(folder)
    ids, assigned, confidence = folder.read_labels()
    source = config["data"]
    if labels and labels_from_folders:
        raise InputError("--labels and --labels-from-folders cannot be combined")
    given = labels is not None or labels_from_folders
    dataset = _data_of(config, data_root) if baselines or not given else None
    y = dataset.y if dataset else None
    if labels:
        y, said = read_true_labels(labels, ids, source.get("id_column"))
        for note in said:
            line(err, note)
    if labels_from_folders:
        y = folders_of(ids, str(run))
    n_clusters = max(config["params"]["n_clusters"] or 0, int(assigned.max()) + 1)
    if y is not None and len(y) != len(assigned):
        raise InputError(f"{source['source']}: {len(y)} labels, but the run has {len(assigned)} samples")
    if y is None:
        if as_json:
            sizes, confident = cluster_sizes(assigned, n_clusters), float((confidence > CONFIDENT).mean())
            print(json.dumps({"sizes": sizes.tolist(), "confident_share": confident}))
            return
        out.print(sizes_table(assigned, confidence, n_clusters))
        line(err, "no labels to compare with; give them with --labels FILE or --labels-from-folders")
        return
    if dataset and (why := _changed(dataset, config)):
        raise InputError(f"{why}; give the labels in the order of the run with --labels, or fit again")
    rows = kmeans_rows(dataset, y, folder) if baselines and dataset else {}
    rows[config["method"]] = score(y, assigned, confidence)
    if as_json:
        print(json.dumps({name: row.as_json() for name, row in rows.items()}))
        return
    out.print(scores_table(rows, f"{source.get('source', run)}, {len(y):,} samples, {n_clusters} clusters"))
    say_next(run, "predict", run, source.get("source", "NEW_DATA"))


def report(
    runs: Annotated[
        list[Path],
        typer.Argument(help="a run folder made by lsdc fit; give several to compare them", metavar="RUN [RUN2 ...]"),
    ],
    data_root: RootOption = None,
) -> None:
    """Write report.html: what is in each cluster, a map, neighbours and curves. Several runs give comparison.html."""
    with importing():
        from lsdc.methods import read_config
        from lsdc.report.comparison import write_comparison
        from lsdc.report.write import write_report
        from lsdc.runs.folder import Run

    folders = [Run.open(run) for run in runs]
    configs = [read_config(folder) for folder in folders]
    if len(runs) > 1:
        write_comparison(folders, configs)
        line(out, f"comparison: {runs[0] / 'comparison.html'}")
        return
    dataset, missing = data_or_why(configs[0], data_root)
    if missing:
        line(err, f"{missing}; the report is written without the data")
    write_report(folders[0], configs[0], dataset, missing=missing)
    line(out, f"report:     {runs[0] / 'report.html'}")


def data_or_why(config: dict[str, Any], data_root: Path | None) -> "tuple[Dataset | None, str]":
    """The data of a run, or why there is none: it was never in a file, it is gone, or it has changed."""
    try:
        dataset = _data_of(config, data_root)
    except InputError as error:
        return None, error.text
    if dataset is None:
        return None, "the run was fitted in Python on data that is not in a file"
    why = _changed(dataset, config)
    return (None, why) if why else (dataset, "")


def _data_of(config: dict[str, Any], data_root: Path | None) -> "Dataset | None":
    """The data a run was fitted on, if it came from a file or is built in."""
    from lsdc.data.datasets import DATASETS
    from lsdc.data.files import open_data
    from lsdc.data.reading import from_config

    source = config["data"]
    if "source" not in source:
        return None
    place = Path(str(source["source"]))
    if str(place) not in DATASETS and not place.is_absolute() and not os.path.lexists(place):
        raise InputError(f"{place}: not here; the run names its data this way, so start this where it was fitted")
    with ReadingBar(err) as bar:
        return open_data(str(source["source"]), root_of(data_root), bar, **vars(from_config(source)))


def _changed(dataset: "Dataset", config: dict[str, Any]) -> str:
    """What is wrong if the data is not the run's, row by row and value by value; empty if it is the same."""
    from lsdc.data.digest import digest, same_data
    from lsdc.experiments.job import inputs_of

    now = inputs_of(dataset)
    same = same_data(config["data"]["digest"], digest(now.X, now.spec.scale))
    return (
        "" if same else f"{config['data']['source']}: not the data the run was fitted on; values or rows have changed"
    )


def count(dataset: "Dataset") -> int:
    """The number of samples."""
    return len(dataset.X) if isinstance(dataset.X, list) else int(dataset.X.shape[0])
