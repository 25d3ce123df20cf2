"""The command line: every command by its name, and what an error of each kind becomes."""

import io
import os
import re
import signal
import sys
from typing import Annotated, Any

import typer

# PyTorch and scikit-learn take seconds to import: what needs them is imported by the commands, not for their --help
import lsdc
from lsdc.cli import tables
from lsdc.cli.console import Terminated, close_streams, err, fail, is_shared, out, say_failure
from lsdc.cli.explore import explore, refine
from lsdc.cli.export import export
from lsdc.cli.fit import fit
from lsdc.cli.flags import Command, Group
from lsdc.cli.importing import importing
from lsdc.cli.listing import list_
from lsdc.cli.results import evaluate, predict, report
from lsdc.cli.suggest import suggest_k
from lsdc.errors import Diverged, InputError, PeerLost

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
        raise InputError(
            f"torchrun shares the work of fit and predict only; call lsdc {context.invoked_subcommand} alone"
        )


USAGE: type[Exception] = typer.BadParameter.__mro__[2]  # the ClickException of the click that typer brings


MEMORY = "not enough memory; try a smaller batch_size, width or pool (--set)"


def _terminate(number: int, frame: Any) -> None:
    raise Terminated


def main(words: list[str] | None = None) -> None:
    """Run, whatever can be printed: characters that the terminal lacks are spelt out."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        _run(words)
    finally:
        close_streams()


def _run(words: list[str] | None) -> None:
    """Run, and turn the user's mistakes into one line and exit code 2."""
    signal.signal(signal.SIGTERM, _terminate)
    try:
        if is_shared():
            _join()
        code = app(words, standalone_mode=False)
        sys.stdout.flush()  # what cannot be written is said here, not at Python's end
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
        fail(MEMORY, 1)
    except RuntimeError as error:
        if not re.search("out of memory|can't allocate memory", str(error)):  # PyTorch's word for it, on GPU and CPU
            raise
        fail(MEMORY, 1)
    except Terminated:
        fail("stopped by SIGTERM", 143)
    except KeyboardInterrupt:
        fail("stopped", 130)
    except BrokenPipeError:  # whoever read it has seen enough
        sys.exit(1)
    except OSError as error:
        fail(f"{error.filename or 'disk'}: {error.strerror or error}", 1)
    else:
        status = code if isinstance(code, int) else 0
        if is_shared():
            lsdc.parallel.leave()
            close_streams()
            os._exit(status)  # threads of the job may still be ending, and an orderly end would abort over them
        sys.exit(status)


def _join() -> None:
    """Become one of the processes of torchrun's job, of which the first alone talks."""
    with importing():
        from lsdc import parallel

    parallel.join()
    if parallel.rank() > 0:
        err.quiet = out.quiet = True


if __name__ == "__main__":
    main()
