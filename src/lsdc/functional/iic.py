"""IIC: invariant information clustering (Ji, Henriques, Vedaldi 2019)."""

import torch
import torch.nn.functional as F
from torch import Tensor

EPS = 2.0**-52  # of the joint: with 70 clusters most of its 4,900 cells are far below 1e-7


def joint(p: Tensor, p2: Tensor) -> Tensor:
    """P = 1/n sum_i p(x_i) p(x'_i)', symmetrised; its cells sum to one (equation 2)."""
    P = p.T @ p2
    P = (P + P.T) / 2
    return P / P.sum()


def iic_loss(p: Tensor, p2: Tensor) -> Tensor:
    """-I(z, z') = -sum P (ln P - ln P_i - ln P_j): at least -log K, for two views with equal, certain, even clusters.

    Logarithms see nothing below EPS (equation 3). Several views of a sample are rows of ``p2``, its ``p`` repeated.
    """
    P = joint(p, p2)
    marginal = P.sum(1).clamp(min=EPS).log()  # of rows and columns alike: P is symmetric
    return -(P * (P.clamp(min=EPS).log() - marginal[:, None] - marginal)).sum()


def sobel(x: Tensor) -> Tensor:
    """Horizontal and vertical gradients (n, 2, h, w) of grey values, so that colour alone does not make a cluster.

    Edges are repeated, not padded with black, so that an even image has no gradient anywhere.
    """
    kernel = torch.tensor([[-1.0, 0.0, 1.0], [-2.0, 0.0, 2.0], [-1.0, 0.0, 1.0]], dtype=x.dtype, device=x.device)
    grey = F.pad(x.mean(1, keepdim=True), (1, 1, 1, 1), mode="replicate")
    return F.conv2d(grey, torch.stack([kernel, kernel.T])[:, None])
