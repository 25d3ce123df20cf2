"""Pairs from a neighbour graph of all samples: walks, likelihood, directions, and the clusters they lead to."""

import math
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from sklearn.datasets import make_blobs

import lsdc
from lsdc import LSDC
from lsdc.data.sources import Data
from lsdc.errors import InputError
from lsdc.functional import graph_information, pair_likelihood, views_joint, walk
from lsdc.methods import graph, graph_network
from lsdc.methods.against_kmeans import compare_with_kmeans
from lsdc.methods.graph_network import Encoder
from lsdc.methods.lsdc import Settings
from lsdc.metrics import clustering_accuracy
from lsdc.nn.classifiers import Classifiers, principal_axes
from lsdc.nn.projection import Directions, Topics
from lsdc.training.context import Context, Progress

QUICK = {"epochs": 3, "n_init": 3}
STAGES = ["clustering", "choice", "agreement"]
QUICK_IMAGES = {"epochs": 2, "n_init": 2, "pretext_plan": {"epochs": 2}, "batch_size": 32, "width": 0.1}
CONTEXT = Context(0, torch.device("cpu"))


def embeddings(seed=0, sizes=(140, 40, 20), d=48, spread=0.3):
    """Groups of unequal size around random directions, each sample at its own length."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(len(sizes)), sizes)
    X = rng.normal(size=(len(sizes), d))[y] + spread * rng.normal(size=(len(y), d))
    order = rng.permutation(len(y))
    return X[order] * rng.uniform(0.5, 2, size=(len(y), 1)), y[order]


def images_of_strokes(seed=0, sizes=(60, 30, 15), side=12):
    """Upright, lying and slanted strokes in noise."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    strokes = np.zeros((3, side, side))
    strokes[0, 1:-1, 5:7] = strokes[1, 5:7, 1:-1] = 1
    strokes[2] = np.eye(side) + np.eye(side, k=1)
    return (strokes[y] + rng.uniform(0, 0.4, (len(y), side, side))).astype(np.float32), y


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


def test_a_wrong_pair_is_as_likely_as_any_two_samples():
    p, mean = torch.eye(2), torch.tensor([0.5, 0.5])
    torn, joined = pair_likelihood(p, p.flip(0), mean, wrong=0.1), pair_likelihood(p, p, mean, wrong=0.1)
    torch.testing.assert_close(torn, torch.full((2,), 0.1).log())  # no worse, however sure both are
    torch.testing.assert_close(joined, torch.full((2,), 0.1 + 0.9 * 2).log())
    logits = torch.tensor([[20.0, 0.0], [1.0, 0.0]]).requires_grad_()
    other = torch.tensor([[0.0, 1.0], [0.0, 1.0]])
    pair_likelihood(logits.softmax(1), other, mean, wrong=0.1).sum().backward()
    assert logits.grad[0].abs().max() < 1e-6 < 0.1 < logits.grad[1].abs().max()  # who is sure is not moved by it


def test_the_partition_that_most_classifiers_found_is_averaged():
    """Seven classifiers: four see the sign of one coordinate, three that of the other; two of the four are noisy."""
    f = torch.randn(400, 2, generator=torch.Generator().manual_seed(0))
    along = torch.tensor([[1.0, -1.0], [0.0, 0.0]])
    weights = torch.stack([along, along + 0.02, along.flip(1), along.flip(1) + 0.01, *[along.flip(0)] * 3])
    classifiers = Classifiers(weights)
    order = torch.tensor([4, 0, 5, 1, 6, 2, 3])
    chosen = classifiers.agreeing(f, order)
    assert set(chosen.tolist()) == {0, 1, 2, 3}
    weight, _ = classifiers.agreement(f, chosen)
    labels = Classifiers(weight[None])(f)[0].argmax(1)
    assert clustering_accuracy((f[:, 0] > 0).numpy(), labels.numpy()) > 0.99


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


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("sizes", [(700, 200, 100), (600, 250, 100, 50)], ids=["70/20/10", "60/25/10/5"])
def test_clusters_of_unequal_size_are_found(sizes, seed):
    X, y = embeddings(seed, sizes, spread=0.5)
    model = LSDC(len(sizes), random_state=seed).fit(X)
    assert model.settings_["n_init"] == 20
    assert clustering_accuracy(y, model.labels_) >= 0.97


