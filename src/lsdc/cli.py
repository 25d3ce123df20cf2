"""The command line: ``lsdc fit``, ``predict``, ``evaluate``, ``report``, ``compare``, ``reproduce``, ``list``."""

import io
import json
import os
import shlex
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

# PyTorch and scikit-learn take seconds to import: what needs them is imported by the commands, not for their --help
import lsdc
from lsdc import cli_tables as tables
from lsdc.console import (
    ArrayOption,
    ColumnOption,
    ColumnsOption,
    DataArgument,
    DeviceOption,
    DropOption,
    IdOption,
    RootOption,
    SizeOption,
    about_data,
    err,
    fail,
    is_shared,
    line,
    log,
    out,
    program,
    reading,
    root_of,
    say_failure,
)
from lsdc.errors import Diverged, HealthWarning, InputError, PeerLost, printable, unknown
from lsdc.importing import importing

if TYPE_CHECKING:
    from lsdc.data.datasets import Dataset
    from lsdc.report.terminal import Live
    from lsdc.training.run import Run

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Group unlabelled images, documents or embeddings into K clusters (LSD-C).",
    epilog="Start with:  lsdc fit digits",
)
app.command()(tables.reproduce)
app.command()(tables.compare)


RunArgument = Annotated[Path, typer.Argument(help="a run folder made by lsdc fit")]


@app.callback(invoke_without_command=True)
def start(
    context: typer.Context, version: Annotated[bool, typer.Option("--version", help="show the version")] = False
) -> None:
    if version:
        print(f"lsdc {lsdc.__version__}")
    elif context.invoked_subcommand is None:
        print(context.get_help())
    elif is_shared() and context.invoked_subcommand not in ("fit", "predict"):
        raise InputError(
            f"torchrun shares the work of fit and predict only; call lsdc {context.invoked_subcommand} alone"
        )


@app.command()
def fit(
    data: DataArgument,
    clusters: Annotated[
        int | None, typer.Option("--clusters", "-k", help="how many clusters (default: the data set's classes)")
    ] = None,
    out_: Annotated[Path | None, typer.Option("--out", "-o", help="the run folder (default: runs/NAME)")] = None,
    recipe_: Annotated[str, typer.Option("--recipe", help="a set of settings (lsdc list recipes)")] = "default",
    method_: Annotated[
        str | None, typer.Option("--method", help="the method (lsdc list methods; default: lsdc)")
    ] = None,
    seed: Annotated[
        int | None, typer.Option("--seed", help="the same seed gives the same clusters (default: 0)")
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="change one setting, e.g. --set epochs=20 (lsdc list settings --method ...)",
            metavar="KEY=VALUE",
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="go on with an interrupted run (begins it if there is none)")
    ] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="replace the run that is there")] = False,
    save_every: Annotated[
        float,
        typer.Option("--save-every", min=0, help="seconds between checkpoints within an epoch", metavar="SECONDS"),
    ] = 60.0,
    device: DeviceOption = None,
    data_root: RootOption = None,
    image_size: SizeOption = 32,
    column: ColumnOption = None,
    columns: ColumnsOption = None,
    drop: DropOption = None,
    id_column: IdOption = None,
    array: ArrayOption = None,
) -> None:
    """Find the clusters of DATA and keep everything in a run folder."""
    with importing():
        from lsdc import parallel
        from lsdc.data.dataset import Reading, kept, recalled
        from lsdc.data.files import open_data
        from lsdc.experiments.parameters import chosen, complete, resumed
        from lsdc.methods import METHODS
        from lsdc.report.terminal import Live

    if resume and overwrite:
        raise InputError("--resume and --overwrite exclude each other")
    folder = out_ or Path("runs") / Path(data).resolve().stem
    run, stored = _open_run(folder, resume, overwrite)
    how = reading(Reading(image_size), column=column, columns=columns, drop=drop, id_column=id_column, array=array)
    method = str(stored["method"]) if stored else method_ or "lsdc"
    if stored:
        if method_ not in (None, method):
            raise InputError(f"{folder}: was started with --method {method}, not {method_}; choose another --out")
        how = recalled(stored["data"])
    dataset = open_data(data, root_of(data_root), **vars(how))
    given = chosen(method, recipe_, set_ or [], dataset, clusters, seed)
    params = resumed(stored["params"], given, folder) if stored else complete(given, dataset, method)
    try:
        model = METHODS[method](**{**params, **({"device": device} if device else {})})
    except TypeError:
        raise InputError(f"{folder / 'config.json'}: holds parameters that {method} does not have") from None
    run.source = {"source": data, **kept(how, dataset)}
    run.ids, run.interval = dataset.ids, save_every
    name = dataset.title or dataset.name
    wanted = f"{params['n_clusters']} clusters" if params["n_clusters"] is not None else "clusters to be counted"
    headline = f"{name}: {_count(dataset):,} samples, {wanted}, run folder {folder}"
    if parallel.size() > 1:
        headline += f", {parallel.size()} processes"
    try:
        with Live(err, headline) as monitor, _readable_warnings():
            run.began = partial(_say_what_was_read, run, dataset, monitor)
            model.fit(dataset, monitor=monitor, **({"resume": run} if resume else {"run": run}))
    except InputError as error:
        raise about_data(error, data) from None
    except (KeyboardInterrupt, PeerLost) as error:
        root = ["--data-root", str(data_root)] if data_root else []
        _say_how_to_go_on(error, run, [*program(), "fit", data, "--out", str(folder), "--resume", *root])
        if isinstance(error, PeerLost):
            raise
        raise typer.Exit(143 if isinstance(error, Terminated) else 130) from None
    if parallel.rank() == 0:
        _finish(run, dataset, model)


