"""JULE: joint unsupervised learning of representations and clusters (Yang, Parikh, Batra 2016).

A period merges clusters by the affinity of a neighbour graph, then trains the features with triplets of the clusters:
``W = sparse_affinity(f)``; ``labels = merge_clusters(W, labels, n_after(now, target))``;
``a, p, n = triplets(labels[batch], 20, rng)``; ``triplet_loss(f[a], f[p], f[n])``.
The first clusters are those of first neighbours: ``linked(first_neighbours(f, "l2").indices)``.
"""

import math

import torch
from torch import Tensor

from lsdc.functional.neighbours import nearest


def _sparse(rows: Tensor, columns: Tensor, values: Tensor, shape: tuple[int, int]) -> Tensor:
    """A sparse matrix; duplicate entries are summed, and the indices need no checking as they are our own."""
    return torch.sparse_coo_tensor(torch.stack([rows, columns]), values, shape, check_invariants=False).coalesce()


@torch.no_grad()
def sparse_affinity(f: Tensor, k: int = 20) -> Tensor:
    """W_ij = exp(-|f_i - f_j|^2 / s^2) for the k neighbours j of i, s^2 their mean squared distance (equation 1)."""
    indices, distances = nearest(f, min(k, len(f) - 1), "l2")
    square = distances.square()
    w = (-square / square.mean().clamp(min=torch.finfo(f.dtype).tiny)).exp()
    rows = torch.arange(len(f), device=f.device)[:, None].expand_as(indices)
    return _sparse(rows.flatten(), indices.flatten(), w.flatten(), (len(f), len(f)))


@torch.no_grad()
def cluster_affinity(W: Tensor, labels: Tensor) -> Tensor:
    """A(C_i, C_j) = 1'W_ij W_ji 1 / |C_i|^2 + 1'W_ji W_ij 1 / |C_j|^2, sparse, without a diagonal (equation 2).

    The first product is, over the samples of C_j, the weight of links from C_i times the weight of links to C_i: graph
    degree linkage counts what goes both ways.
    """
    sizes = labels.bincount()
    n, c = len(labels), len(sizes)
    rows, columns = W.indices()
    apart = labels[rows] != labels[columns]
    rows, columns, w = rows[apart], columns[apart], W.values()[apart]
    both_ways = (_sparse(columns, labels[rows], w, (n, c)) * _sparse(rows, labels[columns], w, (n, c))).coalesce()
    sample, cluster = both_ways.indices()
    one = both_ways.values() / sizes[cluster].square()
    other = labels[sample]
    return _sparse(torch.cat([cluster, other]), torch.cat([other, cluster]), torch.cat([one, one]), (c, c))


def n_after(now: int, target: int, rate: float = 0.9) -> int:
    """How many clusters a period leaves; the unrolling rate is the share that is merged away."""
    return max(target, now - math.ceil(rate * now))


def companions(labels: Tensor, indices: Tensor, rng: torch.Generator) -> Tensor:
    """A random other member of each sample's cluster, or itself if it is alone, so that batches have positives."""
    order = labels.argsort(stable=True)
    place = torch.empty_like(order)
    place[order] = torch.arange(len(order), device=order.device)
    sizes = labels.bincount()
    first, size = (sizes.cumsum(0) - sizes)[labels[indices]], sizes[labels[indices]]
    drawn = torch.rand(len(indices), generator=rng, device=rng.device, dtype=torch.float64).to(labels.device)
    ahead = 1 + (drawn * (size - 1)).long()  # positions after its own, wrapping around the cluster
    return order[first + (place[indices] - first + ahead) % size]


def triplets(labels: Tensor, n_negatives: int, rng: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Indices of anchors (M,), of a positive of the same cluster each (M,), and of negatives of others (M, n).

    Anchors are all samples that have both in the batch; negatives are drawn with replacement.
    """
    same = labels[:, None] == labels
    positive = same.float().fill_diagonal_(0)
    anchors = (positive.any(1) & ~same.all(1)).nonzero()[:, 0]
    if not len(anchors):
        return anchors, anchors, anchors[:, None].expand(-1, n_negatives)
    positives = torch.multinomial(positive[anchors].to(rng.device), 1, generator=rng)[:, 0]
    others = (~same[anchors]).float().to(rng.device)
    negatives = torch.multinomial(others, n_negatives, replacement=True, generator=rng)
    return anchors, positives.to(labels.device), negatives.to(labels.device)


def triplet_loss(anchor: Tensor, positive: Tensor, negatives: Tensor, margin: float = 0.2) -> Tensor:
    """max(0, |a - p|^2 - |a - n|^2 + margin), mean over the negatives (M, n, D) of all anchors (M, D); 0 if none."""
    near = (anchor - positive).square().sum(1, keepdim=True)
    far = (anchor[:, None] - negatives).square().sum(2)
    hinge = (near - far + margin).clamp(min=0)
    return hinge.sum() / max(hinge.numel(), 1)
