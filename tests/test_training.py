"""The epoch loop, its randomness, its plans and its checkpoints."""

import json
import math
import signal
from itertools import chain

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from lsdc.data.sampler import batches
from lsdc.errors import Diverged, HealthWarning, InputError
from lsdc.runs.atomic import write_atomic
from lsdc.runs.checkpoint import Checkpoint, optimizer_tensors
from lsdc.runs.folder import Run
from lsdc.runs.tensors import read_tensors, write_tensors
from lsdc.training import device as devices
from lsdc.training import loop
from lsdc.training.context import Context
from lsdc.training.loop import train
from lsdc.training.plan import Plan
from lsdc.training.rng import derive, generator

CPU = torch.device("cpu")


class Numbers:
    """Data whose every sample is its own number."""

    def __init__(self, n):
        self.X = torch.arange(n, dtype=torch.float32)[:, None] / n

    def __len__(self):
        return len(self.X)

    def batch(self, indices):
        return self.X[indices]


class Line:
    """Learn y = 3x + noise: an objective with randomness of its own."""

    name = "line"

    def __init__(self):
        torch.manual_seed(0)
        self.module = nn.Linear(1, 1)
        self.seen = []

    def losses(self, batch):
        self.seen.append(batch.indices.tolist())
        target = 3 * batch.x + 0.1 * torch.randn(batch.x.shape, generator=batch.rng)
        return {"loss": (self.module(batch.x) - target).square().mean(), "shares": torch.tensor([0.25, 0.75])}

    def summary(self, record, history):
        return {"twice": 2 * record["loss"]}


def plan(**changes):
    return Plan(**({"epochs": 4, "batch_size": 8, "lr": 0.1} | changes))


@given(n=st.integers(1, 200), size=st.integers(1, 50), seed=st.integers(0, 1000))
def test_batches_are_equal_and_disjoint(n, size, seed):
    parts = batches(n, size, generator(seed))
    assert {len(part) for part in parts} == {min(n, size)}
    together = torch.cat(parts).tolist()
    assert len(set(together)) == len(together) == n - n % min(n, size)
    assert set(together) <= set(range(n))


def test_seeds_are_independent_of_each_other():
    places = [("a", 0, 1), ("a", 1, 0), ("a", 10), ("b", 0, 1), ("a", "0/1")]
    seeds = {derive(0, *place) for place in places} | {derive(1, *place) for place in places}
    assert len(seeds) >= 8  # ("a", 0, 1) and ("a", "0/1") are the same place
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_the_loop_learns_and_records():
    objective = Line()
    history = train(objective, Numbers(40), plan(epochs=30), Context(0, CPU))
    assert objective.module.weight.item() == pytest.approx(3, abs=0.3)
    assert [record["epoch"] for record in history] == list(range(1, 31))
    assert history[-1]["loss"] < history[0]["loss"]
    assert history[0]["twice"] == 2 * history[0]["loss"]
    assert history[0]["shares"] == [0.25, 0.75]
    json.dumps(history)


def test_every_epoch_sees_every_sample_once_in_another_order():
    objective = Line()
    train(objective, Numbers(40), plan(epochs=2), Context(0, CPU))
    epochs = [list(chain(*objective.seen[:5])), list(chain(*objective.seen[5:]))]
    assert sorted(epochs[0]) == sorted(epochs[1]) == list(range(40))
    assert epochs[0] != epochs[1]


@pytest.mark.parametrize("n_workers", [1, 3])
def test_workers_change_nothing(n_workers):
    alone, helped = Line(), Line()
    first = train(alone, Numbers(100), plan(), Context(0, CPU))
    second = train(helped, Numbers(100), plan(), Context(0, CPU, n_workers))
    assert [r["loss"] for r in first] == [r["loss"] for r in second]
    assert torch.equal(alone.module.weight, helped.module.weight)
    assert alone.seen == helped.seen


def test_another_seed_is_another_run():
    losses = {train(Line(), Numbers(40), plan(), Context(seed, CPU))[-1]["loss"] for seed in range(3)}
    assert len(losses) == 3


def started(path):
    run = Run.create(path)
    run.start({"method": "line"}, {"n_clusters": 1}, {})
    return run


class Stop(Exception):
    pass


