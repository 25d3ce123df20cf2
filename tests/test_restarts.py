"""``n_init``: the clustering of a deep method from several starts that share the pretext, the most confident kept."""

import json

import numpy as np
import pytest
import torch
from sklearn.datasets import make_blobs

import lsdc
from lsdc import METHODS, InputError
from lsdc.methods.deep import DeepEstimator
from lsdc.runs.folder import Run

pytestmark = [
    pytest.mark.filterwarnings("ignore::lsdc.HealthWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]
DEEP = [name for name, method in METHODS.items() if issubclass(method, DeepEstimator)]
X = make_blobs(60, 5, centers=3, random_state=0)[0].astype(np.float32)
SMALL = {"epochs": 2, "width": 0.05, "batch_size": 20, "pretext_plan": {"epochs": 1}, "random_state": 0}


def model(name, **params):
    """With a pretext, for those that can have one."""
    own = {"neighbours": "batch"} if name == "lsdc" else {}
    own |= {"pretext": "autoencoder"} if "pretext" in METHODS[name]().get_params() else {}
    return METHODS[name](3, **{**SMALL, **own, **params})


@pytest.mark.parametrize("name", DEEP)
def test_the_most_confident_start_is_kept(name, tmp_path):
    one = model(name).fit(X)
    many = model(name, n_init=3).fit(X, run=tmp_path / "run")
    shares = many.history_[-1]["starts"]
    stages = [json.loads(line)["stage"] for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert set(stages) == {"pretext", "clustering", "clustering-2", "clustering-3"}
    confident = lambda fitted: np.mean(fitted.predict_proba(X).max(1) > 0.9)  # noqa: E731
    assert len(shares) == 3
    assert confident(many) == pytest.approx(max(shares))
    assert confident(one) == pytest.approx(shares[0])  # the first start is that of a single one
    assert {record["stage"] for record in many.history_} == set(stages)
    kept = ["clustering", "clustering-2", "clustering-3"].index(many.history_[-1]["stage"])
    assert shares[kept] == max(shares)
    assert np.array_equal(lsdc.load(tmp_path / "run").predict_proba(X), many.predict_proba(X))


def test_starts_differ_and_share_the_pretext(tmp_path):
    model("dac", n_init=2).fit(X, run=tmp_path / "run")
    run = Run.open(tmp_path / "run")
    pretext, first, second = (run.read_checkpoint(s).weights for s in ("pretext", "clustering", "clustering-2"))
    weight = "backbone.stages.0.0.weight"
    assert not torch.equal(first["network.head.1.weight"], second["network.head.1.weight"])
    moved = [(w[f"network.{weight}"] - pretext[weight]).abs().mean() for w in (first, second)]
    apart = model("dac", pretext="none").set_params(random_state=1).fit(X).network_.state_dict()[weight]
    assert max(moved) < 0.5 * (apart - pretext[weight]).abs().mean()  # a few steps from the pretext, both of them


def test_equal_shares_are_told_apart_by_the_loss():
    """Nothing is confident after one step at a tiny rate: the start with the lowest last loss is kept."""
    losses = []

    def listen(progress):
        if progress.record and progress.stage.startswith("clustering") and progress.epoch == 2:
            losses.append(progress.record["loss"])

    many = model("dac", n_init=3, lr=1e-6).fit(X, monitor=listen)
    assert len(set(many.history_[-1]["starts"])) == 1
    assert many.history_[-1]["loss"] == min(losses)


@pytest.mark.parametrize("name", ["dec", "dac"])
def test_a_run_interrupted_in_a_later_start_goes_on_to_the_same_bits(name, tmp_path):
    whole = model(name, n_init=2).fit(X)

    def stop(progress):
        if (progress.stage, progress.epoch, progress.step) == ("clustering-2", 1, 2):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        model(name, n_init=2).fit(X, run=tmp_path / "run", monitor=stop)
    resumed = model(name, n_init=2).fit(X, resume=tmp_path / "run")
    assert np.array_equal(resumed.predict_proba(X), whole.predict_proba(X))
    assert [r["loss"] for r in resumed.history_] == [r["loss"] for r in whole.history_]


@pytest.mark.parametrize("value", [0, "many", 1.5])
def test_n_init_must_count(value):
    with pytest.raises(InputError, match="n_init: input should be"):
        model("dac", n_init=value).fit(X)
