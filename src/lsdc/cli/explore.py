"""Correcting clusters by hand: ``lsdc explore`` opens them on a page, ``lsdc refine`` teaches the model."""

import webbrowser
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from lsdc.cli.console import Terminated, err, line, out, readable_warnings, say_next
from lsdc.cli.importing import importing
from lsdc.cli.options import RootOption, RunArgument
from lsdc.cli.run_data import data_of_run
from lsdc.errors import Busy, InputError

LOOPBACK = "127.0.0.1"


def explore(
    run: RunArgument,
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="the port to listen on; 0 picks a free one")
    ] = 0,
    host: Annotated[
        str,
        typer.Option(
            "--host", help="the address to listen on; any other than the default lets others on the network in"
        ),
    ] = LOOPBACK,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="open the page in a browser")] = True,
    data_root: RootOption = None,
) -> None:
    """Open a run in the browser: name, merge and split clusters, move samples, export the labels."""
    with importing():
        try:
            from lsdc.explore.serve import serve
        except ImportError as error:
            raise InputError(f"lsdc explore needs {error.name}: pip install 'lsd-clusters[app]'") from None
        from lsdc.explore.journal import NAME
        from lsdc.explore.session import Session
        from lsdc.methods import read_config
        from lsdc.runs.folder import Run

    folder = Run.open(run)
    try:
        with readable_warnings(), folder.alone():
            session = Session(folder, config := read_config(folder), partial(data_of_run, config, data_root))
            try:
                serve(session, host, port, partial(_opened, browser, host))
            except Terminated:
                raise
            except KeyboardInterrupt:
                pass  # Ctrl-C is how the explorer ends
    except Busy:
        raise Busy(f"{run}: in use by another explorer or a fit; close that first") from None
    kept = f"; all {session.now.version:,} changes are in {run / NAME}" if session.now.version else ""
    line(err, f"closed{kept}")


def _opened(browser: bool, host: str, address: str) -> None:
    line(out, f"explorer: {address}")
    line(err, "Press Ctrl-C to stop; every change is saved as you make it")
    if host not in (LOOPBACK, "localhost", "::1"):
        line(err, "anyone on the network who has this address can see the data and change the labels")
    if browser:
        webbrowser.open(address)


def refine(
    run: RunArgument,
    out_: Annotated[Path | None, typer.Option("--out", "-o", help="the new run folder (default: RUN/refined)")] = None,
    epochs: Annotated[int, typer.Option("--epochs", min=1, max=1000, help="how long to train")] = 4,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="replace an existing refined run")] = False,
    data_root: RootOption = None,
) -> None:
    """Teach a run's model the corrections made in the explorer, and label all samples again, in a new run."""
    with importing():
        from lsdc.explore.corrected import refine_run
        from lsdc.methods import read_config
        from lsdc.report.terminal import Live, sizes_table
        from lsdc.report.write import write_report
        from lsdc.runs.folder import Run, is_run

    folder = Run.open(run)
    config = read_config(folder)
    place = out_ or run / "refined"
    if is_run(place) and not overwrite:
        raise InputError(f"{place}: a run already exists here; use --overwrite or another --out")
    new = Run.create(place, overwrite)
    dataset = data_of_run(config, data_root)
    with Live(err, f"{run}: learning from the corrections, run folder {new.path}") as monitor, readable_warnings():
        result = refine_run(folder, new, config, dataset, epochs, monitor)
    with new.again():
        _, labels, confidence = new.read_labels()
        out.print(sizes_table(labels, confidence, result.n_clusters))
        write_report(new, read_config(new), dataset)
    if result.corrected:
        line(out, f"{result.followed:,} of {result.corrected:,} samples moved by hand stay where you put them")
    line(out, f"{result.others:,} untouched samples changed cluster")
    say_next(new.path, "explore", new.path)