@pytest.mark.parametrize("optimizer", ["sgd", "adam", "adamw"])
def test_resuming_is_bit_exact(tmp_path, optimizer):
    """Stopped in the middle of epoch 3 and resumed: the same weights and records as never stopped."""
    whole = Line()
    history = train(whole, Numbers(40), plan(optimizer=optimizer), Context(5, CPU))

    def stop(progress):
        if progress.epoch == 3 and progress.step == 2:
            raise Stop

    run = started(tmp_path / "run")
    with pytest.raises(Stop):
        train(Line(), Numbers(40), plan(optimizer=optimizer), Context(5, CPU, keeper=run, monitor=stop))
    resumed = Line()
    with torch.no_grad():
        resumed.module.weight.fill_(77)  # must come from the checkpoint
    again = train(resumed, Numbers(40), plan(optimizer=optimizer), Context(5, CPU, keeper=run))
    assert torch.equal(resumed.module.weight, whole.module.weight)
    assert [r["loss"] for r in again] == [r["loss"] for r in history]
    lines = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["epoch"] for line in lines] == [1, 2, 3, 4]


def test_a_finished_stage_is_not_run_again(tmp_path):
    run = started(tmp_path / "run")
    train(Line(), Numbers(40), plan(), Context(0, CPU, keeper=run))
    again = Line()
    assert len(train(again, Numbers(40), plan(), Context(0, CPU, keeper=run))) == 4
    assert again.seen == []


class Counting(Run):
    """A run that counts its checkpoints."""

    kept = 0

    def keep(self, stage, checkpoint):
        super().keep(stage, checkpoint)
        self.kept += 1


@pytest.fixture
def short(tmp_path, monkeypatch):
    """A run whose epochs all end a moment after the last checkpoint."""
    monkeypatch.setattr(loop, "MIN_SAVE_INTERVAL", 1e9)
    run = Counting(tmp_path / "run", interval=1e9)
    run.start({"method": "line"}, {"n_clusters": 1}, {})
    return run


def test_short_epochs_share_a_checkpoint(short):
    history = train(Line(), Numbers(40), plan(epochs=30), Context(0, CPU, keeper=short))
    assert short.kept == 2  # the first epoch and the last
    assert [r["epoch"] for r in short.read_metrics()] == list(range(1, 31))
    assert train(Line(), Numbers(40), plan(epochs=30), Context(0, CPU, keeper=short)) == history


def test_an_interrupt_stores_the_end_of_the_last_epoch_too(short):
    """A retry of the resumed run goes back to it."""

    def interrupt(progress):
        if progress.epoch == 3 and progress.step == 2:
            signal.raise_signal(signal.SIGINT)

    whole = Line()
    train(whole, Numbers(40), plan(), Context(0, CPU))
    with pytest.raises(KeyboardInterrupt):
        train(Line(), Numbers(40), plan(), Context(0, CPU, keeper=short, monitor=interrupt))
    newest, sound = short.restore("line")
    assert [(len(c.history), c.step) for c in (newest, sound)] == [(2, 2), (2, 0)]
    resumed = Line()
    train(resumed, Numbers(40), plan(), Context(0, CPU, keeper=short))
    assert torch.equal(resumed.module.weight, whole.module.weight)


def test_a_stage_that_is_done_early_is_stored_as_it_was_before_it_was_asked(short):
    objective = Line()

    def done_after_two(history):
        with torch.no_grad():
            objective.module.weight += len(history)
        return len(history) == 2

    train(objective, Numbers(40), plan(), Context(0, CPU, keeper=short), done_after_two)
    kept, _ = short.restore("line")
    assert len(kept.history) == 2
    assert torch.equal(kept.weights["weight"] + 2, objective.module.weight)


def test_divergence_is_said():
    data = Numbers(40)
    data.X[7] = math.inf
    words = r"line: the loss became (nan|inf) in epoch 1, step \d, and 3 retries with smaller steps did not help; try a"
    with pytest.warns(HealthWarning) as caught, pytest.raises(Diverged, match=words):
        train(Line(), data, plan(), Context(0, CPU))
    assert [str(w.message).partition("; ")[2] for w in caught] == [
        f"continuing from the beginning with {rate} of the learning rate (retry {i} of 3)"
        for i, rate in ((1, 0.3), (2, 0.09), (3, 0.027))
    ]


