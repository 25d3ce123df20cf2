"""What nights bring: killed processes, half-written files, full disks, damaged checkpoints, diverging losses."""

import json
import random
import resource
import shutil
import signal
import subprocess
import sys
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
import torch

import victims
from lsdc import LSDC
from lsdc.errors import Diverged, HealthWarning, InputError
from lsdc.runs.checkpoint import Checkpoint
from lsdc.runs.folder import Run
from lsdc.training.context import Context
from lsdc.training.health import examine
from lsdc.training.loop import train
from lsdc.training.plan import Plan
from victims import attempt, left

KILLED = -signal.SIGKILL
POINTS = ("step", "half a file", "before a rename", "after a rename")


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run that was never interrupted."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    assert attempt(folder, interval=1e9) == 0
    return folder


def test_twenty_kills_change_nothing(tmp_path, whole):
    """Killed at 20 random points, five of each kind, some of them in the middle of writing a checkpoint."""
    rng = random.Random(0)
    points = [point for point in POINTS for _ in range(5)]
    rng.shuffle(points)
    folder = tmp_path / "run"
    for point in points:
        assert attempt(folder, point, rng.randint(2, 6), interval=0.0) == KILLED
    assert attempt(folder) == 0
    assert left(folder) == left(whole)
    assert not list(folder.rglob("*.tmp"))  # what killed processes left is cleared away


def test_a_kill_before_the_run_is_described_is_a_start(tmp_path, whole):
    folder = tmp_path / "run"
    assert attempt(folder, "half a file", 1) == KILLED
    assert not (folder / "config.json").exists()
    assert attempt(folder) == 0
    assert left(folder) == left(whole)


def test_a_full_disk_loses_nothing(tmp_path, whole):
    """Checkpoints that no longer fit are said and left out; with room again the run ends as if nothing had been."""
    folder = tmp_path / "run"
    assert attempt(folder, "step", 4) == KILLED
    before = (folder / "checkpoint" / "pretext.safetensors").read_bytes()
    assert attempt(folder, limit=20_000) == 2
    assert (folder / "checkpoint" / "pretext.safetensors").read_bytes() == before
    assert not (folder / "model.safetensors").exists()  # labels may have found room
    assert attempt(folder) == 0
    assert left(folder) == left(whole)


def stopped(folder, stage="clustering", epoch=2, step=3):
    """A run that stopped within an epoch, with checkpoints after every step."""

    def stop(progress):
        if (progress.stage, progress.epoch, progress.step) == (stage, epoch, step):
            raise RuntimeError("stop")

    run = Run.resume(folder)
    run.interval = 0.0
    with pytest.raises(RuntimeError, match="stop"):
        fitted(run, monitor=stop)


def fitted(run, **options):
    X = victims.datasets.load("digits").X[:400]
    return LSDC(4, **victims.SMALL).fit(X, resume=run, **options)


def test_two_checkpoints_are_kept_the_newest_and_the_last_end_of_an_epoch(tmp_path):
    stopped(tmp_path / "run")
    names = sorted(path.name for path in (tmp_path / "run" / "checkpoint").iterdir())
    assert names == [f"{stage}{kind}.safetensors" for stage in ("clustering", "pretext") for kind in (".previous", "")]
    newest = Checkpoint.read(tmp_path / "run" / "checkpoint" / "clustering.safetensors")[0]
    previous = Checkpoint.read(tmp_path / "run" / "checkpoint" / "clustering.previous.safetensors")[0]
    assert (len(newest.history), newest.step) == (1, 2)
    assert (len(previous.history), previous.step) == (1, 0)


def _cut(file):
    file.write_bytes(file.read_bytes()[:-7])


def _of_another_version(file):
    content = file.read_bytes()
    file.write_bytes(content.replace(b'\\"format\\": 2', b'\\"format\\": 7'))
    assert file.read_bytes() != content


NEWEST, BEFORE = "clustering.safetensors", "using the one before it, epoch 1"


@pytest.mark.parametrize(
    ("damage", "files", "said"),
    [
        (lambda file: file.write_bytes(b""), NEWEST, rf"{NEWEST}: .*; {BEFORE}"),
        (lambda file: file.write_bytes(b"damaged"), NEWEST, rf"{NEWEST}: .*; {BEFORE}"),
        (_cut, NEWEST, rf"{NEWEST}: .*; {BEFORE}"),
        (_of_another_version, NEWEST, rf"written by another version of lsdc \(format 7, not 2\); {BEFORE}"),
        (lambda file: file.write_bytes(b"damaged"), "clustering*", rf"{NEWEST}: .*; starting the stage again"),
    ],
    ids=["empty", "damaged", "cut", "another version", "all damaged"],
)
def test_a_checkpoint_that_cannot_be_read_is_said_and_the_run_ends_the_same(tmp_path, whole, damage, files, said):
    folder = tmp_path / "run"
    stopped(folder)
    for file in (folder / "checkpoint").glob(files):
        damage(file)
    with pytest.warns(HealthWarning, match=said):
        fitted(folder)
    assert left(folder) == left(whole)