@pytest.mark.filterwarnings("ignore::lsdc.errors.HealthWarning")
@pytest.mark.parametrize("seed", [1, 2])
def test_a_cluster_of_one_percent_survives(seed):
    """The limit of docs/results.md: seed 0 splits the largest cluster instead, or not, as rounding has it."""
    X, y = embeddings(seed, (600, 250, 100, 40, 10), spread=0.5)
    assert clustering_accuracy(y, LSDC(5, random_state=seed).fit_predict(X)) >= 0.97


@pytest.mark.parametrize(("n", "n_clusters", "k"), [(1797, 10, 10), (400, 10, 10), (399, 10, 9), (60, 6, 2), (5, 4, 1)])
def test_neighbours_are_at_most_a_quarter_of_an_even_cluster(n, n_clusters, k):
    assert graph.graph_neighbours(n, n_clusters) == k
    assert LSDC(n_clusters).resolved((64,), n)["k"] == k


@pytest.mark.parametrize("n_clusters", [4, 12])
def test_a_few_dozen_samples_are_told_apart(n_clusters):
    X, y = make_blobs(60, 64, centers=n_clusters, cluster_std=2.0, random_state=0)
    assert clustering_accuracy(y, LSDC(n_clusters, random_state=0).fit_predict(X)) == 1


def test_new_samples_and_saved_models_are_labelled_alike(tmp_path):
    X, y = embeddings()
    model = LSDC(3, random_state=0).fit(X[:150])
    assert clustering_accuracy(y[150:], model.predict(X[150:])) >= 0.97
    model.save(tmp_path / "model.safetensors")
    loaded = lsdc.load(tmp_path / "model.safetensors")
    assert np.array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert np.linalg.norm(model.transform(X[:150]), axis=1).mean() == pytest.approx(1, rel=1e-4)


def test_information_over_several_steps_by_hand():
    """Pairs keep their walks; on a ring of four, two steps lead back or across, so that halves say nothing."""
    chain = torch.tensor([[1], [0], [3], [2]])
    labels = torch.tensor([0, 0, 1, 1])
    assert graph_information(chain, labels, 2, steps=3).item() == pytest.approx(math.log(2))  # walks stay in their pair
    ring = torch.tensor([[1, 3], [2, 0], [3, 1], [0, 2]])  # from 0 or 2, two steps lead to 0 and 2 alike
    assert graph_information(ring, torch.tensor([0, 0, 1, 1]), 2, steps=2).item() == pytest.approx(0, abs=1e-9)
    assert graph_information(ring, torch.tensor([0, 1, 0, 1]), 2, steps=2).item() == pytest.approx(math.log(2))


def test_agreement_is_the_mean_of_matched_classifiers():
    """The same classifier with its clusters in another order agrees with itself, whatever the order."""
    rng = torch.Generator().manual_seed(0)
    weight = torch.randn(5, 3, generator=rng)
    classifiers = Classifiers(torch.stack([weight, weight[:, [2, 0, 1]]]))
    classifiers.bias.data[0] = torch.tensor([0.3, 0.1, 0.2])
    classifiers.bias.data[1] = torch.tensor([0.2, 0.3, 0.1])
    found, bias = classifiers.agreement(torch.randn(50, 5, generator=rng), torch.tensor([0, 1]))
    torch.testing.assert_close(found, weight)
    torch.testing.assert_close(bias, torch.tensor([[0.3, 0.1, 0.2]]))


def test_topics_are_the_angle_in_singular_directions():
    rng = np.random.default_rng(0)
    x = rng.random((60, 5)) @ (rng.random((5, 40)) * (rng.random((5, 40)) < 0.3))  # five topics and nothing else
    x[0] = 0  # an empty document
    module = Topics(40, 5)
    module.fit(sp.csr_matrix(x), torch.zeros(()), 0)
    rows = torch.from_numpy(x).float()
    unit = torch.nn.functional.normalize(rows)
    V = torch.linalg.svd(unit.double())[2][:5].T.float()
    wanted = torch.nn.functional.normalize(unit @ V)
    wanted = wanted - wanted.mean(0)
    wanted = wanted / wanted.norm(dim=1).mean()
    torch.testing.assert_close(module(rows) @ module(rows).T, wanted @ wanted.T, atol=2e-3, rtol=1e-2)


