"""Pairs from a neighbour graph of all samples: walks, likelihood, directions, and the clusters they lead to."""

import math
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import torch

import lsdc
from lsdc import LSDC
from lsdc.errors import InputError
from lsdc.functional import graph_information, pair_likelihood, walk
from lsdc.metrics import clustering_accuracy
from lsdc.nn.projection import Directions
from lsdc.training.loop import Progress

QUICK = {"epochs": 3, "n_init": 3}


def embeddings(seed=0, sizes=(140, 40, 20), d=48, spread=0.3):
    """Groups of unequal size around random directions, each sample at its own length."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(len(sizes)), sizes)
    X = rng.normal(size=(len(sizes), d))[y] + spread * rng.normal(size=(len(y), d))
    order = rng.permutation(len(y))
    return X[order] * rng.uniform(0.5, 2, size=(len(y), 1)), y[order]


def test_a_walk_by_hand():
    ring = torch.tensor([[1, 3], [2, 0], [3, 1], [0, 2]])  # the next, and the one before
    start = torch.tensor([0, 0, 0, 2])
    #                  length   first  second third step
    u = torch.tensor([[0.0, 0.0, 0.9, 0.9], [0.4, 0.0, 0.0, 0.9], [0.99, 0.9, 0.9, 0.9], [0.99, 0.0, 0.9, 0.0]])
    assert walk(ring, start, u).tolist() == [1, 2, 1, 3]


@pytest.mark.parametrize("most", [1, 2, 5])
def test_a_walk_takes_one_to_most_steps_each_as_often(most):
    line = torch.arange(1, 11)[:, None].clamp(max=9)  # 0 -> 1 -> ... -> 9
    u = torch.rand(20_000, 1 + most, generator=torch.Generator().manual_seed(0))
    ends = walk(line, torch.zeros(20_000, dtype=torch.long), u)
    shares = torch.bincount(ends, minlength=most + 1)[1:] / 20_000
    assert ends.min() == 1
    assert ends.max() == most
    torch.testing.assert_close(shares, torch.full((most,), 1 / most), atol=0.02, rtol=0)


def test_the_likelihood_of_a_pair_is_its_formula():
    rng = torch.Generator().manual_seed(0)
    p, q = (torch.rand(4, 3, generator=rng).softmax(1) for _ in range(2))
    mean = torch.tensor([0.5, 0.3, 0.2])
    wanted = [math.log(sum((p[i, c] * q[i, c]).item() ** 0.6 / mean[c].item() for c in range(3))) for i in range(4)]
    torch.testing.assert_close(pair_likelihood(p, q, mean, 0.6), torch.tensor(wanted), atol=1e-5, rtol=1e-5)


def test_a_sure_pair_of_a_rare_cluster_counts_as_the_rarity():
    p = torch.eye(2)
    torch.testing.assert_close(pair_likelihood(p, p, torch.tensor([0.9, 0.1])), -torch.tensor([0.9, 0.1]).log())
    torn = pair_likelihood(p[:1], p[1:], torch.tensor([0.9, 0.1]))
    assert torch.isfinite(torn).all()
    assert torn < -10


def test_directions_are_those_of_the_angles():
    x = torch.from_numpy(embeddings()[0]).float()
    stage = Directions(48, 5)
    origin = torch.full((48,), 0.5)
    stage.fit(x, origin, 0)
    h = torch.nn.functional.normalize(x - origin)
    centred = h - h.mean(0)
    _, _, V = torch.linalg.svd(centred, full_matrices=False)
    wanted = centred @ V[:5].T
    torch.testing.assert_close(stage(x).abs(), (wanted / wanted.norm(dim=1).mean()).abs(), atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(stage(origin + 7 * (x - origin)), stage(x))  # length does not count
    assert torch.isfinite(stage(origin[None])).all()  # what has no direction is no NaN


def test_fewer_samples_than_directions_leave_some_empty():
    x = torch.from_numpy(embeddings()[0][:4]).float()
    stage = Directions(48, 10)
    stage.fit(x, torch.zeros(48), 0)
    assert stage.directions[:, 4:].abs().sum() == 0
    torch.testing.assert_close(stage(x).norm(dim=1).mean(), torch.tensor(1.0))


def test_information_by_hand():
    ring = torch.tensor([[1], [0], [3], [2]])  # two pairs, each other's neighbours
    assert graph_information(ring, torch.tensor([0, 0, 1, 1]), 2).item() == pytest.approx(math.log(2))
    assert graph_information(ring, torch.tensor([0, 1, 0, 1]), 2).item() == pytest.approx(math.log(2))  # told by it too
    assert graph_information(ring, torch.tensor([0, 0, 0, 0]), 2).item() == 0
    thirds = graph_information(ring, torch.tensor([0, 1, 2, 2]), 3).item()  # halves of one pair share all links
    assert thirds == pytest.approx(0.5 * math.log(2) + 0.5 * math.log(4))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("sizes", [(700, 200, 100), (600, 250, 100, 50)], ids=["70/20/10", "60/25/10/5"])
def test_clusters_of_unequal_size_are_found(sizes, seed):
    X, y = embeddings(seed, sizes, spread=0.5)
    model = LSDC(len(sizes), random_state=seed).fit(X)
    assert model.settings_["graph"]["n_init"] == 20
    assert clustering_accuracy(y, model.labels_) >= 0.97


@pytest.mark.filterwarnings("ignore::lsdc.errors.HealthWarning")
@pytest.mark.parametrize(
    "seed", [pytest.param(0, marks=pytest.mark.xfail(reason="the largest is split", strict=False)), 1, 2]
)
def test_a_cluster_of_one_percent_survives(seed):
    """The known limit of docs/results.md; which seeds meet it depends on rounding, so the mark is not strict."""
    X, y = embeddings(seed, (600, 250, 100, 40, 10), spread=0.5)
    assert clustering_accuracy(y, LSDC(5, random_state=seed).fit_predict(X)) >= 0.97


def test_new_samples_and_saved_models_are_labelled_alike(tmp_path):
    X, y = embeddings()
    model = LSDC(3, random_state=0).fit(X[:150])
    assert clustering_accuracy(y[150:], model.predict(X[150:])) >= 0.97
    model.save(tmp_path / "model.safetensors")
    loaded = lsdc.load(tmp_path / "model.safetensors")
    assert np.array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert np.linalg.norm(model.transform(X[:150]), axis=1).mean() == pytest.approx(1, rel=1e-4)


def test_what_explains_the_graph_best_is_kept():
    """A start that is worse than another is not the one that predicts, in whatever order they come."""
    X, _ = embeddings(sizes=(100, 100, 100, 100), spread=0.4)
    with warnings.catch_warnings(action="ignore"):
        one = [LSDC(4, random_state=seed, n_init=1).fit(X).history_[-1]["information"] for seed in range(4)]
        many = LSDC(4, random_state=0, n_init=16).fit(X).history_[-1]["information"]
    assert many >= max(one) - 1e-6


class Stop(Exception):
    pass


def test_an_interrupted_run_goes_on_to_the_same_bits(tmp_path):
    X, _ = embeddings()
    whole = LSDC(3, random_state=0, **QUICK).fit(X)

    def stop(progress: Progress):
        if progress.record and progress.epoch == 2:
            raise Stop

    with pytest.raises(Stop):
        LSDC(3, random_state=0, **QUICK).fit(X, run=tmp_path / "run", monitor=stop)
    resumed = LSDC(3, random_state=0, **QUICK).fit(X, resume=tmp_path / "run")
    assert np.array_equal(resumed.predict_proba(X), whole.predict_proba(X))
    assert [r["loss"] for r in resumed.history_] == [r["loss"] for r in whole.history_]


def test_auto_follows_from_the_data():
    X, _ = embeddings()
    settings = lambda X, **params: LSDC(3, random_state=0, **params).resolved(X.shape[1:], X.shape[0], sp.issparse(X))  # noqa: E731
    assert settings(X)["graph"] == {"k": 10, "walk": 3, "n_init": 20}
    assert settings(X)["architecture"]["backbone"] == "projection"
    assert settings(X[:, :31])["graph"] is None  # few numbers: not features yet
    assert settings(sp.csr_matrix(X))["graph"] is None
    assert settings(X, similarity="knn")["graph"] is None  # asks for labels in the batch
    assert settings(X, neighbours="batch")["architecture"]["backbone"] == "mlp"
    assert settings(sp.csr_matrix(X), neighbours="graph", k=4)["graph"]["k"] == 4


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"neighbours": "graph", "similarity": "knn"}, "similarity has no part in neighbours='graph'"),
        ({"neighbours": "somewhere"}, "neighbours must be 'auto', 'graph' or 'batch', got 'somewhere'"),
        ({"neighbours": "batch", "n_init": 5}, "n_init needs neighbours='graph'"),
        ({"backbone": "projection"}, "backbone 'projection' is that of neighbours='graph'"),
        ({"k": 200}, "k=200 must be smaller than the 200 samples"),
        ({"n_init": 0}, "n_init: input should be greater than or equal to 1, got 0"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(params, message):
    with pytest.raises(InputError, match=message.replace("(", r"\(")):
        LSDC(3, **params).fit(embeddings()[0])


def test_images_have_no_graph_yet():
    with pytest.raises(InputError, match="neighbours='graph' needs vectors, got images"):
        LSDC(3, neighbours="graph").fit(np.zeros((5, 8, 8)) + np.arange(5)[:, None, None])


@pytest.mark.filterwarnings("ignore::lsdc.errors.HealthWarning")
@pytest.mark.parametrize(
    "X",
    [
        embeddings()[0][:3],  # fewer samples than neighbours
        np.repeat(embeddings()[0][:2], 20, axis=0),  # copies
        np.concatenate([np.zeros((30, 48)), embeddings()[0][:30]]),  # rows without a direction
        sp.csr_matrix(embeddings()[0] * (embeddings()[0] > 1)),
    ],
    ids=["few", "copies", "zeros", "sparse"],
)
def test_odd_data_gets_clusters(X):
    model = LSDC(3, neighbours="graph", random_state=0, **QUICK).fit(X)
    assert np.isfinite(model.predict_proba(X)).all()
    assert len(model.labels_) == X.shape[0]
    if not sp.issparse(X) and len(X) == 40:
        assert len(np.unique(model.labels_)) <= 2  # copies are never torn apart
