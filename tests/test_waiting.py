"""Threads that wait do not burn a core: what OpenMP was told, in processes of their own."""

import os
import subprocess
import sys

import pytest

AFTER_THE_COMMAND = """
import contextlib, io, sys
from lsdc.__main__ import main
sys.argv = ["lsdc", "--help"]
with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
    main()
import torch
torch.rand(9).sum()
"""


def told(**variables):
    """What OpenMP says of its settings when PyTorch is loaded after the command line began."""
    kept = {k: v for k, v in os.environ.items() if k not in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")}
    env = {**kept, "OMP_DISPLAY_ENV": "verbose", **variables}
    done = subprocess.run(
        [sys.executable, "-c", AFTER_THE_COMMAND], env=env, capture_output=True, text=True, check=True, timeout=600
    )
    return done.stderr


linux = pytest.mark.skipif(sys.platform != "linux", reason="PyTorch has GNU's OpenMP on Linux only")


@linux
def test_waiting_threads_sleep_soon():
    assert "GOMP_SPINCOUNT = '1000'" in told()


@linux
def test_the_users_own_way_of_waiting_is_kept():
    assert "GOMP_SPINCOUNT = '77'" in told(GOMP_SPINCOUNT="77")
    assert "OMP_WAIT_POLICY = 'ACTIVE'" in told(OMP_WAIT_POLICY="active")