def _say_what_was_read(run: "Run", dataset: "Dataset", monitor: "Live") -> None:
    """The first lines of a fit, and read.json in its folder."""
    from lsdc.data.summary import about_reading, in_one_line, summary

    content = summary(dataset)
    run.write_json("read.json", content)
    monitor.headline = "\n".join([monitor.headline, in_one_line(content), *about_reading(dataset)])
    if dataset.skipped:
        monitor.headline += f"; all are listed in {run.path / 'read.json'}"
    if not run.resuming:  # its checkpoints may still be refused
        monitor.open()


def _open_run(folder: Path, resume: bool, overwrite: bool) -> tuple["Run", dict[str, Any]]:
    """The run, and if it goes on the config it was started with; the first process looks for all."""
    from lsdc import parallel
    from lsdc.methods import read_config
    from lsdc.training.run import Run

    stored: dict[str, Any] = {}
    run = Run(folder)
    if parallel.rank() == 0:
        run = Run.resume(folder) if resume else Run.create(folder, overwrite)
        stored = read_config(run) if run.resuming else {}
        if resume and not run.resuming:
            line(err, f"{folder}: nothing to go on with yet; starts from the beginning")
    return run, json.loads(parallel.say(json.dumps(stored).encode()))


def _say_how_to_go_on(error: BaseException, run: "Run", words: list[str]) -> None:
    from lsdc import parallel

    if parallel.rank() > 0:
        return
    again = shlex.join(words)
    if isinstance(error, PeerLost):
        line(err, f"everything up to the last checkpoint is kept. Go on with:  {again}")
    elif kept := next(filter(None, map(run.read_checkpoint, ("choice", "clustering", "starts", "pretext"))), None):
        place = f"epoch {len(kept.history) + 1}, step {kept.step}" if kept.step else f"epoch {len(kept.history)}"
        line(err, f"stopped; everything up to {place} is kept. Go on with:  {again}")
    else:
        line(err, "stopped before there was anything to keep")