def test_learning_rates_by_hand():
    steps = Plan(epochs=10, lr=1.0, schedule="steps", milestones=(4, 8), gamma=0.1)
    assert [steps.lr_at(t) for t in (0, 3.9, 4, 7.9, 8)] == pytest.approx([1, 1, 0.1, 0.1, 0.01])
    cosine = Plan(epochs=10, lr=2.0, schedule="cosine")
    assert [cosine.lr_at(t) for t in (0, 5, 10)] == pytest.approx([2, 1, 0])
    warm = Plan(epochs=10, lr=2.0, schedule="cosine", warmup=2)
    assert warm.lr_at(0) < 0.01
    assert [warm.lr_at(t) for t in (1, 2, 6)] == pytest.approx([1, 2, 1], abs=0.01)
    assert Plan(epochs=10, lr=0.3).lr_at(9.9) == 0.3


def test_frozen_parameters_are_not_optimised():
    module = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    module[0].requires_grad_(False)
    optimizer = plan().build_optimizer(module)
    assert {id(p) for group in optimizer.param_groups for p in group["params"]} == {
        id(p) for p in module[1].parameters()
    }


def test_checkpoints_round_trip(tmp_path):
    module = nn.Linear(3, 2)
    optimizer = torch.optim.Adam(module.parameters())
    module(torch.rand(4, 3)).sum().backward()
    optimizer.step()
    history = [{"epoch": 1, "loss": 0.5}, {"epoch": 2, "loss": 0.75}]
    state = (7, {"loss": torch.rand(3)}, 1.5, ["epoch 3: nan"])
    written = Checkpoint(module.state_dict(), optimizer_tensors(optimizer), history, *state)
    write_atomic(tmp_path / "c.safetensors", written.to_bytes({"stage": "x"}))
    kept, header = Checkpoint.read(tmp_path / "c.safetensors")
    assert header["stage"] == "x"
    assert header["best"] == {"epoch": 1, "loss": 0.5}
    assert (kept.history, kept.step, kept.seconds, kept.retries) == (history, 7, 1.5, ["epoch 3: nan"])
    assert torch.equal(kept.sums["loss"], state[1]["loss"])
    assert torch.equal(Checkpoint.from_bytes(written.to_bytes({}))[0].weights["bias"], module.bias)
    other = nn.Linear(3, 2)
    other_optimizer = torch.optim.Adam(other.parameters())
    kept.load_into(other, other_optimizer)
    for a, b in ((module, other),):
        a(torch.ones(4, 3)).sum().backward()
        b(torch.ones(4, 3)).sum().backward()
    other.weight.grad, other.bias.grad = module.weight.grad.clone(), module.bias.grad.clone()
    optimizer.step()
    other_optimizer.step()
    assert torch.equal(module.weight, other.weight)


@pytest.mark.parametrize("content", [b"", b"hello", b"\x80\x04N.", b"\xff" * 100, b"PK\x03\x04" + b"0" * 50])
def test_foreign_files_are_refused(tmp_path, content):
    path = tmp_path / "model.safetensors"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"model.safetensors: not a file written by lsdc"):
        read_tensors(path)


def test_truncated_files_are_refused(tmp_path):
    path = tmp_path / "model.safetensors"
    write_tensors(path, {"a": torch.rand(100)}, {"x": 1})
    whole = path.read_bytes()
    for length in (4, 20, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(InputError, match="truncated"):
            read_tensors(path)


def test_files_appear_whole_or_not_at_all(tmp_path):
    path = tmp_path / "file"
    write_atomic(path, b"old")
    with pytest.raises(TypeError):
        write_atomic(path, "not bytes")
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]  # nothing temporary is left


def test_checkpoints_of_other_settings_are_refused(tmp_path):
    run = started(tmp_path / "run")
    run.bind({"lr": 1})
    train(Line(), Numbers(40), plan(epochs=1), Context(0, CPU, keeper=run))
    run.bind({"lr": 2})
    with pytest.raises(InputError, match="other settings or data"):
        train(Line(), Numbers(40), plan(epochs=1), Context(0, CPU, keeper=run))


def test_devices():
    assert devices.choose("cpu") == CPU
    assert devices.choose("auto").type in ("cpu", "cuda")
    with pytest.raises(InputError, match="device must be"):
        devices.choose("quantum")
    if not torch.cuda.is_available():
        with pytest.raises(InputError, match="no GPU"):
            devices.choose("cuda")


def test_images_run_channels_last():
    module = devices.place(nn.Conv2d(3, 4, 3), CPU)
    assert module.weight.is_contiguous(memory_format=torch.channels_last)
    assert devices.move(torch.rand(2, 3, 8, 8), CPU).is_contiguous(memory_format=torch.channels_last)