def test_kmeans_beside_a_partition_says_which_explains_the_neighbours(tmp_path):
    X, y = embeddings(sizes=(120, 60, 40))
    model = LSDC(3, random_state=0, **QUICK).fit(X)
    data = model._data(X, reset=False)
    good = compare_with_kmeans(model, data)
    assert not good.is_worse
    assert good.agreement > 0.9
    model.labels_ = np.random.default_rng(0).integers(0, 3, len(y))  # clusters that explain nothing
    bad = compare_with_kmeans(model, data)
    assert bad.is_worse
    assert bad.verdict.endswith("Try another seed, or use K-means.")
    assert bad.as_dict()["information"]["kmeans"] > bad.as_dict()["information"]["lsdc"]


def test_even_sizes_are_taken_where_they_explain_the_graph_nearly_as_well():
    """Two pairs of pairs: halves of each explain all links; one of the first form is taken if it nearly does too."""
    f = torch.tensor([[1.0, 0.0], [1.0, 0.1], [0.0, 1.0], [0.1, 1.0]])
    fixed = graph.Fixed(f, torch.tensor([[1], [0], [3], [2]]))
    right, wrong = torch.eye(2), torch.tensor([[1.0, 0.0], [1.0, 0.0]])  # the second puts all into one cluster
    both = Classifiers(torch.stack([right, right]), forms=((0.6, 1.0), (1.0, 0.4)))
    fixed.choose(both, 1)
    assert int(both.best) == 0
    one = Classifiers(torch.stack([wrong, right]), forms=((0.6, 1.0), (1.0, 0.4)))
    fixed.choose(one, 1)
    assert int(one.best) == 1


def test_the_joint_of_views_counts_every_ordered_pair_of_them():
    labels = torch.randint(0, 3, (4, 50), generator=torch.Generator().manual_seed(0))
    counted = torch.zeros(3, 3, dtype=torch.double)
    for a in range(4):
        for b in range(4):
            for i in range(50):
                counted[labels[a, i], labels[b, i]] += a != b
    assert torch.equal(views_joint(labels, 3), counted / counted.sum())
    assert torch.equal(views_joint(labels[:1].repeat(2, 1), 3), torch.bincount(labels[0]).double().diag() / 50)


