"""Better clusters by moves that training does not make: two are joined, a third is divided (decision 84)."""

from itertools import product

import torch
from torch import Tensor

from lsdc.functional.graph import joint_information, walk_joint

MODE_STEPS = 150  # of the power iteration that looks for the slowest mode of walks within a cluster
TRIED = 10  # pairs to join, and clusters to divide, the most promising of each
GAIN = 1e-4  # of explanation at least, in nats: rounding is no reason to move


@torch.no_grad()
def halves(neighbours: Tensor, labels: Tensor, n_clusters: int) -> Tensor:
    """Which of two halves each sample is in (n,): every cluster is cut where walks within it cross least often."""
    n, k = neighbours.shape
    inside = (labels[neighbours] == labels[:, None]).double()
    ends, begins, links = neighbours.flatten(), torch.arange(n).repeat_interleave(k), inside.flatten()
    degree = (inside.sum(1).index_add(0, ends, links)).clamp(min=1e-9)

    def by_cluster(values: Tensor) -> Tensor:
        return torch.zeros(n_clusters, dtype=torch.double).index_add(0, labels, values)

    volume = by_cluster(degree).clamp(min=1e-9)
    x = torch.randn(n, generator=torch.Generator().manual_seed(0), dtype=torch.double)
    for _ in range(MODE_STEPS):
        x = x - (by_cluster(degree * x) / volume)[labels]  # what is left is not the same everywhere in the cluster
        x = x / (by_cluster(degree * x.square()) / volume).sqrt().clamp(min=1e-12)[labels]
        reached = (x[neighbours] * inside).sum(1).index_add(0, ends, links * x[begins])
        x = (x + reached / degree) / 2  # half of the walks wait, so that no mode swings
    return x > (by_cluster(degree * x) / volume)[labels]


@torch.no_grad()
def rearranged(neighbours: Tensor, labels: Tensor, n_clusters: int, steps: int, price: float) -> Tensor:
    """Clusters (n,) that explain the graph better, as long as joining two and dividing a third one does so."""
    neighbours, labels = neighbours.cpu(), labels.cpu().clone()
    for _ in range(n_clusters if n_clusters > 2 else 0):
        half = halves(neighbours, labels, n_clusters).long()
        joint = walk_joint(neighbours, 2 * labels + half, 2 * n_clusters, steps)
        move, gain = _best_move(joint, n_clusters, price)
        if gain < GAIN:
            break
        divided, kept, joined = move
        labels[labels == joined] = kept
        labels[(labels == divided) & (half == 1)] = joined
    return labels


def _best_move(joint: Tensor, n_clusters: int, price: float) -> tuple[tuple[int, int, int], float]:
    """Which cluster to divide and which two to join, and what is gained; ``joint`` is that of halves (2K, 2K)."""
    place = torch.arange(2 * n_clusters) // 2  # the cluster of each half

    def explained(places: Tensor, count: int) -> Tensor:
        group = torch.nn.functional.one_hot(places, count).double()
        return joint_information(group.T @ joint @ group, price)

    whole = torch.nn.functional.one_hot(place, n_clusters).double()
    together = whole.T @ joint @ whole
    shares = together.sum(1)
    lift = (together / (shares[:, None] * shares + 1e-12)).triu(1)
    pairs = lift.flatten().topk(min(TRIED, n_clusters * (n_clusters - 1) // 2)).indices.tolist()
    divided = torch.stack(
        [
            explained(place.where(torch.arange(len(place)) != 2 * c + 1, n_clusters), n_clusters + 1)
            for c in range(n_clusters)
        ]
    )
    best, found = (0, 0, 0), -torch.inf
    for pair, c in product(pairs, divided.topk(min(TRIED, n_clusters)).indices.tolist()):
        a, b = divmod(pair, n_clusters)
        if c in (a, b):
            continue
        places = place.where(place != b, a)
        places[2 * c + 1] = b
        if (value := float(explained(places, n_clusters))) > found:
            best, found = (c, a, b), value
    return best, found - float(joint_information(together, price))
