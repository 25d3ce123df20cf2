"""``torchrun -m lsdc fit``: real jobs of several processes, one of which dies."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

SETTINGS = ["--set", "neighbours=batch", "--set", "epochs=3", "--set", "pretext_plan.epochs=1"]
SETTINGS += ["--set", "width=0.1", "--save-every", "0"]
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "200"}
pytestmark = pytest.mark.slow


def torchrun(n, *words):
    return [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(n), *map(str, words)]


def fit(folder):
    return ["-m", "lsdc", "fit", "digits", "--out", str(folder), "--resume", *SETTINGS]


def done(command, cwd):
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, env=ENVIRONMENT, timeout=240)


def process_of(folder, rank):
    """The process id of a rank of the job that writes to a folder."""
    for place in Path("/proc").glob("[0-9]*"):
        try:
            command, environ = (place / "cmdline").read_bytes(), (place / "environ").read_bytes()
        except OSError:
            continue
        if str(folder).encode() in command and f"\0RANK={rank}\0".encode() in environ:
            return int(place.name)
    return None


def killed(command, folder, rank):
    """Run a job, kill one of its processes in the middle of the clustering, and wait for the end."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=ENVIRONMENT)
    for _ in range(2400):
        if (folder / "checkpoint" / "clustering.safetensors").exists() or process.poll() is not None:
            break
        time.sleep(0.05)
    os.kill(process_of(folder, rank), signal.SIGKILL)
    text, _ = process.communicate(timeout=240)
    return process.returncode, text


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A job of two processes that nothing happened to."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    result = done(torchrun(2, *fit(folder)), folder.parent)
    assert result.returncode == 0, result.stderr
    return folder, result


def left(folder):
    losses = [json.loads(line)["loss"] for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return (folder / "labels.csv").read_text(), losses


def test_the_first_process_speaks_and_writes(whole):
    folder, result = whole
    assert result.stdout.count("run folder:") == 1
    assert "2 processes" in result.stderr
    assert len((folder / "labels.csv").read_text().splitlines()) == 1798


def test_predict_shares_the_work(whole):
    folder, _ = whole
    result = done(torchrun(2, "-m", "lsdc", "predict", folder, "digits", "--out", "new.csv"), folder.parent)
    assert result.returncode == 0, result.stderr
    assert (folder.parent / "new.csv").read_text() == (folder / "labels.csv").read_text()


def test_a_restarted_job_ends_as_if_nothing_had_been(whole, tmp_path):
    folder = tmp_path / "run"
    code, text = killed(torchrun(2, "--max-restarts", 1, *fit(folder)), folder, rank=1)
    assert code == 0, text
    assert left(folder) == left(whole[0])


def test_a_dead_process_ends_the_job_and_another_number_goes_on(tmp_path):
    folder = tmp_path / "run"
    code, text = killed(torchrun(2, *fit(folder)), folder, rank=1)
    assert code != 0
    assert "lsdc: another process of this job has ended or cannot be reached" in text
    assert "lsdc fit digits --out" in text
    kept = left_off(folder)
    result = done([sys.executable, *fit(folder)], tmp_path)
    assert result.returncode == 0, result.stderr
    records = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert records[: len(kept)] == kept
    assert [(r["stage"], r["epoch"]) for r in records] == [("pretext", 1), *(("clustering", i) for i in (1, 2, 3))]
    assert len((folder / "labels.csv").read_text().splitlines()) == 1798


def left_off(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def test_mistakes_are_said_once_by_the_first_process(tmp_path):
    result = done(torchrun(2, "-m", "lsdc", "fit", "digits", "--out", tmp_path, "--set", "batch_size=1"), tmp_path)
    assert result.returncode != 0
    assert result.stderr.count("lsdc: batch_size") == 1
