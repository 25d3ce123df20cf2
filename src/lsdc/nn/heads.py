"""From features to cluster logits: the paper's linear layer, and the heads of other methods."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

GAIN = 4.0  # of the batch norm of IIC's heads at the start: predictions sharp enough to learn from each other
N_HEADS = 5  # of IIC, of each kind, from different starts
OVER = 5  # times as many clusters in its overclustering heads (MNIST: 50)


def linear(n_features: int, n_clusters: int) -> nn.Module:
    """A linear layer: the paper's classifier."""
    return nn.Linear(n_features, n_clusters)


def normed(n_features: int, n_clusters: int) -> nn.Module:
    """A linear layer on standardised features that starts out nearly undecided; still linear in the features.

    Every cluster starts with the same claim on every sample, whatever the scale of the features, so that none dies
    before the labels take effect (decision 7).
    """
    layer = nn.Linear(n_features, n_clusters)
    nn.init.normal_(layer.weight, std=0.1 / n_features**0.5)
    nn.init.zeros_(layer.bias)
    return nn.Sequential(nn.BatchNorm1d(n_features, affine=False), layer)


def normed_logits(n_features: int, n_clusters: int, gain: float = 1.0) -> nn.Module:
    """A linear layer whose outputs are standardised, times ``gain``: every cluster has its samples from the start.

    For methods that learn from their own predictions: if those start out alike, a few clusters take everything.
    """
    norm = nn.BatchNorm1d(n_clusters)
    nn.init.constant_(norm.weight, gain)
    return nn.Sequential(nn.Linear(n_features, n_clusters), norm)


def two_layer(n_features: int, n_clusters: int) -> nn.Module:
    """Two layers: the non-linear classifier of the supplementary's ablation."""
    return nn.Sequential(nn.Linear(n_features, n_features), nn.ReLU(inplace=True), nn.Linear(n_features, n_clusters))


HEADS: dict[str, Callable[[int, int], nn.Module]] = {
    "linear": linear,
    "normed": normed,
    "normed-logits": normed_logits,
    "two-layer": two_layer,
}


def pooled_logits(n_features: int, n_places: int, n_clusters: int) -> nn.Module:
    """A channel for each cluster, its mean over the places where it is positive, standardised, as the authors have it.

    Clusters then do not depend on position; a layer on all positions would start with clusters of positions.
    """
    n_channels = n_features // n_places
    return nn.Sequential(
        nn.Unflatten(1, (n_channels, n_places)),
        nn.Conv1d(n_channels, n_clusters, 1),
        nn.BatchNorm1d(n_clusters),
        nn.ReLU(),
        nn.AdaptiveAvgPool1d(1),
        nn.Flatten(),
        nn.BatchNorm1d(n_clusters),
    )


class ManyHeads(nn.Module):
    """Five heads with K clusters and five with more; the best of the first is the one that predicts."""

    best: Tensor

    def __init__(self, n_features: int, n_clusters: int) -> None:
        super().__init__()
        self.main = nn.ModuleList(normed_logits(n_features, n_clusters, GAIN) for _ in range(N_HEADS))
        self.over = nn.ModuleList(normed_logits(n_features, OVER * n_clusters, GAIN) for _ in range(N_HEADS))
        self.register_buffer("best", torch.zeros((), dtype=torch.long))

    def forward(self, f: Tensor) -> Tensor:
        logits: Tensor = self.main[int(self.best)](f)
        return logits
