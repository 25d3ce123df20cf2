"""``lsdc fit``: cluster some data and say what was found."""

import json
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lsdc.cli.afterwards import show_result
from lsdc.cli.console import Terminated, about_data, err, hush, line, out, program, readable_warnings
from lsdc.cli.importing import importing
from lsdc.cli.options import (
    FILES,
    DataArgument,
    DeviceOption,
    ReadingOptions,
    RootOption,
    reading,
    reads_data,
    root_of,
)
from lsdc.cli.reading import ReadingBar
from lsdc.cli.wording import with_options
from lsdc.errors import InputError, PeerLost, counted, shown

USE_AN_ENCODER = (
    "photos are clustered by their pixels alone; to group them by what they show, use a pretrained network: "
    "--encoder FILE.onnx or --encoder facebook/dinov2-small (docs/encoders.md)"
)

LAST_FIRST = ("agreement", "choice", "clustering", "starts", "pretext")  # the stages of a fit, from its end

if TYPE_CHECKING:
    from lsdc.data.datasets import Dataset
    from lsdc.data.reading import Reading
    from lsdc.report.terminal import Live
    from lsdc.runs.folder import Run


ClustersOption = Annotated[
    str | None,
    typer.Option(
        "--clusters",
        "-k",
        help="number of clusters, or auto to count them first (default: the data set's classes)",
        metavar="K|auto",
    ),
]
OutOption = Annotated[Path | None, typer.Option("--out", "-o", help="the run folder (default: runs/NAME)")]
RecipeOption = Annotated[str, typer.Option("--recipe", help="a named set of settings (lsdc list recipes)")]
MethodOption = Annotated[str | None, typer.Option("--method", help="the method (lsdc list methods; default: lsdc)")]
SeedOption = Annotated[
    int | None, typer.Option("--seed", help="random seed; the same seed gives the same clusters (default: 0)")
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help="change one setting, e.g. --set epochs=20 (lsdc list settings --method ...)",
        metavar="KEY=VALUE",
    ),
]
ResumeOption = Annotated[
    bool, typer.Option("--resume", help="continue an interrupted run, or start it if there is none")
]
OverwriteOption = Annotated[bool, typer.Option("--overwrite", help="replace an existing run")]
OutliersOption = Annotated[
    float | None,
    typer.Option(
        "--outliers",
        min=0,
        max=0.9,
        help="leave this share of the samples, the least certain, unassigned (-1)",
        metavar="SHARE",
    ),
]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="print warnings and errors only")]
JsonOption = Annotated[bool, typer.Option("--json", help="print the result as JSON on standard output")]
SaveEveryOption = Annotated[
    float, typer.Option("--save-every", min=0, help="seconds between checkpoints within an epoch", metavar="SECONDS")
]


@reads_data
def fit(
    context: typer.Context,
    data: DataArgument,
    clusters: ClustersOption = None,
    out_: OutOption = None,
    recipe_: RecipeOption = "default",
    method_: MethodOption = None,
    seed: SeedOption = None,
    set_: SetOption = None,
    resume: ResumeOption = False,
    overwrite: OverwriteOption = False,
    outliers: OutliersOption = None,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
    save_every: SaveEveryOption = 60.0,
    device: DeviceOption = None,
    data_root: RootOption = None,
    *,
    options: ReadingOptions,
) -> None:
    """Cluster DATA and keep everything in a run folder.

    Examples:  lsdc fit digits  ·  lsdc fit photos/ --clusters 12  ·  lsdc fit reviews.csv --column text --clusters auto
    """
    hush(context, *([out, err] if quiet else [out] if as_json else []))
    with importing():
        from lsdc import parallel
        from lsdc.cli.parameters import chosen, complete, resumed
        from lsdc.data.files import open_data
        from lsdc.data.reading import to_config

    if resume and overwrite:
        raise InputError("--resume and --overwrite cannot be combined")
    folder = out_ or Path("runs") / Path(data).resolve().stem
    run, stored = _open_run(folder, resume, overwrite)
    method = _method(folder, stored, method_)
    how = _reading(stored, options)
    with ReadingBar(err) as bar:
        dataset = open_data(data, root_of(data_root), bar, **vars(how))
    given = chosen(method, recipe_, set_ or [], dataset, number_of_clusters(clusters), seed)
    params = resumed(stored["params"], given, folder) if stored else complete(given, dataset, method)
    model = _model(folder, method, {**params, **({"device": device} if device else {})})
    run.source = {"source": data, **to_config(how, dataset)}
    run.ids, run.interval, run.beside = dataset.ids, save_every, dataset.beside
    run.outliers = float(stored.get("outliers", 0.0)) if outliers is None else outliers
    root = ["--data-root", str(data_root)] if data_root else []
    with _interruptible(run, [*program(), "fit", data, "--out", str(folder), "--resume", *root]):
        _train(run, dataset, model, data, quiet, context)
    first = parallel.rank() == 0
    parallel.leave()  # the other processes have finished: from here on this one works alone
    if first:
        show_result(run, dataset, model, clusters is not None, as_json)


