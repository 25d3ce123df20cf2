"""``python -m lsdc`` is ``lsdc``."""

import os

from lsdc.cli.importing import importing

WAITING = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")  # the user's environment has the say


def main() -> None:
    """The command line."""
    wait_briefly()
    with importing():
        from lsdc.cli.main import main as run
    run()


def wait_briefly() -> None:
    """Let threads that wait for each other sleep after some microseconds; asked for before PyTorch is loaded.

    GNU's OpenMP has them turn round for milliseconds instead. Where other programs want the cores, a thread then burns
    the time that the other one needs to get on: steps took up to ten times as long (docs/performance.md).
    """
    if not any(name in os.environ for name in WAITING):
        os.environ["GOMP_SPINCOUNT"] = "1000"


if __name__ == "__main__":
    main()
