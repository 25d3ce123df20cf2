"""FINCH: by hand, by a literal loop, and as an estimator."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_digits, make_blobs

import lsdc
from lsdc import FINCH, HealthWarning, InputError
from lsdc.functional import cut, finch_partitions, first_neighbours, linked, merge_closest, natural
from lsdc.functional.finch import Partition
from lsdc.metrics import clustering_accuracy
from peaks import printed

METRICS = ("cosine", "l2")
every_metric = pytest.mark.parametrize("metric", METRICS)


def features(seed, n=40, d=3):
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed))


def count(labels):
    return len(np.unique(labels))


def distances(f, metric):
    f = f.double()
    return torch.cdist(f, f) if metric == "l2" else 1 - torch.cosine_similarity(f[:, None], f, dim=2)


def literal_partitions(f, metric):
    """The adjacency matrix of equation 1, its components by powers, means, and again."""
    labels, means, partitions = torch.arange(len(f)), f.double(), []
    while len(means) > 1:
        kappa = distances(means, metric).fill_diagonal_(torch.inf).argmin(1).tolist()
        n = len(kappa)
        A = torch.tensor(
            [
                [float(i == j or j == kappa[i] or i == kappa[j] or kappa[i] == kappa[j]) for j in range(n)]
                for i in range(n)
            ]
        )
        for _ in range(n.bit_length()):
            A = (A @ A > 0).float()
        roots = A.argmax(1)  # the first member of each one's component
        labels = torch.tensor([sorted(set(roots.tolist())).index(int(root)) for root in roots])[labels]
        means = torch.stack([f.double()[labels == c].mean(0) for c in range(int(labels.max()) + 1)])
        partitions.append(labels)
    return partitions


def literal_merge(f, labels, n_clusters, metric):
    while count(labels) > n_clusters:
        ids = labels.unique()
        between = distances(torch.stack([f.double()[labels == c].mean(0) for c in ids]), metric)
        i, j = divmod(int(between.fill_diagonal_(torch.inf).argmin()), len(ids))
        labels = torch.where(labels == ids[j], ids[i], labels)
    return labels


def same_partition(a, b):
    return len(set(zip(a.tolist(), b.tolist(), strict=True))) == count(a) == count(b)


# ---- the functions ------------------------------------------------------------------------------------------


def test_by_hand_on_a_line():
    """0 and 1 are mutual neighbours and 2.5 joins them; 10 and 11; then the two groups."""
    f = torch.tensor([[0.0], [1.0], [2.5], [10.0], [11.0]])
    kappa, gaps = first_neighbours(f, "l2")
    assert kappa.tolist() == [1, 0, 1, 4, 3]
    assert gaps.tolist() == [1, 1, 1.5, 1, 1]
    assert linked(kappa).tolist() == [0, 0, 0, 1, 1]
    first, last = finch_partitions(f, "l2")
    assert first.labels.tolist() == [0, 0, 0, 1, 1]
    assert last.labels.tolist() == [0] * 5
    assert (first.gap, last.gap) == (pytest.approx(1.1), pytest.approx(10.5 - 3.5 / 3))
    assert natural([first, last]) == 0


def test_by_hand_by_angle():
    f = torch.tensor([[1.0, 0.0], [5.0, 0.1], [0.1, 7.0], [0.0, 1.0]])
    assert first_neighbours(f).indices.tolist() == [1, 0, 3, 2]
    assert finch_partitions(f)[0].labels.tolist() == [0, 0, 1, 1]


@every_metric
@given(seed=st.integers(0, 10**6))
def test_equals_the_literal_algorithm(metric, seed):
    f = features(seed)
    found = [p.labels.tolist() for p in finch_partitions(f, metric)]
    assert found == [labels.tolist() for labels in literal_partitions(f, metric)]


@every_metric
@given(seed=st.integers(0, 10**6))
def test_the_hierarchy_is_nested_and_ends_in_one(metric, seed):
    partitions = [p.labels for p in finch_partitions(features(seed), metric)]
    for fine, coarse in pairwise(partitions):
        assert len(set(zip(fine.tolist(), coarse.tolist(), strict=True))) == count(fine)
        assert count(coarse) <= count(fine) // 2  # every cluster has a neighbour to join
    assert count(partitions[-1]) == 1


@every_metric
@given(seed=st.integers(0, 10**6))
def test_permuting_samples_changes_nothing(metric, seed):
    f = features(seed)
    order = torch.randperm(len(f), generator=torch.Generator().manual_seed(seed))
    for a, b in zip(finch_partitions(f, metric), finch_partitions(f[order], metric), strict=True):
        assert same_partition(a.labels[order], b.labels)
        assert a.gap == pytest.approx(b.gap, rel=1e-4)


@every_metric
@given(seed=st.integers(0, 10**6), n_clusters=st.integers(1, 40))
def test_merging_equals_the_literal_loop_and_is_exact(metric, seed, n_clusters):
    f = features(seed)
    partitions = finch_partitions(f, metric)
    labels = cut(f, partitions, n_clusters, metric)
    assert labels.unique().tolist() == list(range(n_clusters))
    enough = [p.labels for p in partitions if count(p.labels) >= n_clusters]
    start = enough[-1] if enough else torch.arange(40)
    assert same_partition(labels, literal_merge(f, start, n_clusters, metric))
    assert len(set(zip(start.tolist(), labels.tolist(), strict=True))) == count(start)  # nested


def test_merging_by_hand():
    f = torch.tensor([[0.0], [1.0], [3.0], [10.0]])
    assert merge_closest(f, torch.arange(4), 3, "l2").tolist() == [0, 0, 1, 2]
    assert merge_closest(f, torch.arange(4), 2, "l2").tolist() == [0, 0, 0, 1]
    assert merge_closest(f, torch.arange(4), 1, "l2").tolist() == [0, 0, 0, 0]
    weighted = torch.tensor([[0.0], [0.0], [0.0], [4.0], [7.1]])  # means 1 and 7.1 are farther apart than 4 and 7.1
    assert merge_closest(weighted, torch.tensor([0, 0, 0, 1, 2]), 2, "l2").tolist() == [0, 0, 0, 1, 1]


def test_the_natural_partition_is_the_one_before_the_largest_gap():
    def levels(*gaps):
        return [Partition(torch.zeros(3), gap) for gap in gaps]

    assert natural(levels(1.0, 1.5, 6.0, 9.0)) == 1
    assert natural(levels(0.0, 1.5, 60.0)) == 0  # copies, and nothing else
    assert natural(levels(1.0)) == 0


PROGRAM = """
import torch
torch.set_num_threads(1)
from lsdc.functional import nearest_among
f = torch.randn(100_000, 64, generator=torch.Generator().manual_seed(0))
nearest_among(f[:2049], f, 1, "cosine")
print(peak())
"""


def test_two_blocks_of_100_000_samples_stay_under_1_gb():
    """What is alive at once is the same for all blocks; ``benchmarks/finch.py --large`` runs them all."""
    (peak,) = printed(PROGRAM)
    assert peak < 2**30


# ---- the estimator ------------------------------------------------------------------------------------------


@every_metric
def test_blobs_are_found_without_being_counted(metric):
    X, y = make_blobs(300, 30, centers=10, random_state=10)
    model = FINCH(metric=metric).fit(X)
    assert clustering_accuracy(y, model.labels_) == 1.0
    assert model.n_clusters_ == count(model.labels_) == model.predict_proba(X).shape[1]
    assert any(np.array_equal(model.labels_, labels) for labels in model.partitions_)
    assert model.get_params()["n_clusters"] is None


@every_metric
@pytest.mark.parametrize("n_clusters", [1, 2, 10, 100, 700])
@pytest.mark.filterwarnings("ignore::lsdc.HealthWarning")
def test_as_many_clusters_as_asked_for(metric, n_clusters):
    X = load_digits().images[:900]
    model = FINCH(n_clusters, metric=metric).fit(X)
    assert np.unique(model.labels_).tolist() == list(range(n_clusters))
    assert model.n_clusters_ == n_clusters
    assert np.array_equal(model.predict(X), model.labels_)


@every_metric
@given(seed=st.integers(0, 10**6))
def test_training_samples_are_predicted_as_they_were_labelled(metric, seed):
    """In any order and company, and with copies among them."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 4, (60, 3)) + rng.choice([0.0, 0.3], (60, 3))
    model = FINCH(metric=metric).fit(X)
    taken = next(labels for labels in model.partitions_ if np.array_equal(labels, model.labels_))
    order = rng.permutation(60)[:17]
    assert np.array_equal(model.predict(X[order]), taken[order])