def test_a_checkpoint_of_another_run_is_refused(tmp_path):
    for name in ("a", "b"):
        stopped(tmp_path / name)
    config = json.loads((tmp_path / "b" / "config.json").read_text())
    (tmp_path / "b" / "config.json").write_text(json.dumps({**config, "fingerprint": "0" * 16}))
    with pytest.raises(
        InputError, match=r"b: started with other settings or data; overwrite it to start over \(overwrite=...\)"
    ):
        fitted(tmp_path / "b")
    source, target = (tmp_path / name / "checkpoint" / "clustering.safetensors" for name in ("a", "b"))
    content = source.read_bytes()
    a = json.loads((tmp_path / "a" / "config.json").read_text())["fingerprint"]
    target.write_bytes(content.replace(a.encode(), b"0" * 16))
    (tmp_path / "b" / "config.json").write_text(json.dumps(config))
    with pytest.raises(InputError, match=r"clustering.safetensors: belongs to a run with other settings or data"):
        fitted(tmp_path / "b")
    assert target.exists()


def test_a_run_that_is_at_work_is_left_alone(tmp_path):
    folder = tmp_path / "run"

    def second(progress):
        fitted(folder)

    with pytest.raises(InputError, match="another process is using this run; wait until it has finished"):
        fitted(folder, monitor=second)
    shutil.rmtree(folder)


class Cliff:
    """A quadratic whose loss is no number once the weight has left ``[-1, 1]``: too large steps fall off."""

    name = "cliff"

    def __init__(self):
        self.module = torch.nn.Linear(1, 1, bias=False)
        torch.nn.init.constant_(self.module.weight, 0.5)

    def losses(self, batch):
        w = self.module.weight[0, 0]
        return {"loss": torch.where(w.abs() > 1, torch.nan, w.square()).sum()}

    def summary(self, record, history):
        return {}


class Samples:
    def __len__(self):
        return 8

    def batch(self, indices):
        return torch.zeros(len(indices), 1)


def cliff(lr, keeper=None, monitor=lambda progress: None):
    plan = Plan(epochs=3, batch_size=4, lr=lr, momentum=0, weight_decay=0)
    return train(Cliff(), Samples(), plan, Context(0, torch.device("cpu"), keeper=keeper, monitor=monitor))


def test_a_loss_that_is_no_number_goes_back_and_takes_smaller_steps():
    """w <- w - 2 lr w: from 0.5 a rate of 4 leaves [-1, 1] at once, 4 * 0.3 twice does not."""
    with pytest.warns(HealthWarning) as caught:
        history = cliff(lr=4.0)
    assert [str(w.message) for w in caught] == [
        "cliff: the loss became nan in epoch 1, step 2; continuing from the beginning with 0.3 of the learning rate "
        "(retry 1 of 3)",
        "cliff: the loss became nan in epoch 2, step 2; continuing from epoch 1 with 0.09 of the learning rate "
        "(retry 2 of 3)",
    ]
    assert [record["lr"] for record in history] == pytest.approx([1.2, 0.36, 0.36])
    assert len(history[-1]["retries"]) == 2
    assert history[-1]["loss"] < 0.2


def test_tries_are_bounded():
    with pytest.warns(HealthWarning), pytest.raises(Diverged, match="3 retries with smaller steps did not help"):
        cliff(lr=900.0)


@pytest.mark.parametrize("stop", range(1, 8))
@pytest.mark.filterwarnings("ignore::lsdc.errors.HealthWarning")
def test_a_retry_survives_a_kill(tmp_path, stop):
    """Stopped at any step, before or after the loss diverged, and resumed: the records are those of one go."""
    seen = []

    def monitor(progress):
        seen.append(progress)
        if len(seen) == stop:
            raise RuntimeError("stop")

    run = Run.create(tmp_path / "run")
    run.interval = 0.0
    run.start({"method": "cliff"}, {"n_clusters": 1}, {})
    with pytest.raises(RuntimeError, match="stop"):
        cliff(4.0, run, monitor)
    histories = [cliff(4.0, run), cliff(4.0)]
    for record in chain(*histories):
        record["seconds"] = 0
    assert histories[0] == histories[1]
    assert run.read_metrics()[-1]["retries"] == histories[1][-1]["retries"]


