"""DEC: unsupervised deep embedding for clustering analysis (Xie, Girshick, Farhadi 2016). IDEC shares its terms.

``P = target_distribution(Q)`` is computed from all samples and held fixed between refreshes; a step is then
``kl_to_target(P[batch], soft_assignment(encode(x), centres))``, and IDEC's ``mse + 0.1 kl_to_target(...)``.
"""

import torch
import torch.nn.functional as F
from torch import Tensor


def soft_assignment(z: Tensor, centres: Tensor) -> Tensor:
    """q_ij ~ (1 + |z_i - mu_j|^2)^-1: Student's t with one degree of freedom, rows sum to one (equation 1)."""
    q = 1 / (1 + (z[:, None] - centres).square().sum(2))
    return q / q.sum(1, keepdim=True)


@torch.no_grad()
def target_distribution(q: Tensor) -> Tensor:
    """p_ij ~ q_ij^2 / f_j with f_j = sum_i q_ij: sharper, and large clusters weigh less (equation 3)."""
    p = q.square() / q.sum(0)
    return p / p.sum(1, keepdim=True)


def kl_to_target(p: Tensor, q: Tensor) -> Tensor:
    """KL(P || Q), mean over samples (equation 2, where it is the sum)."""
    return F.kl_div(q.log(), p, reduction="batchmean")
