"""``torchrun -m lsdc fit``: real jobs of several processes, one of which dies."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from processes import command_together
from test_cli import inside

SETTINGS = ["--set", "neighbours=batch", "--set", "epochs=3", "--set", "pretext_plan.epochs=1"]
SETTINGS += ["--set", "width=0.1", "--set", "batch_size=64", "--save-every", "0", "-k", "3"]
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "200"}
DYING = Path(__file__).with_name("dying_lsdc.py")
pytestmark = pytest.mark.slow


def torchrun(*words, cwd):
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", *map(str, words)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, env=ENVIRONMENT, check=False)


def fit(folder):
    return ["fit", str(folder.parent / "x.npy"), "--out", str(folder), "--resume", *SETTINGS]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A folder with 301 samples, which is no multiple of anything."""
    folder = tmp_path_factory.mktemp("data")
    centres = np.repeat(5 * np.eye(3, 8), (101, 100, 100), axis=0)
    np.save(folder / "x.npy", (centres + np.random.default_rng(0).normal(size=centres.shape)).astype(np.float32))
    return folder


@pytest.fixture(scope="module")
def whole(data):
    """A job of two processes that nothing happened to."""
    result = torchrun("-m", "lsdc", *fit(data / "whole"), cwd=data)
    assert result.returncode == 0, result.stderr
    return data / "whole", result


def left(folder):
    losses = [json.loads(line)["loss"] for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return (folder / "labels.csv").read_text(), losses


def test_the_first_process_speaks_and_writes(whole):
    folder, result = whole
    assert result.stdout.count("run folder:") == 1
    assert "2 processes" in result.stderr
    assert len((folder / "labels.csv").read_text().splitlines()) == 302


def test_predict_shares_the_work(whole):
    folder, _ = whole
    words = ["predict", str(folder), str(folder.parent / "x.npy"), "--out", "new.csv"]
    codes, text = command_together(words, 2, folder.parent)
    assert codes == [0, 0], text
    assert (folder.parent / "new.csv").read_text() == (folder / "labels.csv").read_text()


def test_a_restarted_job_ends_as_if_nothing_had_been(whole, data):
    folder = data / "restarted"
    result = torchrun("--max-restarts", 1, DYING, *fit(folder), cwd=data)
    assert result.returncode == 0, result.stderr
    assert left(folder) == left(whole[0])


def test_a_dead_process_ends_the_job_and_another_number_goes_on(data):
    folder = data / "dead"
    result = torchrun(DYING, *fit(folder), cwd=data)
    assert result.returncode != 0
    assert "lsdc: another process of this job has ended or cannot be reached" in result.stderr
    assert f"lsdc fit {data / 'x.npy'} --out" in result.stderr
    kept = records(folder)
    result = inside(*fit(folder), cwd=data)
    assert result.returncode == 0, result.stderr
    assert records(folder)[: len(kept)] == kept
    stages = [(record["stage"], record["epoch"]) for record in records(folder)]
    assert stages == [("clustering", i) for i in (1, 2, 3)]
    assert len((folder / "labels.csv").read_text().splitlines()) == 302


def records(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def test_mistakes_are_said_once_by_the_first_process(data, tmp_path):
    words = ["fit", str(data / "x.npy"), "-k", "3", "--out", str(tmp_path / "run"), "--set", "batch_size=1"]
    codes, text = command_together(words, 2, tmp_path)
    assert 0 not in codes
    assert text.count("lsdc: batch_size") == 1
