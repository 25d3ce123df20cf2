"""A fault at a system call of a fit, and two fits into one folder: a part of what ``make chaos`` does at every call."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

FAULTS = Path(__file__).parents[1] / "benchmarks" / "faults.py"


@pytest.mark.slow
@pytest.mark.skipif(not (sys.platform == "linux" and shutil.which("cc")), reason="needs Linux and a C compiler")
def test_faults_and_other_fits_at_any_call_lose_and_harm_nothing(tmp_path):
    """One call in 499: a prime, so that files, steps and kinds of calls are met in turn."""
    command = [sys.executable, FAULTS, "--every", "499", "--out", tmp_path / "faults.json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads((tmp_path / "faults.json").read_text())
    assert result["wrong"] == []
    assert result["tried"] >= 25
    assert len(result["outcomes"]) == 14
