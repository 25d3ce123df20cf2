"""Pairs from a neighbour graph of all samples, and how likely predictions make them (not in the paper: decision 70)."""

import torch
from torch import Tensor

from lsdc.functional.losses import EPS, at_least_single


@torch.no_grad()
def walk(neighbours: Tensor, start: Tensor, u: Tensor) -> Tensor:
    """Where random walks from ``start`` end: ``neighbours`` (n, k) are the links, ``u`` (N, 1 + most) in [0, 1).

    The first column of ``u`` chooses a length of 1 to ``most`` steps, each other one the neighbour to step to. Near
    samples are reached most often; those a few steps away fill the gaps that k neighbours leave.
    """
    most, k = u.shape[1] - 1, neighbours.shape[1]
    length = 1 + (u[:, 0] * most).long()
    end = start
    for step in range(most):
        choice = (u[:, step + 1] * k).long().clamp(max=k - 1)
        end = torch.where(step < length, neighbours[end, choice], end)
    return end


def pair_likelihood(p: Tensor, q: Tensor, mean: Tensor, power: float | Tensor = 1.0, wrong: float = 0.0) -> Tensor:
    """Logarithm of wrong + (1 - wrong) sum_c (p_ic q_ic)^power / mean_c of each pair (..., N, K); larger is better.

    With power 1 the sum is how much likelier two predictions are to share a cluster than two at random, for which it is
    1 on average: a share ``wrong`` of the pairs is taken to be at random, and the others learn undisturbed by them.
    Dividing by the mean prediction rewards rare clusters, so that none has to be kept alive by force; a power below 1
    leaves room for doubt.
    """
    p, q = at_least_single(p), at_least_single(q)
    ratio = ((p * q + EPS**2).pow(power) / (mean + EPS)).sum(-1)
    return (wrong + (1 - wrong) * ratio).log()


@torch.no_grad()
def walk_joint(neighbours: Tensor, labels: Tensor, n_clusters: int, steps: int = 1) -> Tensor:
    """How often random walks begin in one cluster and end in another (K, K), both ways alike; all of it sums to 1."""
    start = torch.nn.functional.one_hot(labels, n_clusters).double()
    end = start
    for _ in range(steps):  # the share of walks that are in each cluster by now
        end = sum((end[column] for column in neighbours.T), torch.zeros_like(end)) / neighbours.shape[1]
    joint = start.T @ end / len(labels)
    return (joint + joint.T) / 2


@torch.no_grad()
def views_joint(labels: Tensor, n_clusters: int) -> Tensor:
    """How often one view of a sample is in one cluster and another view in another (K, K), for ``labels`` (V, n)."""
    n_views = len(labels)
    pairs = [labels[a] * n_clusters + labels[b] for a in range(n_views) for b in range(n_views) if a != b]
    counts = torch.bincount(torch.cat(pairs), minlength=n_clusters**2).double()
    return counts.view(n_clusters, n_clusters) / counts.sum()


@torch.no_grad()
def graph_information(neighbours: Tensor, labels: Tensor, n_clusters: int, steps: int = 1) -> Tensor:
    """The mutual information between the clusters at both ends of a random walk, in nats: H(c) - H(c | c').

    How well clusters explain the graph: high if walks stay in their cluster and there are many clusters to stay in.
    """
    return joint_information(walk_joint(neighbours, labels, n_clusters, steps))


def joint_information(joint: Tensor, price: float = 0.0) -> Tensor:
    """The mutual information of two clusters by how often they occur together (K, K), less ``price`` of the entropy."""
    of_one: Tensor = torch.special.entr(joint.sum(1)).sum()
    of_two: Tensor = torch.special.entr(joint).sum()
    return (2 - price) * of_one - of_two