def _finish(run: "Run", dataset: "Dataset", model: Any) -> None:
    """What a person wants to know when a fit is done."""
    from lsdc.metrics import score
    from lsdc.report.terminal import scores_table, sizes_table

    _, labels, confidence = run.read_labels()
    out.print(sizes_table(labels, confidence, model.n_clusters_))
    if dataset.y is not None:
        out.print(scores_table({model.method: score(dataset.y, labels, confidence)}, dataset.title or dataset.name))
    _write_report(run, dataset)
    labelled = dataset.y is not None
    _say_next(run.path, *(("evaluate", run.path, "--baselines") if labelled else ("predict", run.path, "NEW_DATA")))


def _say_next(folder: Path, *words: object) -> None:
    """The run folder, its report, and the command to try next."""
    line(out, f"run folder: {folder}")
    if (folder / "report.html").exists():
        line(out, f"report:     {folder / 'report.html'}")
    line(out, f"next:       {shlex.join([*program(), *map(str, words)])}")


@app.command()
def predict(
    run: RunArgument,
    data: DataArgument,
    out_: Annotated[Path | None, typer.Option("--out", "-o", help="a CSV file (default: standard output)")] = None,
    device: DeviceOption = None,
    data_root: RootOption = None,
    columns: ColumnsOption = None,
    id_column: IdOption = None,
    array: ArrayOption = None,
) -> None:
    """Label new DATA with the model of a run: id, cluster, confidence."""
    with importing():
        from lsdc import parallel
        from lsdc.data.dataset import recalled
        from lsdc.data.files import open_data
        from lsdc.data.summary import about_reading
        from lsdc.methods import load, read_config
        from lsdc.training.checkpoint import write_atomic
        from lsdc.training.labels import labels_csv
        from lsdc.training.run import Run

    known = recalled(read_config(Run.open(run))["data"])
    known = replace(known, matched=True) if columns is None else replace(known, id_column=None)
    model = load(run, **({"device": device} if device else {}))
    dataset = open_data(
        data, root_of(data_root), **vars(reading(known, columns=columns, id_column=id_column, array=array))
    )
    try:
        p = model.predict_proba(dataset.X)
    except InputError as error:
        raise about_data(error, data) from None
    if parallel.rank() > 0:
        return
    for said in about_reading(dataset):
        line(err, said)
    text = labels_csv(dataset.ids or range(len(p)), p.argmax(1).tolist(), p.max(1).tolist())
    if out_ is None or str(out_) == "-":
        sys.stdout.write(text.encode(errors="backslashreplace").decode())
        return
    try:
        write_atomic(out_, text.encode(errors="backslashreplace"))
    except OSError as error:
        raise InputError(f"{out_}: cannot write there ({error.strerror})") from None
    line(err, f"{len(p):,} samples labelled in {out_}")