def test_clusters_that_views_of_a_sample_keep_are_chosen_over_those_that_explain_the_graph():
    """The graph links samples by their first number; a view changes that of half of them, and never the second."""
    signs = torch.tensor([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    links = torch.tensor([[1], [0], [3], [2]])
    views = torch.stack([signs, signs * torch.tensor([[-1.0, 1.0], [1.0, 1.0], [1.0, 1.0], [-1.0, 1.0]])])
    by_first, by_second = torch.tensor([[1.0, -1.0], [0.0, 0.0]]), torch.tensor([[0.0, 0.0], [1.0, -1.0]])
    both = Classifiers(torch.stack([by_first, by_second]), forms=((0.6, 1.0),))
    plain, seen = graph.Fixed(signs, links), graph.Fixed(signs, links, views)
    assert plain.explained(both, 1).argmax() == 0
    assert seen.explained(both, 1).argmax() == 1
    assert torch.allclose(seen.explained(both, 1)[1], torch.tensor((1 - graph.PRICE) * math.log(2)).double())


def test_what_explains_the_graph_best_is_kept():
    """A start that is worse than another is not the one that predicts, in whatever order they come."""
    X, _ = embeddings(sizes=(100, 100, 100, 100), spread=0.4)
    with warnings.catch_warnings(action="ignore"):
        one = [LSDC(4, random_state=seed, n_init=1).fit(X).history_[-1]["information"] for seed in range(4)]
        many = LSDC(4, random_state=0, n_init=16).fit(X).history_[-1]["information"]
    assert many >= max(one) - 1e-6


def goes_on_to_the_same_bits(X, whole, params, run, at):
    """Whether a fit that is stopped where ``at`` says so, and resumed, ends as the whole one did."""

    def stop(progress: Progress):
        if at(progress):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        LSDC(3, random_state=0, **params).fit(X, run=run, monitor=stop)
    resumed = LSDC(3, random_state=0, **params).fit(X, resume=run)
    assert np.array_equal(resumed.predict_proba(X), whole.predict_proba(X))
    assert [r["loss"] for r in resumed.history_] == [r["loss"] for r in whole.history_]


def test_an_interrupted_run_goes_on_to_the_same_bits(tmp_path):
    X, _ = embeddings()
    whole = LSDC(3, random_state=0, **QUICK).fit(X)
    goes_on_to_the_same_bits(X, whole, QUICK, tmp_path / "run", lambda p: p.record and p.epoch == 2)


def test_auto_follows_from_the_data():
    X, _ = embeddings()
    settings = lambda X, **params: LSDC(3, random_state=0, **params).resolved(X.shape[1:], X.shape[0], sp.issparse(X))  # noqa: E731
    default = settings(X)
    assert [default[name] for name in ("neighbours", "k", "walk", "n_init")] == ["graph", 10, 3, 20]
    assert default["backbone"] == "projection"
    assert settings(X[:, :31])["neighbours"] == "graph"  # few numbers too, as waves
    documents = settings(sp.csr_matrix(X))
    assert [documents[name] for name in ("neighbours", "backbone", "width")] == ["graph", "words", 3 * 3 / 128]
    assert settings(X, similarity="knn")["neighbours"] == "batch"  # asks for labels in the batch
    assert settings(X, neighbours="batch")["backbone"] == "mlp"
    assert settings(X, neighbours="batch")["n_init"] == 1
    assert settings(sp.csr_matrix(X), neighbours="graph", k=4)["k"] == 4
    assert settings(X, pool=0)["neighbours"] == "batch"  # and so does whatever has a meaning there only


def test_images_have_the_graph_and_the_network_of_their_own():
    images = images_of_strokes()[0]
    settings = lambda **params: LSDC(3, **params).resolved((1, 12, 12), len(images))  # noqa: E731
    default = settings()
    assert [default[name] for name in ("neighbours", "k", "walk", "n_init")] == ["graph", len(images) // 12, 3, 20]
    assert settings(backbone="vgg6", pretext="none")["neighbours"] == "graph"
    assert settings(backbone="vgg6", pretext="none")["backbone"] == "vgg6"
    assert settings(similarity="knn")["neighbours"] == "batch"
    assert settings(consistency=0.0)["neighbours"] == "batch"


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"neighbours": "graph", "similarity": "knn"}, "similarity has no effect with neighbours='graph'"),
        ({"neighbours": "somewhere"}, "neighbours must be 'auto', 'graph' or 'batch', got 'somewhere'"),
        ({"backbone": "projection"}, "backbone 'projection' works only with neighbours='graph'"),
        ({"k": 200}, "k=200 must be smaller than the 200 samples"),
        ({"n_init": 0}, "n_init: input should be greater than or equal to 1, got 0"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(params, message):
    with pytest.raises(InputError, match=message.replace("(", r"\(")):
        LSDC(3, **params).fit(embeddings()[0])


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
    check_law(LSDC(3, neighbours="graph", random_state=0, **QUICK).fit(X), X)


def check_law(model, X):
    """Probabilities are probabilities, labels are the likeliest clusters, and equal samples share theirs."""
    p = model.predict_proba(X)
    np.testing.assert_allclose(p.sum(1), 1, rtol=1e-5)
    assert p.min() >= 0
    assert np.array_equal(model.labels_, p.argmax(1))
    assert np.array_equal(model.labels_, model.predict(X))
    rows = (X.toarray() if sp.issparse(X) else X).reshape(X.shape[0], -1)
    which = np.unique(rows, axis=0, return_inverse=True)[1].ravel()
    for sample in range(which.max() + 1):
        assert len(set(model.labels_[which == sample])) == 1


def test_axes_are_the_principal_directions_of_standardised_features():
    f = torch.from_numpy(embeddings()[0]).float() * torch.arange(1, 49)
    f[:, 7] = 3.0  # a dead feature
    axes = principal_axes(f, 1e-5, 0)
    standard = (f - f.mean(0)) / (f.var(0, correction=0) + 1e-5).sqrt()
    _, _, V = torch.linalg.svd(standard, full_matrices=False)
    wanted = standard @ V.T
    torch.testing.assert_close(
        axes.of(f).norm(dim=1), wanted.norm(dim=1) / wanted.norm(dim=1).mean(), rtol=1e-3, atol=1e-3
    )
    assert torch.isfinite(axes.of(f)).all()


@pytest.mark.filterwarnings("ignore::lsdc.errors.HealthWarning")
def test_the_head_is_the_best_classifier():
    """What the network predicts is what the chosen classifier says along the axes, for samples it has not seen too."""
    X, _ = images_of_strokes()
    model = LSDC(3, random_state=0, **{**QUICK_IMAGES, "epochs": 1, "n_init": 3})
    model.fit(X[:80])
    f = torch.from_numpy(model.transform(X))
    encoder = Encoder(model.network_, model._views, Data(X, model.spec_), Settings(**model.settings_), CONTEXT)
    axes, _ = encoder.graph(f)
    classifiers = Classifiers(torch.randn(2, axes.directions.shape[1], 3, generator=torch.Generator().manual_seed(0)))
    classifiers.best.fill_(1)
    encoder.fold(classifiers, axes)
    with torch.no_grad():
        torch.testing.assert_close(
            model.network_.eval().head(f).softmax(1), classifiers(axes.of(f))[1], atol=1e-4, rtol=1e-4
        )


def test_strokes_are_told_apart_whatever_their_share():
    X, y = images_of_strokes(sizes=(210, 60, 30))
    model = LSDC(3, random_state=0, n_init=5, batch_size=64, width=0.1, pretext_plan={"epochs": 10}).fit(X)
    assert [r["stage"] for r in model.history_ if r["epoch"] == 1] == ["pretext", "starts", *STAGES]
    assert clustering_accuracy(y, model.labels_) >= 0.97


@pytest.fixture(scope="module")
def undisturbed():
    return LSDC(3, random_state=0, **QUICK_IMAGES).fit(images_of_strokes()[0])


@pytest.mark.parametrize("stage", ["starts", "clustering", "choice"])
def test_images_go_on_from_any_stage_to_the_same_bits(tmp_path, stage, undisturbed):
    at = lambda p: (p.stage, p.epoch, p.step) == (stage, 2, 3)  # noqa: E731
    goes_on_to_the_same_bits(images_of_strokes()[0], undisturbed, QUICK_IMAGES, tmp_path / "run", at)


@pytest.mark.filterwarnings("ignore::lsdc.errors.HealthWarning")
@pytest.mark.parametrize(
    "X",
    [
        images_of_strokes()[0][:3],
        np.repeat(images_of_strokes()[0][:2], 20, axis=0),
        np.concatenate([np.zeros((20, 12, 12)), images_of_strokes()[0][:20]]),
        np.random.default_rng(0).integers(0, 255, (12, 8, 8, 3)).astype(np.uint8),
    ],
    ids=["few", "copies", "black", "colour"],
)
def test_odd_images_get_clusters(X):
    check_law(LSDC(3, random_state=0, **QUICK_IMAGES).fit(X), X)


@pytest.mark.filterwarnings("ignore::lsdc.errors.HealthWarning")
def test_more_images_than_a_graph_holds_are_all_labelled(monkeypatch):
    monkeypatch.setattr(graph_network, "SAMPLES", 50)
    monkeypatch.setattr(graph, "SAMPLES", 50)
    X, y = images_of_strokes()
    model = LSDC(3, random_state=0, **QUICK_IMAGES).fit(X)
    check_law(model, X)
    assert len(model.labels_) == len(y) == 105
