"""Merging small clusters by the graph: a literal reference, and a case whose answer is known."""

from itertools import combinations

import numpy as np
import pytest
import torch
from sklearn.cluster import KMeans

from lsdc import LSDC
from lsdc.functional import merged, nearest, walk_joint
from lsdc.functional.graph import joint_information
from lsdc.methods import graph_network
from lsdc.methods.graph import merged_centres, small_clusters, starts, towards
from lsdc.metrics import clustering_accuracy


def literally(joint, n_clusters, price):
    """Every pair is tried in every round, and the information computed anew."""
    groups = [[i] for i in range(len(joint))]

    def explained(groups):
        member = torch.zeros(len(joint), len(groups), dtype=torch.double)
        for c, group in enumerate(groups):
            member[group, c] = 1
        return float(joint_information(member.T @ joint @ member, price))

    while len(groups) > n_clusters:
        tried = [
            [*(g for i, g in enumerate(groups) if i not in pair), groups[pair[0]] + groups[pair[1]]]
            for pair in combinations(range(len(groups)), 2)
        ]
        groups = max(tried, key=explained)
    return {frozenset(group) for group in groups}


@pytest.mark.parametrize("price", [0.0, 0.2, 0.7])
@pytest.mark.parametrize("seed", range(4))
def test_merging_is_that_of_trying_every_pair(seed, price):
    rng = torch.Generator().manual_seed(seed)
    joint = torch.rand(9, 9, generator=rng, dtype=torch.double) ** 3 + torch.diag(torch.rand(9, generator=rng))
    joint = joint + joint.T
    joint /= joint.sum()
    found = merged(joint, 3, price)
    groups = {frozenset(torch.where(found == c)[0].tolist()) for c in found.unique()}
    assert groups == literally(joint, 3, price)


def test_small_clusters_that_nobody_is_in_are_merged_first():
    joint = torch.zeros(4, 4, dtype=torch.double)
    joint[0, 0] = joint[1, 1] = 0.5
    found = merged(joint, 2, 0.2)
    assert found[0] != found[1]
    mixed = torch.zeros(8, 8, dtype=torch.double)
    mixed[:4, :4] = 1 / 16  # merging any of these gains something
    assert len(merged(mixed, 3, 0.2)[:4].unique()) == 3


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("n", "n_distinct", "n_clusters"), [(300, 300, 1), (300, 40, 8), (600, 3, 5), (40, 40, 8)])
def test_starts_are_finite_whatever_the_samples(n, n_distinct, n_clusters, dtype):
    x = torch.randn(n_distinct, 6, generator=torch.Generator().manual_seed(0), dtype=dtype)
    x = x[torch.arange(n) % n_distinct]
    found = starts(x, 8, n_clusters, seed=0, graph=nearest(x, 5, "l2").indices)
    assert found.shape == (8, 6, n_clusters)
    assert found.isfinite().all()


@pytest.fixture(scope="module")
def uneven():
    """A group of 400 that is three times as long as wide, and two of 100 that are close: K-means halves the first."""
    truth = torch.repeat_interleave(torch.arange(3), torch.tensor([400, 100, 100]))
    x = torch.randn(600, 8, generator=torch.Generator().manual_seed(0))
    x[truth == 0, 0] *= 3
    x[truth > 0, 1] += 12
    x[truth == 2, 2] += 6
    return truth, x, nearest(x, 8, "l2").indices


def test_merged_starts_find_groups_that_kmeans_halves(uneven):
    truth, x, graph = uneven
    f = (x - x.mean(0)) / x.norm(dim=1).mean()

    def accuracy(centres):
        return clustering_accuracy(truth.numpy(), torch.cdist(f, centres).argmin(1).numpy())

    few, many = (torch.from_numpy(KMeans(n, n_init=5, random_state=0).fit(f.numpy()).cluster_centers_) for n in (3, 30))
    assert accuracy(few) < 0.75
    small = torch.cdist(f, many).argmin(1)
    labels = merged(walk_joint(graph, small, 30, 3), 3, 0.2)[small]
    assert clustering_accuracy(truth.numpy(), labels.numpy()) == 1
    centres = merged_centres(f, many, 3, graph)
    by_hand = torch.stack([f[truth == c].mean(0) for c in range(3)])
    assert torch.cdist(by_hand, centres).min(1).values.max() < 1e-5


def test_four_of_eight_starts_are_merged(uneven):
    _, x, graph = uneven
    plain, with_graph = starts(x, 8, 3, seed=0), starts(x, 8, 3, seed=0, graph=graph)
    changed = [not torch.equal(a, b) for a, b in zip(plain, with_graph, strict=True)]
    assert changed == [True] * 4 + [False] * 4


@pytest.mark.parametrize(
    ("n", "n_clusters", "expected"), [(5000, 10, 100), (5000, 100, 200), (50, 10, 10), (300, 5, 30)]
)
def test_small_clusters_have_ten_samples_on_average(n, n_clusters, expected):
    assert small_clusters(n, n_clusters) == expected


def test_the_last_classifiers_of_images_have_merged_starts(monkeypatch):
    given = []

    def watched(*args, graph=None, **options):
        given.append(None if graph is None else tuple(graph.shape))
        return starts(*args, graph=graph, **options)

    monkeypatch.setattr(graph_network, "starts", watched)
    X = np.random.default_rng(0).random((120, 8, 8)).astype(np.float32)
    LSDC(2, random_state=0, epochs=1, width=0.1, pretext_plan={"epochs": 1}).fit(X)
    assert given[0] is None  # the network learns from starts that differ
    assert given[1:] == [(120, 10)]


def test_the_last_classifiers_of_images_start_from_what_the_best_teachers_found_too(monkeypatch):
    """They come last, each at the means of a partition, and those that explain the graph best are taken."""
    seen = []

    class Watched(graph_network.Classifiers):
        def __init__(self, start, **options):
            seen.append(start.detach().clone())
            super().__init__(start, **options)

    taught = []

    def partitions(self, f, fixed):
        found = original(self, f, fixed)
        taught.append((found, fixed))
        return found

    original = graph_network.NetworkTraining.partitions
    monkeypatch.setattr(graph_network, "Classifiers", Watched)
    monkeypatch.setattr(graph_network.NetworkTraining, "partitions", partitions)
    X = np.random.default_rng(0).random((120, 8, 8)).astype(np.float32)
    model = LSDC(3, random_state=0, n_init=12, epochs=1, width=0.1, pretext_plan={"epochs": 1}).fit(X)
    chosen = [start for start in seen if len(start) == 12 + graph_network.TEACHERS]
    assert len(chosen) == len(taught) == 1
    for start, (found, fixed) in zip(chosen, taught, strict=True):
        worth = [float(fixed.worth(one, 3, fixed.steps)) for one in found]
        assert worth == sorted(worth, reverse=True)
        for extra, labels in zip(start[12:], found, strict=False):
            by_hand = torch.stack([fixed.features[labels == c].sum(0) / max(1, (labels == c).sum()) for c in range(3)])
            assert torch.allclose(extra, towards(by_hand), atol=1e-5)
    assert model.network_.head[1].weight.shape[0] == 3