@app.command()
def evaluate(
    run: RunArgument,
    labels: Annotated[
        Path | None,
        typer.Option(
            "--labels",
            help="true labels: a table with id and label, or in the order of the data one a line or a .npy file",
        ),
    ] = None,
    baselines: Annotated[
        bool, typer.Option("--baselines", help="K-means on the inputs and on the pretext's features, beside")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
    data_root: RootOption = None,
) -> None:
    """Show how good a run's clusters are: against labels if there are any, else sizes and confidence."""
    with importing():
        from lsdc.data.truth import read_labels
        from lsdc.experiments.baselines import kmeans_rows
        from lsdc.methods import read_config
        from lsdc.metrics import cluster_sizes, score
        from lsdc.report.terminal import scores_table, sizes_table
        from lsdc.training.run import Run

    folder = Run.open(run)
    config = read_config(folder)
    ids, assigned, confidence = folder.read_labels()
    source = config["data"]
    dataset = _data_of(config, data_root) if baselines or labels is None else None
    y = dataset.y if dataset else None
    if labels:
        y, said = read_labels(labels, ids, source.get("id_column"))
        for note in said:
            line(err, note)
    n_clusters = max(config["params"]["n_clusters"] or 0, int(assigned.max()) + 1)
    if y is not None and len(y) != len(assigned):
        raise InputError(f"{source['source']}: {len(y)} labels, but the run has {len(assigned)} samples")
    if y is None:
        if as_json:
            print(
                json.dumps(
                    {
                        "sizes": cluster_sizes(assigned, n_clusters).tolist(),
                        "confident_share": float((confidence > 0.9).mean()),
                    }
                )
            )
            return
        out.print(sizes_table(assigned, confidence, n_clusters))
        line(err, "no labels to compare with; give some with --labels FILE")
        return
    if dataset and (why := _changed(dataset, config)):
        raise InputError(f"{why}; give labels in the order of the run with --labels, or fit again")
    rows = kmeans_rows(dataset, y, folder) if baselines and dataset else {}
    rows[config["method"]] = score(y, assigned, confidence)
    if as_json:
        figures = {name: {k: None if v != v else v for k, v in row._asdict().items()} for name, row in rows.items()}
        print(json.dumps(figures))
        return
    out.print(scores_table(rows, f"{source.get('source', run)}, {len(y):,} samples, {n_clusters} clusters"))
    _say_next(run, "predict", run, source.get("source", "NEW_DATA"))


@app.command()
def report(run: RunArgument, data_root: RootOption = None) -> None:
    """Write report.html: sizes, confidence, curves, and what is in each cluster."""
    with importing():
        from lsdc.methods import read_config
        from lsdc.training.run import Run

    folder = Run.open(run)
    config = read_config(folder)
    dataset = _data_of(config, data_root)
    if dataset and (why := _changed(dataset, config)):
        line(err, f"{why}; the report does without it")
        dataset = None
    _write_report(folder, dataset)
    line(out, f"report:     {run / 'report.html'}")


def _data_of(config: dict[str, Any], data_root: Path | None) -> "Dataset | None":
    """The data a run was made of, if it came from a file or by a name."""
    from lsdc.data.dataset import recalled
    from lsdc.data.files import open_data

    source = config["data"]
    if "source" not in source:
        return None
    return open_data(str(source["source"]), root_of(data_root), **vars(recalled(source)))


def _changed(dataset: "Dataset", config: dict[str, Any]) -> str:
    """What is wrong if the data is not that of the run, row by row and value by value; empty if it is."""
    from lsdc.experiments.compare import vectors_or_images
    from lsdc.methods.persist import digest, same_data

    same = same_data(config["data"]["digest"], digest(vectors_or_images(dataset)))
    return "" if same else f"{config['data']['source']}: not the data the run was made of: values or rows have changed"


def _write_report(run: "Run", dataset: "Dataset | None") -> None:
    from lsdc.methods import read_config
    from lsdc.metrics import score
    from lsdc.report.html import page
    from lsdc.training.checkpoint import write_atomic

    config = read_config(run)
    _, labels, confidence = run.read_labels()
    known = dataset is not None and _count(dataset) == len(labels)
    scores = score(dataset.y, labels, confidence) if known and dataset is not None and dataset.y is not None else None
    title = str(config["data"].get("source", run.path.name))
    text = page(title, config, run.read_metrics(), labels, confidence, dataset if known else None, scores)
    write_atomic(run.path / "report.html", text.encode(errors="backslashreplace"))


class Kind(StrEnum):
    methods = "methods"
    datasets = "datasets"
    similarities = "similarities"
    compositions = "compositions"
    pretexts = "pretexts"
    backbones = "backbones"
    augmentations = "augmentations"
    recipes = "recipes"
    settings = "settings"


@app.command("list")
def list_(
    kind: Annotated[Kind, typer.Argument(help="what to list")],
    method: Annotated[str, typer.Option("--method", help="the method whose settings are listed")] = "lsdc",
) -> None:
    """Show the names that can be used."""
    with importing():
        from lsdc.data.augment import AUGMENTATIONS
        from lsdc.data.datasets import DATASETS
        from lsdc.experiments.recipes import RECIPES
        from lsdc.functional import COMPOSITIONS, SIMILARITIES
        from lsdc.methods import METHODS
        from lsdc.nn.network import BACKBONES
        from lsdc.pretext import PRETEXTS
        from lsdc.report.terminal import names_table

    if method not in METHODS:
        raise unknown("method", method, METHODS)
    tables: dict[str, dict[str, Any]] = {
        "methods": METHODS,
        "datasets": DATASETS,
        "similarities": SIMILARITIES,
        "compositions": COMPOSITIONS,
        "pretexts": PRETEXTS,
        "backbones": BACKBONES,
        "augmentations": AUGMENTATIONS,
        "recipes": RECIPES,
        "settings": METHODS[method]().get_params(),
    }
    entries = [(name, _about(entry, kind)) for name, entry in tables[kind].items()]
    out.print(names_table(f"settings of {method}" if kind is Kind.settings else kind, entries))


def _about(entry: Any, kind: Kind) -> str:
    if kind is Kind.settings:
        return f"default {entry!r}"
    return entry if isinstance(entry, str) else (entry.__doc__ or "").strip().split("\n")[0]


def _count(dataset: "Dataset") -> int:
    return len(dataset.X) if isinstance(dataset.X, list) else int(dataset.X.shape[0])


@contextmanager
def _readable_warnings() -> Iterator[None]:
    """Health warnings as lines on the console instead of Python's format."""
    with warnings.catch_warnings():
        plain = warnings.showwarning

        def show(message: Any, category: Any, *where: Any, **more: Any) -> None:
            if issubclass(category, HealthWarning):
                err.print(Text.assemble(("warning: ", "yellow"), printable(str(message))), soft_wrap=True)
            else:
                plain(message, category, *where, **more)

        warnings.simplefilter("always", HealthWarning)
        warnings.showwarning = show
        yield


USAGE: type[Exception] = typer.BadParameter.__mro__[2]  # the ClickException of the click that typer brings


class Terminated(KeyboardInterrupt):
    """SIGTERM: as Ctrl-C, with another exit code."""


def _terminate(number: int, frame: Any) -> None:
    raise Terminated


def main(words: list[str] | None = None) -> None:
    """Run, whatever can be printed: characters that the terminal lacks are spelt out."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        _run(words)
    finally:
        log.close()


def _run(words: list[str] | None) -> None:
    """Run, and turn the user's mistakes into one line and exit code 2."""
    signal.signal(signal.SIGTERM, _terminate)
    try:
        if is_shared():
            _join()
        code = app(words, standalone_mode=False)
    except InputError as error:
        fail(str(error), 2)
    except USAGE as error:
        fail(error.format_message().replace("\n", " "), 2)  # type: ignore[attr-defined]
    except Diverged as error:
        fail(str(error), 1)
    except PeerLost as error:
        say_failure(str(error))
        sys.stdout.flush()
        os._exit(1)  # an orderly end would wait for processes that are no more
    except MemoryError:
        fail("not enough memory; try a smaller batch_size, width or pool (--set)", 1)
    except Terminated:
        fail("stopped by SIGTERM", 143)
    except KeyboardInterrupt:
        fail("stopped", 130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as error:
        fail(f"{error.filename or 'disk'}: {error.strerror or error}", 1)
    else:
        if is_shared():
            lsdc.parallel.leave()
        sys.exit(code if isinstance(code, int) else 0)


def _join() -> None:
    """Become one of the processes of torchrun's job, of which the first alone talks."""
    with importing():
        from lsdc import parallel

    parallel.join()
    if parallel.rank() > 0:
        err.quiet = out.quiet = True


if __name__ == "__main__":
    main()
