"""Using a finished run: ``lsdc predict``, ``evaluate`` and ``report``."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lsdc.cli.console import about_data, err, line, out, readable_warnings, say_next
from lsdc.cli.importing import importing
from lsdc.cli.options import (
    ArrayOption,
    ColumnOption,
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
from lsdc.cli.run_data import data_or_why, read_again, what_changed
from lsdc.cli.wording import say_reading
from lsdc.cli.writing import check_output, write_output
from lsdc.errors import InputError, counted, printable

if TYPE_CHECKING:
    import numpy as np

    from lsdc.data.datasets import Dataset


def predict(
    context: typer.Context,
    run: RunArgument,
    data: DataArgument,
    out_: Annotated[Path | None, typer.Option("--out", "-o", help="a CSV file (default: standard output)")] = None,
    device: DeviceOption = None,
    data_root: RootOption = None,
    column: ColumnOption = None,
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
        from lsdc.runs.folder import Run

    known = from_config(read_config(Run.open(run))["data"])
    if out_ is not None:
        check_output(out_, run, data)
    known = replace(known, matched=True) if columns is None else replace(known, id_column=None)
    model = load(run, **({"device": device} if device else {}))
    own = {"column": column, "columns": columns, "id_column": id_column, "array": array}
    how = reading(known, **own, encoder=encoder, text_encoder=text_encoder)
    with ReadingBar(err) as bar:
        dataset = open_data(data, root_of(data_root), bar, **vars(how))
    try:
        text = _predicted(model, dataset)
    except InputError as error:
        raise about_data(error, data) from None
    if parallel.rank() > 0:
        return
    say_reading(dataset, context)
    if out_ is None or str(out_) == "-":
        shown = "\n".join(map(printable, text.split("\n"))) if sys.stdout.isatty() else text
        sys.stdout.write(shown.encode(errors="backslashreplace").decode())
        return
    write_output(out_, text.encode(errors="backslashreplace"))
    line(err, f"{dataset.n_samples:,} samples labelled in {out_}")


def _predicted(model: Any, dataset: "Dataset") -> str:
    """The labels of new data, as a CSV file in the form of labels.csv."""
    from lsdc.methods.assignment import best_two
    from lsdc.methods.validation import warn_of_wordless
    from lsdc.runs.labels import labels_csv

    with readable_warnings():
        p = model.predict_proba(dataset.X)
        if model.words_:
            warn_of_wordless(model.words_.transform(dataset.X))
    found, ids = best_two(p), dataset.ids or range(len(p))
    columns = found.labels.tolist(), found.confidence.tolist(), found.runner_up()
    return labels_csv(ids, *columns, model._names, dataset.beside)


LabelsOption = Annotated[
    Path | None,
    typer.Option(
        "--labels",
        help="true labels: a table with id and label, or a .npy or text file with one per sample, in order",
    ),
]
FromFoldersOption = Annotated[
    bool, typer.Option("--labels-from-folders", help="use the sub-folder of each photo as its true label")
]
BaselinesOption = Annotated[
    bool, typer.Option("--baselines", help="add K-means on the inputs and on the pretext's features")
]


def evaluate(
    run: RunArgument,
    labels: LabelsOption = None,
    labels_from_folders: FromFoldersOption = False,
    baselines: BaselinesOption = False,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
    data_root: RootOption = None,
) -> None:
    """Show how good a run's clusters are: scores if there are labels, otherwise sizes and confidence."""
    with importing():
        from lsdc.experiments.baselines import kmeans_rows
        from lsdc.methods import read_config
        from lsdc.metrics import score
        from lsdc.report.terminal import scores_table
        from lsdc.runs.folder import Run

    if labels and labels_from_folders:
        raise InputError("--labels and --labels-from-folders cannot be combined")
    folder = Run.open(run)
    config = read_config(folder)
    ids, assigned, confidence = folder.read_labels()
    n_clusters = max(config["params"]["n_clusters"] or 0, int(assigned.max()) + 1)
    given = labels is not None or labels_from_folders
    dataset = read_again(config, data_root) if baselines or not given else None
    y = _true_labels(config, ids, labels, run) if given else dataset.y if dataset else None
    if y is None:
        _show_sizes(assigned, confidence, n_clusters, [str(name) for name in folder.names()], as_json)
        return
    source = config["data"].get("source", run)
    if len(y) != len(assigned):
        raise InputError(f"{source}: {len(y)} labels, but the run has {len(assigned)} samples")
    if dataset and (why := what_changed(dataset, config)):
        raise InputError(f"{why}; give the labels in the order of the run with --labels, or fit again")
    rows = kmeans_rows(dataset, y, folder) if baselines and dataset else {}
    rows[config["method"]] = score(y, assigned, confidence)
    if as_json:
        print(json.dumps({name: row.as_json() for name, row in rows.items()}))
        return
    out.print(scores_table(rows, f"{source}, {counted(len(y), 'sample')}, {counted(n_clusters, 'cluster')}"))
    say_next(run, "predict", run, "NEW_DATA")


def _true_labels(config: dict[str, Any], ids: list[str], labels: Path | None, run: Path) -> "np.ndarray":
    """The labels in a file, or the sub-folders of the photos."""
    from lsdc.data.truth import folders_of, read_true_labels

    if labels is None:
        return folders_of(ids, str(run))
    y, notes = read_true_labels(labels, ids, config["data"].get("id_column"))
    for note in notes:
        line(err, note)
    return y


def _show_sizes(
    assigned: "np.ndarray", confidence: "np.ndarray", n_clusters: int, names: list[str], as_json: bool
) -> None:
    """All there is to say without labels."""
    from lsdc.metrics import CONFIDENT, cluster_sizes
    from lsdc.report.terminal import sizes_table

    if as_json:
        sizes, confident = cluster_sizes(assigned, n_clusters), float((confidence > CONFIDENT).mean())
        print(json.dumps({"sizes": sizes.tolist(), "confident_share": confident}))
        return
    out.print(sizes_table(assigned, confidence, n_clusters, names if len(names) == n_clusters else None))
    line(err, "there are no labels to compare with; add them with --labels FILE or --labels-from-folders")


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
