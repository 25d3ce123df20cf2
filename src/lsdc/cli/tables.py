"""The commands that run many fits and write a table: ``lsdc reproduce`` and ``lsdc compare``."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lsdc.cli.console import about_data, err, fail, line, out
from lsdc.cli.importing import importing
from lsdc.cli.options import (
    DataArgument,
    DeviceOption,
    ReadingOptions,
    RootOption,
    reading,
    reads_data,
    root_of,
)
from lsdc.cli.reading import ReadingBar
from lsdc.cli.wording import say_reading
from lsdc.errors import InputError

if TYPE_CHECKING:
    from lsdc.experiments.engine import State
    from lsdc.experiments.table import Row
    from lsdc.report.terminal import Board

NAMES = ("table1", "reuters", "ablation", "ablation-extra")  # as in experiments.paper, which imports PyTorch
JobsOption = Annotated[
    int | None,
    typer.Option(
        "--jobs", "-j", min=1, help="how many fits to run at the same time (default: one per GPU, or one per core)"
    ),
]


TableArgument = Annotated[str, typer.Argument(metavar="TABLE", help=f"{', '.join(NAMES)} or figures")]
DatasetsOption = Annotated[
    str | None, typer.Option("--datasets", help="data sets, separated by commas (default: the paper's)")
]
TableScaleOption = Annotated[
    str, typer.Option("--scale", help="cpu: smaller networks and schedules; paper: the paper's, for a GPU")
]
VariantsOption = Annotated[
    str | None,
    typer.Option("--methods", help="columns to run, separated by commas, or all (default: lsdc and kmeans)"),
]
SamplesOption = Annotated[
    int | None, typer.Option("--samples", min=100, help="use a random part of each data set, to save time")
]


def reproduce(
    name: TableArgument,
    datasets: DatasetsOption = None,
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="how many seeds to run, from 0 up (the paper: ten)")] = 3,
    scale: TableScaleOption = "cpu",
    out_: Annotated[
        Path, typer.Option("--out", "-o", help="the folder for results; finished ones are not run again")
    ] = Path("reproduce"),
    methods: VariantsOption = None,
    jobs: JobsOption = None,
    samples: SamplesOption = None,
    device: DeviceOption = None,
    data_root: RootOption = None,
) -> None:
    """Rerun a TABLE of the paper, or its figures; finished results are not run again.

    Results are OUT/cells/*.json, the table OUT/TABLE-SCALE.md, .tex and .json.
    """
    with importing():
        from lsdc.cli.parameters import methods_of, words
        from lsdc.experiments import reproduce as reproducing
        from lsdc.experiments.engine import Place
        from lsdc.experiments.figures import draw, pyplot
        from lsdc.experiments.paper import check_methods, default_methods, table

    base = "table1" if name == "figures" else name
    names = list(table(base).datasets) if datasets is None else words(datasets, "--datasets", "datasets")
    chosen = default_methods(base) if methods is None else [] if methods.strip() == "all" else methods_of(methods)
    check_methods(base, chosen)
    place = Place(root_of(data_root), out_, device or "auto", jobs)
    if name == "figures":
        pyplot()  # a missing library is reported before hours of work
    with ReadingBar(err) as bar:
        data = reproducing.read_data(base, names, scale, place.root, samples, bar)
    wanted = reproducing.grid(base, data, seeds, scale, samples, chosen)
    with _board() as board:
        watch = _watch(board, partial(_say_plan, [str(job.facts["variant"]) for job in wanted]))
        rows, state = reproducing.reproduce(base, wanted, data, scale, place, watch)
    _show(f"{table(base).title}, scale {scale}", reproducing.SHORT, rows)
    written = [out_ / f"{base}-{scale}{suffix}" for suffix in (".md", ".tex", ".json")]
    if name == "figures":
        written += draw(reproducing.lsdc_results(data, scale, out_, samples), out_)
    _say_end(written, state)


def _say_plan(variants: list[str], state: "State") -> None:
    """The columns to run, shown first: all methods can take hours, LSD-C and K-means take minutes."""
    from lsdc.experiments.paper import VARIANTS

    if state.done < state.total:
        titles = ", ".join(VARIANTS[variant].title for variant in dict.fromkeys(variants))
        left = f"{state.total - state.done} of {state.total} cells to run"
        line(err, f"{left}: {titles} (--methods all runs every method of the table)")


MethodsOption = Annotated[
    str, typer.Option("--methods", help="methods, separated by commas (lsdc list methods); K-means always runs")
]
ClustersOption = Annotated[
    int | None, typer.Option("--clusters", "-k", min=1, help="number of clusters (default: the data set's classes)")
]
OutOption = Annotated[
    Path | None,
    typer.Option("--out", "-o", help="the folder for results; finished ones are not run again (default: compare/NAME)"),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help="change a setting, e.g. lsdc.epochs=20 (lsdc list settings --method ...)",
        metavar="METHOD.KEY=VALUE",
    ),
]


@reads_data
def compare(
    context: typer.Context,
    data: DataArgument,
    methods: MethodsOption = "all",
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="how many seeds to run, from 0 up")] = 1,
    clusters: ClustersOption = None,
    out_: OutOption = None,
    set_: SetOption = None,
    jobs: JobsOption = None,
    device: DeviceOption = None,
    data_root: RootOption = None,
    *,
    options: ReadingOptions,
) -> None:
    """Run several methods on DATA and compare them in one table; finished results are not run again.

    Results are OUT/cells/*.json, the table OUT/compare.md, .tex and .json, the plot OUT/compare.svg.
    """
    with importing():
        from lsdc.cli.parameters import changes_of, methods_of
        from lsdc.data.reading import Reading
        from lsdc.experiments import compare as comparing
        from lsdc.experiments.engine import Place
        from lsdc.experiments.job import Source
        from lsdc.experiments.table import BASE, below
        from lsdc.experiments.time_plot import against_time

    place = Place(root_of(data_root), out_ or Path("compare") / Path(data).resolve().stem, device or "auto", jobs)
    asked = methods_of(methods)
    changes = changes_of(set_ or [], [*asked, BASE])
    try:
        source = Source(data, reading(Reading(), **options))
        with ReadingBar(err) as bar:
            dataset = source.open(place.root, bar)
        n_clusters = clusters or dataset.n_clusters
        if n_clusters is None:
            raise InputError(f"--clusters is missing: {data} has no known number of classes")
        wanted = comparing.plan(source, dataset, asked, seeds, n_clusters, changes)
        with _board() as board:
            watch = _watch(board, lambda _: say_reading(dataset, context))  # before hours of work on a wrong column
            rows, state = comparing.compare(wanted, place, watch)
    except InputError as error:
        raise about_data(error, data) from None
    _show(wanted.title, [name for name in wanted.columns if name not in ("CPU s", "note")], rows)
    for note in below(rows):  # below the table, as notes do not fit into 80 characters
        line(out, note)
    written = [place.out / f"compare{suffix}" for suffix in (".md", ".tex", ".json")]
    try:
        written.append(against_time(rows, wanted.title, place.out / "compare.svg"))
    except InputError as error:
        line(err, f"no plot: {error.text}")
    _say_end(written, state)


def _show(title: str, columns: Sequence[str], rows: Sequence["Row"]) -> None:
    """Print the table, as wide as the terminal."""
    from lsdc.experiments.table import cells
    from lsdc.report.terminal import rows_table

    left = [i for i, name in enumerate(columns) if name in ("data", "method")]
    out.print(rows_table(title, columns, cells(rows, columns), left))


@contextmanager
def _board() -> Iterator["Board"]:
    """The live view of running jobs; on Ctrl-C it says what is saved."""
    from lsdc.report.terminal import Board

    with Board(err) as board:
        try:
            yield board
        except KeyboardInterrupt as error:
            board.bars.stop()
            line(err, "stopped; finished epochs are saved. Run the same command again to continue")
            raise typer.Exit(143 if type(error) is not KeyboardInterrupt else 130) from None


def _watch(board: "Board", begin: Callable[["State"], None]) -> Callable[["State"], None]:
    """A callback that shows the state of the jobs; ``begin`` says what comes first, once nothing can be refused."""
    opening = [begin]

    def watch(state: "State") -> None:
        if opening:
            opening.pop()(state)
        board.update(state.done, state.total, {r.job.name: r.progress for r in state.running})
        if state.finished:
            board.say(state.finished.name, state.ended(state.finished))

    return watch


def _say_end(written: list[Path], state: "State") -> None:
    """Say what was left out, which files were written, and which fits failed."""
    for group, why in state.left_out.items():
        line(err, f"left out: {group}: {why}")
    for file in written:
        line(out, f"written: {file}")
    if state.failed:
        first, message = next(iter(state.failed.items()))
        fail(f"{len(state.failed)} of {state.total} fits failed; {first}: {message}", 1)
