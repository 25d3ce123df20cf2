"""Clusters as centres in a feature space: the last layer of methods that end in one."""

import torch
from torch import Tensor, nn


def centre_logits(f: Tensor, centres: Tensor, variance: Tensor | float) -> Tensor:
    """Logits of equal round Gaussians at the centres (decision 23)."""
    return (f @ centres.T - centres.square().sum(1) / 2) / variance


class Centres(nn.Module):
    """Logits from centres that are set, not trained."""

    centres: Tensor
    variance: Tensor

    def __init__(self, n_clusters: int, n_features: int) -> None:
        super().__init__()
        self.register_buffer("centres", torch.zeros(n_clusters, n_features))
        self.register_buffer("variance", torch.ones(()))

    def forward(self, f: Tensor) -> Tensor:
        return centre_logits(f, self.centres, self.variance)

    @torch.no_grad()
    def move_to(self, f: Tensor, labels: Tensor) -> None:
        """Set the centres to the clusters' means, and the variance to that within clusters; empty clusters stay put."""
        members = nn.functional.one_hot(labels, len(self.centres)).to(f.dtype)
        sizes = members.sum(0)[:, None]
        self.centres.copy_(torch.where(sizes > 0, members.T @ f / sizes.clamp(min=1), self.centres))
        self.variance.fill_(max(float((f - self.centres[labels]).square().mean()), 1e-12))
