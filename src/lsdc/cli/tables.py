"""The commands that run many fits and write a table: ``lsdc reproduce`` and ``lsdc compare``."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lsdc.cli.console import about_data, err, fail, line, out
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
from lsdc.errors import InputError

if TYPE_CHECKING:
    from lsdc.experiments.engine import Place, State
    from lsdc.report.terminal import Board

NAMES = ("table1", "reuters", "ablation", "ablation-extra")  # those of experiments.tables, which imports PyTorch
JobsOption = Annotated[
    int | None, typer.Option("--jobs", "-j", min=1, help="fits at a time (default: one a GPU, else one a core)")
]


def reproduce(
    name: Annotated[str, typer.Argument(metavar="TABLE", help=f"{', '.join(NAMES)} or figures")],
    datasets: Annotated[
        str | None, typer.Option("--datasets", help="data sets, separated by commas (default: the paper's)")
    ] = None,
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="seeds 0 to N-1 (the paper has ten)")] = 3,
    scale: Annotated[
        str, typer.Option("--scale", help="cpu: smaller networks and schedules; paper: the paper's, for a GPU")
    ] = "cpu",
    out_: Annotated[Path, typer.Option("--out", "-o", help="where results are kept and taken up again")] = Path(
        "reproduce"
    ),
    methods: Annotated[
        str | None,
        typer.Option("--methods", help="columns to run, separated by commas, or all (default: lsdc and kmeans)"),
    ] = None,
    jobs: JobsOption = None,
    samples: Annotated[
        int | None, typer.Option("--samples", min=100, help="a random part of each data set, to spare time")
    ] = None,
    device: DeviceOption = None,
    data_root: RootOption = None,
) -> None:
    """Rerun a TABLE of the paper, or its figures: what is finished is not run again.

    Results are OUT/cells/*.json, the table OUT/TABLE-SCALE.md, .tex and .json.
    """
    with importing():
        from lsdc.experiments.compare import named
        from lsdc.experiments.engine import Place
        from lsdc.experiments.figures import draw, pyplot
        from lsdc.experiments.parameters import words
        from lsdc.experiments.reproduce import grid, look
        from lsdc.experiments.reproduce import reproduce as rerun
        from lsdc.experiments.tables import HEADS, SHORT, check_methods, fields, plain_columns, table
        from lsdc.report.terminal import rows_table

    base = "table1" if name == "figures" else name
    names = list(table(base).datasets) if datasets is None else words(datasets, "--datasets", "datasets")
    chosen = plain_columns(base) if methods is None else [] if methods.strip() == "all" else named(methods)
    check_methods(base, chosen)
    place = Place(root_of(data_root), out_, device or "auto", jobs)
    if name == "figures":
        pyplot()  # said before hours of work if it is not there
    data = look(base, names, scale, place.root, samples)
    cells = grid(base, data, seeds, scale, samples, chosen)
    with _board(place) as board:
        rows, state = rerun(base, cells, data, scale, place, _watch(board, place, _plan([c.variant for c in cells])))
    shown = [[fields(row)[i] for i in SHORT] for row in rows]
    out.print(rows_table(f"{table(base).title}, scale {scale}", [HEADS[i] for i in SHORT], shown))
    written = [out_ / f"{base}-{scale}{suffix}" for suffix in (".md", ".tex", ".json")]
    if name == "figures":
        written += draw(data, scale, out_, samples)
    _say_end(written, state)


def _plan(variants: list[str]) -> str:
    """The columns of a table, said before it runs: all methods can take hours where LSD-C and K-means take minutes."""
    from lsdc.experiments.tables import VARIANTS

    titles = ", ".join(VARIANTS[variant].title for variant in dict.fromkeys(variants))
    return f"{titles} (--methods all: every method of the table)"


def compare(
    data: DataArgument,
    methods: Annotated[
        str, typer.Option("--methods", help="methods separated by commas (lsdc list methods); K-means always runs")
    ] = "all",
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="seeds 0 to N-1")] = 1,
    clusters: Annotated[
        int | None, typer.Option("--clusters", "-k", min=1, help="how many clusters (default: the data set's classes)")
    ] = None,
    out_: Annotated[
        Path | None, typer.Option("--out", "-o", help="where results are kept and taken up again (compare/NAME)")
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="change a setting, e.g. lsdc.epochs=20 (lsdc list settings --method ...)",
            metavar="METHOD.KEY=VALUE",
        ),
    ] = None,
    jobs: JobsOption = None,
    device: DeviceOption = None,
    data_root: RootOption = None,
    image_size: SizeOption = 32,
    column: ColumnOption = None,
    columns: ColumnsOption = None,
    drop: DropOption = None,
    id_column: IdOption = None,
    array: ArrayOption = None,
) -> None:
    """Run methods side by side on DATA: what is finished is not run again.

    Results are OUT/cells/*.json, the table OUT/compare.md, .tex and .json, the plot OUT/compare.svg.
    """
    with importing():
        from lsdc.data.dataset import Reading
        from lsdc.experiments import compare as comparing
        from lsdc.experiments import comparison
        from lsdc.experiments.engine import Place
        from lsdc.experiments.scatter import against_time
        from lsdc.report.terminal import rows_table

    place = Place(root_of(data_root), out_ or Path("compare") / Path(data).resolve().stem, device or "auto", jobs)
    how = reading(Reading(image_size), column=column, columns=columns, drop=drop, id_column=id_column, array=array)
    source = comparing.Source(data, how)
    try:
        wanted = comparing.look(source, place.root, methods, seeds, clusters, set_ or [])
        with _board(place) as board:
            rows, state = comparing.compare(wanted, place, _watch(board, place))
    except InputError as error:
        raise about_data(error, data) from None
    for said in wanted.said:
        line(err, said)
    n = comparison.heads(wanted.labelled).index("MB") + 1  # notes stand below: with them 80 characters are too few
    shown = [comparison.fields(row, wanted.labelled)[:n] for row in rows]
    out.print(rows_table(wanted.title, comparison.heads(wanted.labelled)[:n], shown, left=(0,)))
    for note in comparison.below(rows):
        line(out, note)
    written = [place.out / f"compare{suffix}" for suffix in (".md", ".tex", ".json")]
    try:
        written.append(against_time(rows, wanted.title, place.out / "compare.svg"))
    except InputError as error:
        line(err, f"no plot: {error}")
    _say_end(written, state)


@contextmanager
def _board(place: "Place") -> Iterator["Board"]:
    """The live view of what runs; Ctrl-C ends it with a word on what is kept."""
    from lsdc.report.terminal import Board

    with Board(err) as board:
        try:
            yield board
        except KeyboardInterrupt as error:
            board.bars.stop()
            line(err, "stopped; what is finished is kept, to the epoch. Go on with the same command")
            raise typer.Exit(143 if type(error) is not KeyboardInterrupt else 130) from None


def _watch(board: "Board", place: "Place", plan: str = "") -> Callable[["State"], None]:
    """What shows the state of the jobs; first of all how many there are."""
    opening = [plan] if plan else []

    def watch(state: "State") -> None:
        if opening and state.done < state.total:
            line(err, f"{state.total - state.done} of {state.total} cells to run: {opening.pop()}")
        board.update(state.done, state.total, {r.job.name: r.progress(place.out) for r in state.running})
        if state.finished:
            board.say(state.finished.name, state.ended(state.finished))

    return watch


def _say_end(written: list[Path], state: "State") -> None:
    """What was left out, the files, and which fits failed."""
    for group, why in state.left_out.items():
        line(err, f"left out: {group}: {why}")
    for file in written:
        line(out, f"written: {file}")
    if state.failed:
        first, message = next(iter(state.failed.items()))
        fail(f"{len(state.failed)} of {state.total} fits failed; {first}: {message}", 1)