@every_metric
@given(seed=st.integers(0, 10**6), n_clusters=st.integers(1, 60))
@pytest.mark.filterwarnings("ignore::lsdc.HealthWarning")
def test_labels_are_predictions(metric, seed, n_clusters):
    """Though they are not looked up in the fit, and with copies among the samples."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 4, (60, 3)) + rng.choice([0.0, 0.3], (60, 3))
    model = FINCH(n_clusters, metric=metric).fit(X)
    assert np.array_equal(model.predict(X), model.labels_)


def test_new_samples_join_their_nearest():
    X = np.array([[0.0, 0.0], [0.0, 1.0], [9.0, 0.0], [9.0, 1.0]])
    model = FINCH(metric="l2").fit(X)
    assert model.labels_.tolist() == [0, 0, 1, 1]
    assert model.predict([[3.0, 0.0], [6.0, 5.0]]).tolist() == [0, 1]
    assert model.predict_proba([[3.0, 0.0]]).tolist() == [[1.0, 0.0]]


def test_partitions_are_kept_in_the_file(tmp_path):
    X = make_blobs(200, 4, centers=4, random_state=1)[0]
    model = FINCH().fit(X)
    model.save(tmp_path / "model.safetensors")
    loaded = lsdc.load(tmp_path / "model.safetensors")
    assert all(np.array_equal(a, b) for a, b in zip(model.partitions_, loaded.partitions_, strict=True))
    assert (loaded.n_clusters, loaded.n_clusters_) == (None, model.n_clusters_)


def test_more_clusters_than_different_samples_are_not_there():
    X = np.repeat(np.eye(3), 20, axis=0)
    assert FINCH().fit(X).n_clusters_ == 3
    with pytest.warns(HealthWarning, match="of 9 clusters are"):
        assert count(FINCH(9).fit(X).labels_) == 3


def test_the_number_may_be_left_out_only_where_it_can_be_found():
    X = make_blobs(30, 2, random_state=0)[0]
    with pytest.raises(InputError, match="n_clusters must be a whole number"):
        lsdc.KMeans(None).fit(X)
    with pytest.raises(InputError, match="unknown metric 'cosin': did you mean 'cosine'"):
        FINCH(metric="cosin").fit(X)
    with pytest.raises(InputError, match="n_clusters=31 is more than the 30 samples"):
        FINCH(31).fit(X)
