"""Section 3.2: laws of the pairwise labels, and literal loops over the formulas."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import lsdc.functional.similarity as module
from lsdc.functional import SCORES, SIMILARITIES, closest, cosine, knn, l2, sne
from lsdc.functional.similarity import sne_scores

OPTIONS = {
    "l2": {"tau": 3.0},
    "cosine": {"tau": 0.3},
    "sne": {"tau": 0.08, "temperature": 1.2},
    "knn": {"k": 3},
}
every_similarity = pytest.mark.parametrize("name", SIMILARITIES)


def features(seed, n=12, d=4):
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def connected_l2(f, i, j, tau):
    return sum((a - b) ** 2 for a, b in zip(f[i], f[j], strict=True)) < tau


def connected_cosine(f, i, j, tau):
    dot = sum(a * b for a, b in zip(f[i], f[j], strict=True))
    return dot / math.sqrt(sum(a * a for a in f[i]) * sum(b * b for b in f[j])) > tau


def squared(f, i, j):
    return sum((a - b) ** 2 for a, b in zip(f[i], f[j], strict=True))


def connected_sne(f, i, j, tau, temperature):
    def p(j, i):
        z = sum(math.exp(-squared(f, k, i) / temperature**2) for k in range(len(f)) if k != i)
        return math.exp(-squared(f, j, i) / temperature**2) / z

    return (p(j, i) + p(i, j)) / 2 > tau


def connected_knn(f, i, j, k):
    def near(i):
        return sorted((other for other in range(len(f)) if other != i), key=lambda other: squared(f, i, other))[:k]

    return j in near(i) or i in near(j)


LOOPS = {
    "l2": connected_l2,
    "cosine": connected_cosine,
    "sne": connected_sne,
    "knn": connected_knn,
}


def test_every_similarity_has_a_loop_and_options():
    assert SIMILARITIES.keys() == LOOPS.keys() == OPTIONS.keys()


@every_similarity
@pytest.mark.parametrize("seed", range(3))
def test_equals_the_loop_over_the_formula(name, seed):
    f = features(seed)
    rows = f.tolist()
    pairs = [(i, j) for i in range(len(f)) for j in range(i + 1, len(f))]
    A = SIMILARITIES[name](f, **OPTIONS[name])
    for i, j in pairs:
        assert bool(A[i, j]) == LOOPS[name](rows, i, j, **OPTIONS[name]), (i, j)


@every_similarity
@given(seed=st.integers(0, 10**6))
def test_symmetric_reflexive_and_binary(name, seed):
    A = SIMILARITIES[name](features(seed), **OPTIONS[name])
    assert torch.equal(A, A.T)
    assert A.diagonal().eq(1).all()
    assert set(A.unique().tolist()) <= {0.0, 1.0}


@every_similarity
@given(seed=st.integers(0, 10**6))
def test_permuting_samples_permutes_the_graph(name, seed):
    f = features(seed)
    order = torch.randperm(len(f), generator=torch.Generator().manual_seed(seed))
    A = SIMILARITIES[name](f, **OPTIONS[name])
    assert torch.equal(SIMILARITIES[name](f[order], **OPTIONS[name]), A[order][:, order])


@every_similarity
def test_blocks_of_rows_change_nothing(name, monkeypatch):
    f = features(3, n=50)
    whole = SIMILARITIES[name](f, **OPTIONS[name])
    monkeypatch.setattr(module, "BLOCK", 7)
    assert torch.equal(SIMILARITIES[name](f, **OPTIONS[name]), whole)


@every_similarity
def test_no_gradient_reaches_the_features(name):
    f = features(0).requires_grad_()
    assert not SIMILARITIES[name](f, **OPTIONS[name]).requires_grad


@every_similarity
def test_keeps_the_dtype_of_single_precision(name):
    assert SIMILARITIES[name](features(0).float(), **OPTIONS[name]).dtype == torch.float32


@given(seed=st.integers(0, 10**6), low=st.floats(0.1, 5), more=st.floats(0, 5))
def test_a_looser_threshold_only_adds_edges(seed, low, more):
    f = features(seed)
    assert (l2(f, low) <= l2(f, low + more)).all()
    assert (cosine(f, low / 5) >= cosine(f, (low + more) / 5)).all()
    assert (sne(f, low / 50) >= sne(f, (low + more) / 50)).all()


@given(seed=st.integers(0, 10**6), k=st.integers(1, 10))
def test_a_larger_k_only_adds_edges(seed, k):
    f = features(seed)
    assert (knn(f, k) <= knn(f, k + 1)).all()
    assert knn(f, k).sum(1).min() >= k + 1  # k others and itself


@given(seed=st.integers(0, 10**6), shift=st.floats(-1e3, 1e3))
def test_distances_do_not_depend_on_the_origin(seed, shift):
    f = features(seed).float()
    assert torch.equal(knn(f, 3), knn(f + shift, 3)) or abs(shift) > 100  # beyond that float32 itself moves points
    assert torch.equal(knn(f.double(), 3), knn(f.double() + shift, 3))


def test_some_rows_are_those_of_all():
    f = features(4, n=60)
    assert torch.equal(knn(f, 9)[:25, :25], knn(f, 9, rows=25))


def test_all_k_connects_everything():
    assert knn(features(0), 11).eq(1).all()


@pytest.mark.parametrize("k", [0, -1, 12, 100])
def test_k_must_leave_room(k):
    with pytest.raises(ValueError, match=r"k must be between 1 and N - 1 = 11"):
        knn(features(0), k)


@every_similarity
def test_features_must_be_a_matrix(name):
    with pytest.raises(ValueError, match="two dimensions"):
        SIMILARITIES[name](torch.randn(5), **OPTIONS[name])


def test_one_sample_is_connected_to_itself():
    for A in (l2(torch.ones(1, 3), 1.0), cosine(torch.ones(1, 3), 0.5), sne(torch.ones(1, 3), 0.1)):
        assert A.tolist() == [[1.0]]


def test_far_away_points_do_not_underflow():
    f = torch.tensor([[0.0], [1e4], [1e4 + 1]])
    assert sne(f, 0.4).tolist() == [[1, 1, 0], [1, 1, 1], [0, 1, 1]]  # the nearest of 0 is 1e4, however far


def test_zero_vectors_have_no_direction():
    f = torch.zeros(3, 2)
    f[0, 0] = 1
    assert torch.equal(cosine(f, 0.5), torch.eye(3))


@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize("n_pairs", [1, 7, 30, 66])
def test_closest_connects_that_many_pairs_and_the_best_ones(name, n_pairs):
    scores = SCORES[name](features(3))
    A = closest(scores, n_pairs)
    pairs = [(i, j) for i in range(12) for j in range(i)]
    best = sorted(pairs, key=lambda pair: -scores[pair])[:n_pairs]
    assert {pair for pair in pairs if A[pair]} == set(best)
    assert (A == A.T).all()
    assert (A.diagonal() == 1).all()


@pytest.mark.parametrize("name", SCORES)
def test_a_threshold_between_two_scores_gives_the_closest_pairs(name):
    f = features(4)
    scores = SCORES[name](f)
    ordered = scores[torch.tril(torch.ones(12, 12), -1) > 0].sort(descending=True).values
    tau = {"l2": lambda s: -s, "cosine": lambda s: s, "sne": math.exp}[name](float(ordered[19:21].mean()))
    assert (SIMILARITIES[name](f, tau=tau) == closest(scores, 20)).all()


def test_far_samples_have_different_sne_scores_where_their_probabilities_are_zero():
    f = torch.tensor([[0.0], [1.0], [50.0], [80.0]])
    scores = sne_scores(f)
    assert math.exp(float(scores[0, 3])) == 0.0
    assert scores[0, 2] > scores[0, 3] > -torch.inf


@pytest.mark.parametrize("n_pairs", [0, 67])
def test_closest_refuses_what_is_not_there(n_pairs):
    with pytest.raises(ValueError, match="between 1 and"):
        closest(SCORES["l2"](features(3)), n_pairs)
