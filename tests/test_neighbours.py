"""Neighbours in tiles, components, and the graph that JULE merges."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import lsdc.functional.candidates as candidates
import lsdc.functional.neighbours as neighbours
import lsdc.functional.similarity as similarity
from lsdc.functional import (
    cluster_affinity,
    components,
    first_neighbours,
    linked,
    merge_clusters,
    merge_score,
    n_after,
    nearest,
    nearest_among,
    sparse_affinity,
    triplet_loss,
    triplets,
)
from lsdc.functional.linkage import Clusters

seeds = given(seed=st.integers(0, 10**6))
METRICS = ("l2", "cosine")


def rng(seed=0):
    return torch.Generator().manual_seed(seed)


def features(seed, n=12, d=3):
    return torch.randn(n, d, generator=rng(seed), dtype=torch.float64)


def distance(a, b, metric):
    if metric == "l2":
        return math.dist(a, b)
    dot = sum(x * y for x, y in zip(a, b, strict=True))
    return 1 - dot / math.hypot(*a) / math.hypot(*b)


# ---- nearest neighbours -------------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("k", [1, 4])
@seeds
def test_nearest_equals_the_loop(metric, k, seed):
    f = features(seed)
    rows = f.tolist()
    found = nearest(f, k, metric)
    for i in range(12):
        order = sorted((j for j in range(12) if j != i), key=lambda j: distance(rows[i], rows[j], metric))[:k]
        assert found.indices[i].tolist() == order
        wanted = [distance(rows[i], rows[j], metric) for j in order]
        assert found.distances[i].tolist() == pytest.approx(wanted, abs=1e-7)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("k", [1, 4])
def test_tiles_are_the_dense_matrix(metric, k, monkeypatch):
    f = features(0, n=60)
    whole, queries = nearest(f, k, metric), features(1, n=30)
    other = nearest_among(queries, f, k, metric)
    some = nearest(f, k, metric, rows=torch.tensor([5, 59, 0]))
    for block in (3, 7, 64):
        monkeypatch.setattr(similarity, "BLOCK", block)
        for a, b in ((whole, nearest(f, k, metric)), (other, nearest_among(queries, f, k, metric))):
            assert torch.equal(a.indices, b.indices)
            torch.testing.assert_close(a.distances, b.distances)
    assert torch.equal(some.indices, whole.indices[[5, 59, 0]])
    dense = torch.cdist(queries, f) if metric == "l2" else 1 - torch.cosine_similarity(queries[:, None], f, dim=2)
    assert torch.equal(other.indices, dense.topk(k, largest=False).indices)


@pytest.mark.parametrize("metric", METRICS)
def test_of_equals_the_first_is_taken(metric):
    f = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    found = nearest(f, 1, metric)
    assert found.indices[:, 0].tolist() == [2, 4, 0, 0, 1]
    assert found.distances.eq(0).all()
    assert nearest_among(f, f, 1, metric).indices[:, 0].tolist() == [0, 1, 0, 0, 1]


@pytest.mark.parametrize("metric", METRICS)
@seeds
def test_copies_are_the_first_neighbours_of_each_other_whatever_the_rounding(metric, seed):
    f = features(seed, n=40, d=33).float() * 100 + 7
    f = f[torch.randint(15, (40,), generator=rng(seed))]
    first = nearest_among(f, f, 1, metric).indices[:, 0]
    assert torch.equal(f[first], f)
    assert first.unique().tolist() == [i for i in range(40) if not any(torch.equal(f[i], f[j]) for j in range(i))]


def test_small_angles_are_told_apart_in_single_precision():
    angle = torch.arange(10_000, dtype=torch.float64) * 2e-4
    f = torch.stack([angle.cos(), angle.sin()], 1).float()
    found = nearest(f, 1, "cosine")
    assert (found.indices[:, 0] - torch.arange(10_000)).abs().eq(1).all()


def test_distances_far_from_the_origin():
    f = torch.tensor([[0.0], [1.0], [3.0], [7.0]]) + 1e6
    found = nearest(f, 1)
    assert found.indices[:, 0].tolist() == [1, 0, 1, 2]
    assert found.distances[:, 0].tolist() == [1, 1, 2, 4]


def test_rows_without_a_direction_are_alike_and_unlike_all_others():
    f = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 0.0], [-1.0, 0.1]])
    found = nearest(f, 1, "cosine")
    assert found.indices[:3, 0].tolist() == [2, 0, 0]
    assert found.distances[:3, 0].tolist() == [0, 1, 0]


def clumped(n, d, kind, seed=0):
    """Rows that single precision finds easy or hard: groups, copies, tight clumps, one row far out, tiny and huge."""
    f = torch.randn(n, d, generator=rng(seed), dtype=torch.float64)
    groups = 3 * torch.randn(8, d, generator=rng(seed + 1), dtype=torch.float64)
    f = f + groups[torch.randint(8, (n,), generator=rng(seed + 2))]
    if kind == "copies":
        return f[torch.randint(n // 4, (n,), generator=rng(seed + 3))]
    if kind == "clumps":
        return groups[torch.randint(8, (n,), generator=rng(seed + 3))] + 1e-5 * f
    if kind == "outlier":
        f[n // 2] *= 1e6
    return f * {"tiny": 1e-30, "huge": 1e30, "beyond": 1e150}.get(kind, 1.0)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("k", [1, 5])
@pytest.mark.parametrize("kind", ["groups", "copies", "clumps", "outlier", "tiny", "huge", "beyond"])
def test_candidates_in_single_precision_change_nothing(kind, k, metric, monkeypatch):
    f = clumped(900, 20, kind)
    monkeypatch.setattr(candidates, "WIDE", 640)  # several tiles, the last one not of whole groups
    for own in (f, f.float()) if kind in ("groups", "copies", "outlier") else (f,):
        wanted = nearest(own, k, metric)
        with monkeypatch.context() as fewer:
            fewer.setattr(neighbours, "MANY", 1)
            found = nearest(own, k, metric)
        torch.testing.assert_close(found.distances, wanted.distances)
        if k == 1 or kind != "copies":  # of equally near ones any may be taken
            assert torch.equal(found.indices, wanted.indices)


def test_nobody_is_missing_where_candidates_are_said_to_be_complete():
    f = clumped(700, 30, "clumps")
    rough = candidates.Rough([f[:300], f[300:]])
    found = rough.candidates(f, 3, torch.arange(700))
    exact = f.square().sum(1) - 2 * f @ f.T
    exact.fill_diagonal_(torch.inf)
    assert ((found.values - exact.gather(1, found.indices)).abs() <= found.margin[:, None])[found.possible].all()
    third = exact.kthvalue(3).values
    for i in found.complete.nonzero()[:, 0].tolist():
        assert set((exact[i] <= third[i]).nonzero()[:, 0].tolist()) <= set(found.indices[i][found.possible[i]].tolist())


def test_products_that_are_rounded_further_are_noticed(monkeypatch):
    """Somebody may have asked PyTorch for half precision within single: candidates are then compared again."""
    f = clumped(900, 20, "groups").float()
    wanted = nearest(f, 5)
    monkeypatch.setattr(neighbours, "MANY", 1)
    exact = candidates.product
    monkeypatch.setattr(candidates, "product", lambda a, b, bias: exact(a.bfloat16().float(), b, bias))
    found = nearest(f, 5)
    assert torch.equal(found.indices, wanted.indices)
    torch.testing.assert_close(found.distances, wanted.distances)


@given(seed=st.integers(0, 10**6), width=st.integers(1, 700), m=st.integers(1, 9))
def test_the_smallest_values_of_rows(seed, width, m):
    values = torch.randn(3, width, generator=rng(seed))
    found, at = candidates.smallest(values, m)
    assert torch.equal(values.gather(1, at), found)
    assert torch.equal(found.sort(1).values, values.sort(1).values[:, :m])


def test_the_product_is_a_matrix_product():
    a, b, bias = (torch.randn(shape, generator=rng(i)) for i, shape in enumerate([(37, 11), (53, 11), (53,)]))
    torch.testing.assert_close(candidates.product(a, b, bias), a @ b.T + bias)


def test_what_cannot_be_asked_for():
    f = features(0)
    for k in (0, 12):
        with pytest.raises(ValueError, match="k must be between 1 and"):
            nearest(f, k)
    with pytest.raises(ValueError, match="k must be between 1 and the 12 rows"):
        nearest_among(f, f, 13)
    with pytest.raises(ValueError, match="metric must be one of cosine, l2, got 'l1'"):
        nearest(f, 1, "l1")
    assert nearest(f.float().half(), 2).distances.dtype == torch.float32
    assert not nearest(f.requires_grad_(), 1).distances.requires_grad


# ---- components ---------------------------------------------------------------------------------------------


def test_components_by_hand():
    links = torch.tensor([[5, 3, 1], [3, 0, 4]])
    assert components(links, 7).tolist() == [0, 1, 2, 0, 1, 0, 3]
    assert components(torch.empty(2, 0, dtype=torch.long), 3).tolist() == [0, 1, 2]


@given(seed=st.integers(0, 10**6), n=st.integers(1, 40), n_links=st.integers(0, 60))
def test_components_equal_a_walk(seed, n, n_links):
    links = torch.randint(n, (2, n_links), generator=rng(seed))
    label = list(range(n))
    for _ in range(n):
        for a, b in links.T.tolist():
            label[a] = label[b] = min(label[a], label[b])
    order = sorted(set(label))
    assert components(links, n).tolist() == [order.index(v) for v in label]


def test_long_chains_are_one_component():
    order = torch.randperm(5000, generator=rng())
    assert components(torch.stack([order[:-1], order[1:]]), 5000).eq(0).all()


# ---- JULE ---------------------------------------------------------------------------------------------------


def literal_affinity(W, labels, a, b):
    """Equation 2 with submatrices: 1'W_ab W_ba 1 / |a|^2 + 1'W_ba W_ab 1 / |b|^2."""
    A, B = labels == a, labels == b
    ab, ba = W[A][:, B], W[B][:, A]
    return float((ab @ ba).sum() / A.sum() ** 2 + (ba @ ab).sum() / B.sum() ** 2)


def literal_merge(W, labels, n_clusters, k):
    """One merge after the other, everything computed anew."""
    labels = labels.clone()
    while len(ids := labels.unique().tolist()) > n_clusters:
        best = None
        for a in ids:
            others = sorted(((literal_affinity(W, labels, a, b), b) for b in ids if b != a), reverse=True)[:k]
            values = [value for value, _ in others] + [0.0] * (k - len(others))
            score = values[0] + sum(values[0] - v for v in values[1:]) / (k - 1)
            if best is None or score > best[0]:
                best = (score, a, others[0][1])
        labels[labels == best[2]] = best[1]
    return labels


def same_partition(a, b):
    pairs = set(zip(a.tolist(), b.tolist(), strict=True))
    return len(pairs) == len(a.unique()) == len(b.unique())


def test_sparse_affinity_by_hand():
    W = sparse_affinity(torch.tensor([[0.0], [1.0], [3.0]]), k=1).to_dense()
    s2 = (1 + 1 + 4) / 3
    wanted = torch.zeros(3, 3)
    wanted[0, 1] = wanted[1, 0] = math.exp(-1 / s2)
    wanted[2, 1] = math.exp(-4 / s2)
    torch.testing.assert_close(W, wanted)


@seeds
def test_sparse_affinity_has_k_links_a_row(seed):
    W = sparse_affinity(features(seed), k=4).to_dense()
    assert ((W > 0).sum(1) == 4).all()
    assert W.diagonal().eq(0).all()
    assert torch.equal((W > 0).nonzero()[:, 1].view(12, 4), nearest(features(seed), 4).indices.sort(1).values)
    assert sparse_affinity(features(seed)[:5]).to_dense().gt(0).sum() == 20  # fewer samples than neighbours


@seeds
def test_cluster_affinity_equals_the_submatrices(seed):
    W, labels = sparse_affinity(features(seed, n=20), k=5), torch.randint(4, (20,), generator=rng(seed))
    labels[:4] = torch.arange(4)
    A = cluster_affinity(W, labels).to_dense()
    for a in range(4):
        for b in range(4):
            wanted = literal_affinity(W.to_dense(), labels, a, b) if a != b else 0.0
            assert float(A[a, b]) == pytest.approx(wanted, abs=1e-12)


def test_merging_by_hand():
    """Four samples: 0 and 1 hold on to each other most, then 2 and 3; 1 and 2 less."""
    W = torch.zeros(4, 4)
    for i, j, w in ((0, 1, 0.9), (2, 3, 0.8), (1, 2, 0.3)):
        W[i, j] = W[j, i] = w
    A = cluster_affinity(W.to_sparse_coo().coalesce(), torch.arange(4)).to_dense()
    assert float(A[0, 1]) == pytest.approx(2 * 0.81)  # .9^2, from both sides
    assert merge_score({1: 1.62, 2: 0.0}, k=2) == pytest.approx(2 * 1.62)
    assert merge_score({0: 1.62, 2: 0.18}, k=2) == pytest.approx(2 * 1.62 - 0.18)
    assert merge_score({0: 1.62, 2: 0.18}, k=1) == pytest.approx(1.62)
    W = W.to_sparse_coo().coalesce()
    assert merge_clusters(W, torch.arange(4), 3).tolist() == [0, 0, 1, 2]
    assert merge_clusters(W, torch.arange(4), 2).tolist() == [0, 0, 1, 1]
    assert merge_clusters(W, torch.arange(4), 1).tolist() == [0, 0, 0, 0]
    assert merge_clusters(W, torch.arange(4), 4).tolist() == [0, 1, 2, 3]


def test_links_one_way_only_do_not_merge():
    W = torch.zeros(4, 4)
    W[0, 1] = 1.0  # 0 looks at 1, and 1 at nobody
    W[2, 3] = W[3, 2] = 0.1
    assert merge_clusters(W.to_sparse_coo().coalesce(), torch.arange(4), 3).tolist() == [0, 1, 2, 2]
    # nothing else is linked: the two smallest go together
    assert merge_clusters(W.to_sparse_coo().coalesce(), torch.arange(4), 2).tolist() == [0, 0, 1, 1]


def test_small_clusters_go_first_to_where_they_link():
    """Two pairs and an outlier, 4, that looks at 3 and at which nobody looks; the pairs look at each other a little."""
    W = torch.zeros(5, 5)
    for i, j, w in ((0, 1, 0.9), (2, 3, 0.9), (1, 2, 0.1)):
        W[i, j] = W[j, i] = w
    W[4, 3] = 0.05
    W, labels = W.to_sparse_coo().coalesce(), torch.tensor([0, 0, 1, 1, 2])
    assert merge_clusters(W, labels, 2).tolist() == [0, 0, 0, 0, 1]  # by affinity alone the outlier stays to the end
    assert merge_clusters(W, labels, 2, least=2).tolist() == [0, 0, 1, 1, 1]
    assert merge_clusters(W, labels, 1, least=2).tolist() == [0, 0, 0, 0, 0]
    assert merge_clusters(W, labels, 3, least=2).tolist() == [0, 0, 1, 1, 2]  # no more are merged than asked for
    islands = torch.zeros(3, 3).to_sparse_coo().coalesce()
    assert merge_clusters(islands, torch.arange(3), 2, least=9).tolist() == [0, 0, 1]  # without links: the smallest two


@given(seed=st.integers(0, 10**6), k=st.integers(2, 5), n_clusters=st.integers(1, 8))
def test_merging_equals_computing_everything_anew(seed, k, n_clusters):
    f = features(seed, n=24)
    W, start = sparse_affinity(f, k=8), linked(first_neighbours(f, "l2").indices)
    n_clusters = min(n_clusters, int(start.max()) + 1)
    assert same_partition(merge_clusters(W, start, n_clusters, k), literal_merge(W.to_dense(), start, n_clusters, k))


@seeds
def test_affinities_are_kept_up_to_date(seed):
    W, labels = sparse_affinity(features(seed, n=24), k=8), torch.arange(24) // 2
    clusters = Clusters(W, labels.tolist(), k=3)
    while len(clusters.members) > 2:
        clusters.merge(*clusters.best_pair())
        A = cluster_affinity(W, torch.tensor(clusters.label)).to_dense()
        for c, row in clusters.affinity.items():
            wanted = {d: value for d, value in enumerate(A[c].tolist()) if value > 0}
            assert row == pytest.approx(wanted, rel=1e-9)


def test_merging_does_not_change_its_input_and_finds_blobs():
    f = torch.cat([features(c, n=40) + 20 * c for c in range(3)])
    start = linked(first_neighbours(f, "l2").indices)
    before = start.clone()
    labels = merge_clusters(sparse_affinity(f), start, 3)
    assert torch.equal(start, before)
    assert labels.view(3, 40).eq(torch.arange(3)[:, None]).all()


def test_periods_merge_nine_tenths_away():
    assert [n_after(1000, 10), n_after(100, 10), n_after(17, 10), n_after(15, 1)] == [100, 10, 10, 1]
    assert n_after(10, 10) == 10


def test_triplet_loss_by_hand():
    anchor, positive = torch.tensor([[0.0], [1.0]]), torch.tensor([[1.0], [1.0]])
    negatives = torch.tensor([[[2.0], [1.0]], [[0.0], [1.1]]])
    # 1 - 4 + .2 < 0, 1 - 1 + .2; 0 - 1 + .2 < 0, 0 - .01 + .2
    assert float(triplet_loss(anchor, positive, negatives)) == pytest.approx((0.2 + 0.19) / 4)
    assert float(triplet_loss(anchor, positive, negatives, margin=0.0)) == pytest.approx(0)
    nothing = triplet_loss(anchor[:0], positive[:0], negatives[:0])
    assert float(nothing) == 0


@seeds
def test_triplet_loss_equals_the_loop(seed):
    a, p, n = features(seed, 4), features(seed + 1, 4), features(seed + 2, 20).view(4, 5, 3)
    total = sum(
        max(0.0, math.dist(a[i], p[i]) ** 2 - math.dist(a[i], n[i, j]) ** 2 + 0.2) for i in range(4) for j in range(5)
    )
    assert float(triplet_loss(a, p, n)) == pytest.approx(total / 20)


@seeds
def test_triplets_are_what_they_say(seed):
    labels = torch.randint(4, (15,), generator=rng(seed))
    anchors, positives, negatives = triplets(labels, 20, rng(seed))
    assert torch.equal(labels[anchors], labels[positives])
    assert (anchors != positives).all()
    assert (labels[negatives] != labels[anchors, None]).all()
    assert negatives.shape == (len(anchors), 20)
    counts = labels.bincount()
    assert anchors.tolist() == [i for i in range(15) if 1 < counts[labels[i]] < 15]


@pytest.mark.parametrize("labels", [[0, 1, 2], [0, 0, 0]])
def test_without_pairs_or_without_others_there_are_no_triplets(labels):
    anchors, positives, negatives = triplets(torch.tensor(labels), 5, rng())
    assert (len(anchors), len(positives), negatives.shape) == (0, 0, (0, 5))
