"""The targets and losses of sections 3.3 and 3.4."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from lsdc.functional.similarity import BLOCK, row_blocks

EPS = 1e-7


def at_least_single(x: Tensor) -> Tensor:
    """Half precision as single: it cannot hold an eps of 1e-7, and sums over a batch lose their small parts."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


@torch.no_grad()
def mix_targets(A: Tensor, sigma: Tensor, w: Tensor) -> Tensor:
    """Y_ij = sum_r w_r A[i, sigma_r(j)]: rows plain, columns composed (equation 6, targets mixed before the loss)."""
    Y = torch.zeros(A.shape, dtype=torch.promote_types(A.dtype, w.dtype), device=A.device)
    for rows in row_blocks(len(A)):
        for part, share in zip(sigma, w, strict=True):
            Y[rows] += share * A[rows].index_select(1, part)  # three times as fast as A[rows][:, part]
    return Y


def _pair_loss_sum(p: Tensor, p_composed: Tensor, Y: Tensor, positive: float | Tensor) -> Tensor:
    P = (p @ p_composed.T).clamp(0, 1)  # rounding can push a sum of products just over 1
    return -(positive * Y * (P + EPS).log() + (1 - Y) * (1 - P + EPS).log()).sum()


def pair_loss(p: Tensor, p_composed: Tensor, Y: Tensor, positive: float | Tensor = 1.0) -> Tensor:
    """Binary cross-entropy of P = p p~' against Y, mean over all pairs (equations 4 to 6).

    ``positive`` weighs the connected pairs (1 in the paper; see ``positive_weight``). Larger batches go block by
    block and are computed again in the backward pass, so that their memory is that of ``Y`` and not of the graph.
    """
    p, p_composed = at_least_single(p), at_least_single(p_composed)
    n = len(p)
    if n <= BLOCK:
        return _pair_loss_sum(p, p_composed, Y, positive) / Y.numel()
    total = p.new_zeros(())
    for rows in row_blocks(n):
        total = total + checkpoint(_pair_loss_sum, p[rows], p_composed, Y[rows], positive, use_reentrant=False)
    return total / Y.numel()


def positive_weight(Y: Tensor, n_clusters: int) -> Tensor:
    """The weight that gives connected pairs the share 1/K of the loss they would have if all of them were known.

    Not in the paper (decision 2): with it a sparse graph, whose labels are purer, keeps clusters alive as well as a
    dense one.
    """
    connected = Y.sum()
    return (Y.numel() - connected) / (max(n_clusters - 1, 1) * connected)


def consistency_loss(p: Tensor, p_augmented: Tensor) -> Tensor:
    """1/(KN) sum_i |p_i - p'_i|^2 (equation 8 without omega)."""
    return (p - p_augmented).square().mean()


def balance_loss(p: Tensor) -> Tensor:
    """Log K minus the entropy of the mean prediction: 0 for clusters of equal size (not in the paper: decision 4)."""
    mean = p.mean(0)
    return math.log(p.shape[1]) + (mean * (mean + EPS).log()).sum()


def nt_xent(z1: Tensor, z2: Tensor, temperature: float) -> Tensor:
    """Cross-entropy of finding a sample's other view among all of the batch's views, by cosine (Chen et al. 2020)."""
    z = F.normalize(at_least_single(torch.cat([z1, z2])), dim=1)
    logits = (z @ z.T / temperature).fill_diagonal_(-torch.inf)
    return F.cross_entropy(logits, torch.arange(len(z), device=z.device).roll(len(z1)))


def rampup(t: float, length: float, weight: float) -> float:
    """omega(t) = weight exp(-5 (1 - t/length)^2), and weight from t >= length on (section 3.4)."""
    if length <= 0:
        return float(weight)
    return weight * math.exp(-5 * (1 - min(t / length, 1.0)) ** 2)
