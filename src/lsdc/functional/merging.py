"""Small clusters merged into a few: again and again the two whose merger loses the least information of the graph."""

import torch
from torch import Tensor


def _entropy(values: Tensor) -> Tensor:
    found: Tensor = torch.special.entr(values.clamp(min=0))
    return found


@torch.no_grad()
def merged(joint: Tensor, n_clusters: int, price: float) -> Tensor:
    """The cluster of each of M small ones (M,), by how often walks lead from one to another (M, M), both ways alike.

    Each merger loses as little as possible of the mutual information between the two ends of a walk, minus ``price``
    times the entropy (``joint_information``). The entropies of possible rows are updated, not recomputed, so that all
    mergers together take M^3 operations.
    """
    J = joint.double().clone()
    m = len(J)
    group = torch.arange(m, device=J.device)
    gone = torch.zeros(m, dtype=torch.bool, device=J.device)
    shared = torch.stack([_entropy(J[a] + J).sum(1) for a in range(m)])  # of the row that a and b would have
    for _ in range(m - n_clusters):
        share, own, rows = J.sum(1), J.diagonal(), _entropy(J).sum(1)
        # rows and columns change alike; where they cross, each entry was counted as one of a row
        crossing = _entropy(own[:, None] + J) + _entropy(J + own)
        block = _entropy(own[:, None] + own + 2 * J)
        after = 2 * (shared - crossing) + block
        before = 2 * (rows[:, None] + rows) - _entropy(own)[:, None] - _entropy(own) - 2 * _entropy(J)
        gain = (2 - price) * (_entropy(share[:, None] + share) - _entropy(share)[:, None] - _entropy(share))
        gain = gain - (after - before)
        empty = share == 0  # they are merged first, or some of the clusters would hold nobody
        gain[empty] = gain[:, empty] = torch.inf
        gain[gone] = gain[:, gone] = -torch.inf
        gain.fill_diagonal_(-torch.inf)
        a, b = sorted(divmod(int(gain.argmax()), m))
        shared -= _entropy(J[:, a, None] + J[:, a]) + _entropy(J[:, b, None] + J[:, b])
        J[a] += J[b]
        J[:, a] += J[:, b]
        J[b] = J[:, b] = 0
        shared += _entropy(J[:, a, None] + J[:, a])
        shared[a] = shared[:, a] = _entropy(J[a] + J).sum(1)
        group[group == b] = a
        gone[b] = True
    clusters: Tensor = torch.unique(group, return_inverse=True)[1]
    return clusters
