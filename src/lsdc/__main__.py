"""``python -m lsdc`` is ``lsdc``."""

import os

from lsdc.cli.importing import importing

WAITING = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")  # if the user has set one of these, it is left alone


def main() -> None:
    """The command line."""
    wait_briefly()
    with importing():
        from lsdc.cli.main import main as run
    run()


def wait_briefly() -> None:
    """Let threads that wait for each other sleep after some microseconds; asked for before PyTorch is loaded.

    GNU's OpenMP makes them spin for milliseconds instead. Where other programs want the cores, one thread then spends
    the time that the other one needs: steps took up to ten times as long (docs/performance.md).
    """
    if not any(name in os.environ for name in WAITING):
        os.environ["GOMP_SPINCOUNT"] = "1000"


if __name__ == "__main__":
    main()
