"""Section 4, evaluation metrics."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from lsdc.metrics import ari, cluster_sizes, clustering_accuracy, confident_accuracy, confusion, contingency, nmi, score

labelings = st.integers(1, 30).flatmap(
    lambda n: st.tuples(*(st.lists(st.integers(0, 4), min_size=n, max_size=n) for _ in range(2)))
)


@given(labelings)
def test_accuracy_equals_brute_force(pair):
    y, labels = pair
    classes, clusters = sorted(set(y)), sorted(set(labels))
    size = max(len(classes), len(clusters))
    targets = classes + [None] * (size - len(classes))
    best = 0
    for order in itertools.permutations(targets, len(clusters)):
        relabelled = dict(zip(clusters, order, strict=True))
        best = max(best, sum(relabelled[c] == k for k, c in zip(y, labels, strict=True)))
    assert clustering_accuracy(y, labels) == pytest.approx(best / len(y))


@given(labelings)
def test_nmi_and_ari_equal_scikit_learn(pair):
    y, labels = pair
    assert nmi(y, labels) == pytest.approx(normalized_mutual_info_score(y, labels), abs=1e-9)
    assert ari(y, labels) == pytest.approx(adjusted_rand_score(y, labels), abs=1e-9)


@given(labelings, st.permutations(range(5)))
def test_names_do_not_matter(pair, names):
    y, labels = pair
    renamed = [f"cluster {names[c]}" for c in labels]
    for metric in (clustering_accuracy, nmi, ari):
        assert metric(y, renamed) == pytest.approx(metric(y, labels))


def test_any_hashable_labels():
    assert clustering_accuracy(["a", None, (1, 2), "a"], [3.5, "x", "y", 3.5]) == 1.0
    assert clustering_accuracy(np.array(["a", "b"]), np.array([1, 0])) == 1.0


def test_tensors_are_labels_too():
    assert clustering_accuracy(torch.tensor([0, 0, 1, 1]), torch.tensor([0, 1, 0, 1])) == 0.5


def test_more_clusters_than_classes_and_fewer():
    assert clustering_accuracy([0, 0, 0, 0], [0, 1, 2, 3]) == 0.25
    assert clustering_accuracy([0, 1, 2, 3], [0, 0, 0, 0]) == 0.25


def test_contingency_counts():
    assert contingency([0, 0, 1, 1], ["x", "y", "y", "y"]).tolist() == [[1, 1], [0, 2]]


def test_confident_samples_use_the_matching_of_all():
    y = [0, 0, 0, 1, 1, 1]
    labels = [0, 0, 0, 1, 1, 0]
    assert confident_accuracy(y, labels, [0.95, 0.95, 0.5, 0.95, 0.2, 0.95]) == (4 / 6, 3 / 4)
    share, accuracy = confident_accuracy(y, labels, [0.1] * 6)
    assert share == 0
    assert np.isnan(accuracy)


def test_score_holds_all_figures():
    assert score([0, 1, 1], [1, 0, 0], [0.95, 0.95, 0.3])[:4] == (1.0, 1.0, 1.0, 2 / 3)


def test_empty_clusters_are_counted():
    assert cluster_sizes([0, 2, 2], 4).tolist() == [1, 0, 2, 0]


def test_lengths_must_agree():
    with pytest.raises(ValueError, match="same length"):
        clustering_accuracy([0, 1], [0])
    with pytest.raises(ValueError, match="empty"):
        clustering_accuracy([], [])


def test_confusion_puts_what_is_right_on_the_diagonal():
    y, labels = [0, 0, 0, 1, 1, 2], [2, 2, 1, 0, 0, 1]
    # by hand: cluster 2 is class 0, cluster 0 class 1, cluster 1 class 2; one sample of class 0 is in cluster 1
    assert confusion(y, labels, [True] * 6).tolist() == [[2, 0, 1], [0, 2, 0], [0, 0, 1]]
    assert confusion(y, labels, [False, True, True, True, False, False]).tolist() == [[1, 0, 1], [0, 1, 0], [0, 0, 0]]


def test_confusion_has_a_column_for_every_cluster():
    assert confusion([0, 1, 1], [0, 1, 2], [True] * 3).tolist() == [[1, 0, 0], [0, 1, 1]]
