"""FINCH: clusters by first neighbours (Sarfraz, Sharma, Stiefelhagen 2019). No parameters, a whole hierarchy."""

from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor

from lsdc.functional.neighbours import Neighbours, components, nearest, nearest_among


class Partition(NamedTuple):
    """One level: the cluster of each sample, and the mean distance between the first neighbours it joined."""

    labels: Tensor
    gap: float


def first_neighbours(f: Tensor, metric: str = "cosine") -> Neighbours:
    """kappa_i, the nearest other sample of each, and its distance (N,)."""
    kappa, distances = nearest(f, 1, metric)
    return Neighbours(kappa[:, 0], distances[:, 0])


def linked(kappa: Tensor) -> Tensor:
    """Connected components of A_ij = [j = kappa_i, or i = kappa_j, or kappa_i = kappa_j] (equation 1).

    The third kind of link adds nothing: both samples are linked with the neighbour they share.
    """
    return components(torch.stack([torch.arange(len(kappa), device=kappa.device), kappa]), len(kappa))


def cluster_means(f: Tensor, labels: Tensor) -> Tensor:
    """The mean of each cluster (C, D), in double precision, which sums over many samples need."""
    sizes = labels.bincount()
    sums = torch.zeros(len(sizes), f.shape[1], dtype=torch.float64, device=f.device)
    return sums.index_add_(0, labels, f.double()) / sizes[:, None]


@torch.no_grad()
def finch_partitions(f: Tensor, metric: str = "cosine") -> list[Partition]:
    """All partitions, the finest first, the last a single cluster (algorithm 1): clusters become their means."""
    labels, means = torch.arange(len(f), device=f.device), f
    partitions: list[Partition] = []
    while len(means) > 1:
        kappa, distances = first_neighbours(means, metric)
        labels = linked(kappa)[labels]
        means = cluster_means(f, labels)
        partitions.append(Partition(labels, float(distances.mean())))
    return partitions


def natural(partitions: list[Partition]) -> int:
    """Which partition to choose by default: the one after which merging would have to reach farthest.

    That is the largest ratio between the mean first-neighbour distance of its clusters and of those it was made of
    (the paper leaves the choice to the reader). A single cluster is taken only if there is no other.
    """
    ratios = [after.gap / before.gap if before.gap else float("inf") for before, after in pairwise(partitions)]
    return ratios.index(max(ratios)) if ratios else 0


@torch.no_grad()
def merge_closest(f: Tensor, labels: Tensor, n_clusters: int, metric: str = "cosine") -> Tensor:
    """Merge the two clusters with the closest means, one pair at a time, until ``n_clusters`` are left.

    Every cluster remembers its nearest; after a merge only those whose nearest was one of the two search again. With
    many clusters, a matrix of all pairs would be too large.
    """
    means, sizes = cluster_means(f, labels), labels.bincount().double()
    if len(means) <= n_clusters:
        return labels
    near, gap = first_neighbours(means, metric)
    into = torch.arange(len(means), device=f.device)
    while len(means) > n_clusters:
        i = int(gap.argmin())
        i, j = sorted((i, int(near[i])))
        means[i] = (sizes[i] * means[i] + sizes[j] * means[j]) / (sizes[i] + sizes[j])
        sizes[i] += sizes[j]
        into[into == j] = i
        into -= (into > j).long()
        stale = (near == i) | (near == j)
        stale[i] = True
        keep = torch.arange(len(means), device=f.device) != j
        means, sizes, near, gap, stale = (values[keep] for values in (means, sizes, near, gap, stale))
        near = near - (near > j).long()
        if len(means) > 1:
            _look_again(means, near, gap, stale, i, metric)
    return into[labels]


def _look_again(means: Tensor, near: Tensor, gap: Tensor, stale: Tensor, moved: int, metric: str) -> None:
    """Update the nearest clusters in place after one moved: stale ones search again, the others check it."""
    towards = nearest_among(means, means[moved : moved + 1], 1, metric).distances[:, 0]
    closer = (towards < gap) & ~stale
    near[closer], gap[closer] = moved, towards[closer]
    rows = stale.nonzero()[:, 0]
    found = nearest(means, 1, metric, rows)
    near[rows], gap[rows] = found.indices[:, 0], found.distances[:, 0]


def cut(f: Tensor, partitions: list[Partition], n_clusters: int, metric: str = "cosine") -> Tensor:
    """Exactly ``n_clusters``: the coarsest partition with at least as many, merged further (algorithm 2).

    If the first partition has fewer, merging starts from the single samples.
    """
    labels = torch.arange(len(f), device=f.device)
    for partition in partitions:
        if int(partition.labels.max()) + 1 >= n_clusters:
            labels = partition.labels
    return merge_closest(f, labels, n_clusters, metric)