class Sink(Cliff):
    """The same quadratic, whose samples all fall into one cluster while the weight is outside ``[-1, 1]``."""

    def losses(self, batch):
        w = self.module.weight[0, 0]
        return {"loss": w.square(), "shares": torch.where(w.detach().abs() > 1, torch.tensor([1.0, 0]), 0.5)}

    def summary(self, record, history):
        return examine(record, history, epochs=8)


def sink(lr, prepare=None):
    plan = Plan(epochs=8, batch_size=4, lr=lr, momentum=0, weight_decay=0)
    return train(Sink(), Samples(), plan, Context(0, torch.device("cpu")), prepare)


def test_a_collapse_goes_back_to_the_last_sound_epoch():
    """w <- w - 2 lr w grows with a rate of 1.2, so that epochs 3 to 5 have one cluster, and shrinks with 0.36."""
    with pytest.warns(HealthWarning) as caught:
        history = sink(lr=1.2)
    said = [str(w.message) for w in caught]
    assert said[0].startswith("epoch 5: 100% of the samples fall into one cluster")
    assert said[1:] == [
        "cliff: collapsed in epoch 5; continuing from epoch 2 with 0.3 of the learning rate (retry 1 of 3)"
    ]
    assert [record["alive"] for record in history] == [2] * 8
    assert [record["lr"] for record in history] == pytest.approx([1.2] * 2 + [0.36] * 6)
    assert history[-1]["retries"] == ["collapsed in epoch 5"]


def all_in_one(history):
    """A rule that stops when no label changes: those of a single cluster never do."""
    return bool(history) and history[-1]["alive"] == 1


def test_a_collapse_that_passes_for_the_end_goes_back_too():
    with pytest.warns(HealthWarning, match="cliff: done, but collapsed in epoch 3; continuing from epoch 2 with 0.3"):
        history = sink(1.2, all_in_one)
    assert [record["alive"] for record in history] == [2] * 8
    assert history[-1]["retries"] == ["done, but collapsed in epoch 3"]
    with pytest.warns(HealthWarning) as caught:
        history = sink(40.0, all_in_one)
    assert history[-1]["alive"] == 1
    assert sum("(retry" in str(w.message) for w in caught) == 3


def test_a_collapse_that_smaller_steps_do_not_mend_is_kept_and_said():
    with pytest.warns(HealthWarning) as caught:
        history = sink(lr=40.0)
    assert len(history) == 8
    assert history[-1]["alive"] == 1
    assert sum("(retry" in str(w.message) for w in caught) == 3


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_does_not_wait_for_the_step(tmp_path, number):
    """Two signals within one step, in a real process: it ends at once, and nothing half-written is left."""
    words = ("fit", "blobs", "--out", "run", "--set", "pretext=none", "--set", "width=0.05")
    code, out, said = victims.surrounded(tmp_path, victims.Signals(number, times=2), *words)
    assert code == 128 + number, said
    assert out == "signal\nsignal\n"  # and no step after the second
    assert "everything up to epoch 1 is saved. Resume with:" in said.splitlines()[-1]
    assert not list((tmp_path / "run").rglob("*.tmp"))


def test_a_signal_in_the_last_moment_is_not_lost(tmp_path):
    """Ctrl-C while the last epoch is told of: it still stops, and everything is kept."""

    def monitor(progress):
        if progress.record is not None and progress.epoch == progress.epochs:
            signal.raise_signal(signal.SIGINT)

    run = Run.create(tmp_path / "run")
    run.start({"method": "cliff"}, {"n_clusters": 1}, {})
    with pytest.raises(KeyboardInterrupt):
        cliff(0.1, run, monitor)
    kept = run.read_metrics()
    assert [record["epoch"] for record in kept] == [1, 2, 3]
    assert cliff(0.1, run) == kept  # nothing is trained again


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_full_disk_that_takes_no_warnings_either_does_not_end_the_training(tmp_path):
    """Standard error goes to a full device, checkpoints do not fit, and the model still does."""
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(300, 20)))
    command = [sys.executable, "-m", "lsdc", "fit", "x.npy", "-k3", "--method", "dec", "--out", "run"]
    quick = ["--set=epochs=1", "--set=pretext_plan.epochs=1", "--set=width=0.3"]

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_010_000, 1_010_000))

    with open("/dev/full", "w") as full:
        options = {"cwd": tmp_path, "stdout": subprocess.PIPE, "stderr": full, "text": True, "preexec_fn": limit}
        done = subprocess.run([*command, *quick], **options, check=False)
    assert done.returncode == 0
    assert "run folder: run" in done.stdout
    assert not (tmp_path / "run" / "checkpoint" / "clustering.safetensors").exists()
