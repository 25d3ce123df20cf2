"""The command line: the commands by name, and what each kind of error turns into."""

import io
import os
import re
import signal
import sys
from contextlib import suppress
from typing import Annotated, Any, NoReturn

import typer

# PyTorch and scikit-learn take seconds to import, so commands import what needs them when they run, not for --help
import lsdc
from lsdc.cli import tables
from lsdc.cli.console import Terminated, close_streams, err, fail, is_shared, open_streams, out, say_failure
from lsdc.cli.explore import explore, refine
from lsdc.cli.export import export
from lsdc.cli.fit import fit
from lsdc.cli.flags import Command, Group
from lsdc.cli.importing import importing
from lsdc.cli.listing import list_
from lsdc.cli.results import evaluate, predict, report
from lsdc.cli.suggest import suggest_k
from lsdc.errors import Diverged, InputError, PeerLost
from lsdc.interrupt import TO_END

app = typer.Typer(
    cls=Group,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Group unlabelled images, documents or embeddings into K clusters (LSD-C).",
    epilog="Start with:  lsdc fit digits      Your own:  lsdc fit photos/ --clusters auto",
)
for command in (fit, predict, evaluate, report, explore, refine, export, tables.compare, tables.reproduce):
    app.command(cls=Command)(command)
app.command("suggest-k", cls=Command)(suggest_k)
app.command("list", cls=Command)(list_)


@app.callback(invoke_without_command=True)
def start(
    context: typer.Context, version: Annotated[bool, typer.Option("--version", help="show the version")] = False
) -> None:
    if version:
        print(f"lsdc {lsdc.__version__}")
    elif context.invoked_subcommand is None:
        print(context.get_help())
    elif is_shared() and context.invoked_subcommand not in ("fit", "predict"):
        raise InputError(f"torchrun is for fit and predict only; run lsdc {context.invoked_subcommand} without it")


# the base of all usage errors; typer brings a click of its own, which may not be the one installed
USAGE: type[Exception] = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")
MEMORY = "not enough memory; try a smaller batch_size, width or pool (--set)"


def _terminate(number: int, frame: Any) -> None:
    if not isinstance(sys.exception(), PeerLost):  # then torchrun is ending a job whose end is being reported already
        raise Terminated(number)


def main(words: list[str] | None = None) -> None:
    """Run a command; characters the terminal cannot show are printed as escapes."""
    open_streams()
    try:
        if isinstance(sys.stdout, io.TextIOWrapper):
            with suppress(OSError):  # it asks a file how long it is, and a disk may fail to tell
                sys.stdout.reconfigure(errors="backslashreplace")
        _run(words)
    finally:
        close_streams()


def _run(words: list[str] | None) -> None:
    """Run a command, and turn user mistakes into one line and exit code 2."""
    for number in TO_END:
        if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup wants it
            signal.signal(number, _terminate)
    try:
        if is_shared():
            _join()
        code = app(words, standalone_mode=False)
        sys.stdout.flush()  # so that a failed write is reported here, not at exit
    except InputError as error:
        fail(str(error), 2)
    except USAGE as error:
        fail(error.format_message().replace("\n", " "), 2)  # type: ignore[attr-defined]
    except Diverged as error:
        fail(str(error), 1)
    except PeerLost as error:
        say_failure(str(error))
        sys.stdout.flush()
        os._exit(1)  # a normal exit would wait for processes that are gone
    except MemoryError:
        fail(MEMORY, 1)
    except RuntimeError as error:
        if not re.search("out of memory|can't allocate memory", str(error)):  # PyTorch's wording on GPU and CPU
            raise
        fail(MEMORY, 1)
    except Terminated as error:
        fail(f"stopped by {error.name}", error.code)
    except KeyboardInterrupt:
        fail("stopped", 130)
    except BrokenPipeError:  # the reader has seen enough
        sys.exit(1)
    except OSError as error:
        fail(f"{error.filename or 'disk'}: {error.strerror or error}", 1)
    else:
        _leave(code if isinstance(code, int) else 0)


def _leave(status: int) -> NoReturn:
    """Exit; a process of a job does so at once: its threads may still be ending, which would abort a normal exit."""
    if is_shared():
        lsdc.parallel.leave()
        close_streams()
        os._exit(status)
    sys.exit(status)


def _join() -> None:
    """Join torchrun's job; only its first process prints."""
    with importing():
        from lsdc import parallel

    parallel.join()
    if parallel.rank() > 0:
        err.quiet = out.quiet = True


if __name__ == "__main__":
    main()
