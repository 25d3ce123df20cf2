"""Joining two clusters and dividing a third: cases whose answer is known."""

import pytest
import torch

from lsdc.functional import graph_information, nearest, rearranged
from lsdc.functional.graph import joint_information
from lsdc.functional.rearrangement import halves
from lsdc.methods.graph import Fixed, clusters, means, rearrange, towards
from lsdc.metrics import clustering_accuracy
from lsdc.nn.classifiers import Classifiers


def points():
    """Five groups of 60 points, far apart."""
    truth = torch.arange(5).repeat_interleave(60)
    return truth, 8.0 * torch.eye(5)[truth] + torch.randn(300, 5, generator=torch.Generator().manual_seed(0))


@pytest.fixture(scope="module")
def groups():
    """Groups, and the graph of their neighbours."""
    truth, x = points()
    return truth, nearest(x, 5, "l2").indices


def test_a_halved_group_is_made_whole_and_joined_groups_are_parted(groups):
    truth, neighbours = groups
    wrong = truth.clone()
    wrong[truth == 4] = 3  # two groups share a cluster
    wrong[:30] = 4  # and a third has two
    assert clustering_accuracy(truth.numpy(), wrong.numpy()) == pytest.approx(0.7)
    found = rearranged(neighbours, wrong, 5, steps=3, price=0.2)
    assert clustering_accuracy(truth.numpy(), found.numpy()) == 1


def test_a_moved_partition_is_trained_beside_the_one_it_came_from():
    truth, x = points()
    f = x - x.mean(0)
    fixed = Fixed(f, nearest(x, 5, "l2").indices)
    wrong = truth.clone()
    wrong[truth == 4] = 3
    wrong[x[:, 0] > x[truth == 0, 0].median()] = 4  # a linear cut
    given, right = (
        Classifiers(towards(means(f, one, 5)).repeat(2, 1, 1), forms=((0.6, 1.0), (1.0, 1.0))) for one in (wrong, truth)
    )
    given.bias.data.fill_(0.25)
    found = rearrange(given, fixed)
    assert torch.equal(found.weight[:2], given.weight)
    assert torch.equal(found.bias[:2], given.bias)
    assert [clustering_accuracy(truth.numpy(), one.numpy()) for one in clusters(found, f)[2:]] == [1, 1]
    assert rearrange(right, fixed) is right


def test_what_cannot_be_bettered_stays(groups):
    truth, neighbours = groups
    assert rearranged(neighbours, truth, 5, steps=3, price=0.2).equal(truth)


@pytest.mark.parametrize("n_clusters", [1, 2])
def test_there_is_nothing_to_move_between_two_clusters(groups, n_clusters):
    truth, neighbours = groups
    labels = truth % n_clusters
    assert rearranged(neighbours, labels, n_clusters, steps=3, price=0.2).equal(labels)


def test_empty_clusters_do_no_harm(groups):
    truth, neighbours = groups
    found = rearranged(neighbours, truth.clamp(max=3), 7, steps=3, price=0.2)
    assert found.min() >= 0
    assert found.max() < 7
    before, after = (graph_information(neighbours, labels, 7, 3) for labels in (truth.clamp(max=3), found))
    assert after > before  # the two that share a cluster are parted, into one that was empty


def test_a_cluster_of_two_groups_is_cut_between_them(groups):
    truth, neighbours = groups
    half = halves(neighbours, (truth > 2).long(), 2)[truth > 2]
    assert half[:60].unique().numel() == half[60:].unique().numel() == 1
    assert half[0] != half[-1]


def test_information_less_its_price_by_hand():
    joint = torch.tensor([[0.5, 0.0], [0.0, 0.5]], dtype=torch.double)  # walks stay: one bit is known of the other end
    assert joint_information(joint, 0.0).item() == pytest.approx(0.6931471806)
    assert joint_information(joint, 0.5).item() == pytest.approx(0.6931471806 / 2)