def _method(folder: Path, stored: dict[str, Any], asked: str | None) -> str:
    """The method of the run; a resumed one keeps its own."""
    method = str(stored["method"]) if stored else asked or "lsdc"
    if asked not in (None, method):
        raise InputError(f"{folder}: started with --method {method}, not {asked}; choose another --out")
    return method


def _reading(stored: dict[str, Any], options: ReadingOptions) -> "Reading":
    """How to read the data: as the options say, or else as a resumed run did."""
    from lsdc.data.reading import Reading, from_config

    again = stored and all(options[name] is None for name in FILES)  # others are used, and the digest decides
    return reading(from_config(stored["data"]) if again else Reading(), **options)


def _model(folder: Path, method: str, params: dict[str, Any]) -> Any:
    from lsdc.methods import METHODS

    try:
        return METHODS[method](**params)
    except TypeError:
        raise InputError(f"{folder / 'config.json'}: has parameters that {method} does not know") from None


def _train(run: "Run", dataset: "Dataset", model: Any, data: str, quiet: bool, context: typer.Context) -> None:
    """Fit the model in its run folder, with progress."""
    from lsdc import parallel
    from lsdc.report.terminal import Live

    n_clusters = model.n_clusters
    wanted = counted(n_clusters, "cluster") if isinstance(n_clusters, int) else "clusters to be counted"
    headline = f"{dataset.title or dataset.name}: {dataset.n_samples:,} samples, {wanted}, run folder {run.path}"
    if parallel.size() > 1:
        headline += f", {parallel.size()} processes"
    try:
        with Live(err, headline) as monitor, readable_warnings(quiet):
            run.began = partial(_say_what_was_read, run, dataset, monitor, model, context)
            where: dict[str, Any] = {"resume": run} if context.params["resume"] else {"run": run}
            model.fit(dataset, monitor=monitor, **where)
    except InputError as error:
        raise about_data(error, data) from None


@contextmanager
def _interruptible(run: "Run", again: list[str]) -> Iterator[None]:
    """Where a fit is stopped, say what is saved and the command that resumes it."""
    try:
        yield
    except (KeyboardInterrupt, PeerLost) as error:
        _say_how_to_go_on(error, run, again)
        if isinstance(error, PeerLost):
            raise
        raise typer.Exit(error.code if isinstance(error, Terminated) else 130) from None


def number_of_clusters(text: str | None) -> int | str | None:
    """The value of ``--clusters``."""
    if text is None or text == "auto":
        return text
    try:
        return int(text)
    except ValueError:
        raise InputError(f"--clusters must be a whole number or auto, got {shown(text)}") from None


def _say_what_was_read(run: "Run", dataset: "Dataset", monitor: "Live", model: Any, context: typer.Context) -> None:
    """Print the first lines of a fit, and write read.json."""
    from lsdc.data.reading import of_photos
    from lsdc.data.summary import about_reading, in_one_line, summary
    from lsdc.report.estimate import Clock, planned

    content = summary(dataset)
    notes = [with_options(note, context) for note in about_reading(dataset)]
    if (found := getattr(model, "suggestion_", None)) is not None:
        content["suggestion"] = found.as_dict()
        notes.append(f"counted: {found.in_words()}; for the evidence, run lsdc suggest-k")
    run.write_json("read.json", content)
    monitor.clock = Clock(planned(model.settings_, dataset.n_samples))
    monitor.headline = "\n".join([monitor.headline, in_one_line(content), *notes])
    if dataset.skipped:
        monitor.headline += f"; the full list is in {run.path / 'read.json'}"
    if of_photos(dataset):
        monitor.headline += f"\n{USE_AN_ENCODER}"
    if not run.resuming:  # its checkpoints may still be refused
        monitor.open()


def _open_run(folder: Path, resume: bool, overwrite: bool) -> tuple["Run", dict[str, Any]]:
    """The run and, if it is resumed, the config it was started with; the first process looks for all of them."""
    from lsdc import parallel
    from lsdc.methods import read_config
    from lsdc.runs.folder import Run

    stored: dict[str, Any] = {}
    run = Run(folder)
    if parallel.rank() == 0:
        run = Run.resume(folder) if resume else Run.create(folder, overwrite)
        stored = read_config(run) if run.resuming else {}
        if resume and not run.resuming:
            line(err, f"{folder}: nothing to resume yet; starting from the beginning")
    return run, json.loads(parallel.broadcast(json.dumps(stored).encode()))


def _say_how_to_go_on(error: BaseException, run: "Run", words: list[str]) -> None:
    from lsdc import parallel

    if parallel.rank() > 0:
        return
    again = shlex.join(words)
    if isinstance(error, PeerLost):
        line(err, f"everything up to the last checkpoint is saved. Resume with:  {again}")
    elif kept := next(filter(None, map(run.read_checkpoint, LAST_FIRST)), None):
        place = f"epoch {len(kept.history) + 1}, step {kept.step}" if kept.step else f"epoch {len(kept.history)}"
        line(err, f"stopped; everything up to {place} is saved. Resume with:  {again}")
    else:
        line(err, "stopped before there was anything to save")
