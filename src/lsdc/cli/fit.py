"""``lsdc fit``: find the clusters of some data, and say what came of it."""

import json
import shlex
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from lsdc.cli.console import Terminated, about_data, err, line, out, program, say_next
from lsdc.cli.importing import importing
from lsdc.cli.options import (
    ArrayOption,
    ColumnOption,
    ColumnsOption,
    DataArgument,
    DeviceOption,
    DropOption,
    IdOption,
    RootOption,
    SizeOption,
    reading,
    root_of,
)
from lsdc.cli.results import count
from lsdc.errors import HealthWarning, InputError, PeerLost, printable

if TYPE_CHECKING:
    from lsdc.data.datasets import Dataset
    from lsdc.report.terminal import Live
    from lsdc.runs.folder import Run


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
    headline = f"{name}: {count(dataset):,} samples, {wanted}, run folder {folder}"
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
    first = parallel.rank() == 0
    parallel.leave()  # the others are done: what the model is asked from here on is not shared
    if first:
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
    from lsdc.runs.folder import Run

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
    from lsdc.methods import read_config
    from lsdc.metrics import score
    from lsdc.report.terminal import scores_table, sizes_table
    from lsdc.report.write import write_report

    _, labels, confidence = run.read_labels()
    out.print(sizes_table(labels, confidence, model.n_clusters_))
    if dataset.y is not None:
        out.print(scores_table({model.method: score(dataset.y, labels, confidence)}, dataset.title or dataset.name))
    write_report(run, read_config(run), dataset, model)
    labelled = dataset.y is not None
    say_next(run.path, *(("evaluate", run.path, "--baselines") if labelled else ("predict", run.path, "NEW_DATA")))


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
