"""Many linear classifiers side by side, and the axes along which they see features."""

from typing import NamedTuple

import torch
from scipy.optimize import linear_sum_assignment
from sklearn.decomposition import PCA
from torch import Tensor, nn

from lsdc.functional import pair_likelihood
from lsdc.metrics import clustering_accuracy
from lsdc.nn.projection import N_DIRECTIONS

Forms = tuple[tuple[float, float], ...]
GAIN = 10.0  # of logits, as features have length one
# (power, rarity) of the likelihood, in turn. The first form assumes groups of equal size: a power below 1 leaves room
# for doubt, which helps to find them. A rarity below 1 rewards rare clusters less, so no large group is split for them.
FORMS = ((0.6, 1.0), (1.0, 1.0), (1.0, 0.6), (1.0, 0.4))
IMAGE_FORMS = FORMS[:2]  # a network needs many tries with these, the others find less there
WRONG = 0.1  # of the pairs, in the likelihood: even good neighbours are not all of the same group (decision 70)


class Classifiers(nn.Module):
    """Linear classifiers from different starts (n_init, D, K), side by side; ``best`` is the one to keep."""

    mean: Tensor
    best: Tensor
    power: Tensor
    rarity: Tensor

    def __init__(self, start: Tensor, gain: float = GAIN, forms: Forms = FORMS, wrong: float = WRONG) -> None:
        super().__init__()
        n_init, _, n_clusters = start.shape
        self.gain, self.forms, self.wrong, self.n_clusters = gain, forms, wrong, n_clusters
        self.weight = nn.Parameter(start)
        self.bias = nn.Parameter(start.new_zeros(n_init, 1, n_clusters))
        self.register_buffer("mean", torch.full((n_init, 1, n_clusters), 1 / n_clusters))
        self.register_buffer("best", torch.zeros((), dtype=torch.long))
        power, rarity = torch.tensor(forms)[torch.arange(n_init) % len(forms), :, None, None].unbind(1)
        self.register_buffer("power", power, persistent=False)
        self.register_buffer("rarity", rarity, persistent=False)

    def forward(self, f: Tensor) -> Tensor:
        """Probabilities (n_init, N, K)."""
        n_init, n_features, n_clusters = self.weight.shape
        stacked = self.weight.transpose(1, 2).reshape(n_init * n_clusters, n_features)  # one product for all
        logits = (stacked @ (self.gain * f).T).view(n_init, n_clusters, len(f)) + self.bias.transpose(1, 2)
        return logits.softmax(1).transpose(1, 2)  # along the last axis, softmax of 10 numbers takes 4 times as long

    def likelihood(self, p: Tensor, q: Tensor, mean: Tensor) -> Tensor:
        """How likely each makes pairs of its predictions (n_init, N), in the form that is its own."""
        return pair_likelihood(p, q, mean.pow(self.rarity), self.power, self.wrong)

    @torch.no_grad()
    def agreeing(self, f: Tensor, order: Tensor) -> Tensor:
        """Of some classifiers, the half that agrees most with the most typical one, which comes first.

        Classifiers end in a few different partitions. The mean of two of these is neither, so only the one that most of
        them found is averaged.
        """
        labels = self(f).argmax(2)[order].cpu().numpy()
        shared = torch.tensor([[clustering_accuracy(a, b) for a in labels] for b in labels])
        typical = shared[shared.mean(1).argmax()]
        return order[typical.argsort(descending=True, stable=True)[: (len(order) + 1) // 2].to(order.device)]

    @torch.no_grad()
    def agreement(self, f: Tensor, order: Tensor) -> tuple[Tensor, Tensor]:
        """Mean weight (D, K) and bias (1, K) of some classifiers, their clusters matched with those of the first."""
        p = self(f)
        weights, biases = [], []
        for i in order.tolist():
            overlap = (p[int(order[0])].T @ p[i]).cpu().numpy()
            match = torch.from_numpy(linear_sum_assignment(-overlap)[1]).to(f.device)
            weights.append(self.weight[i][:, match])
            biases.append(self.bias[i][:, match])
        return torch.stack(weights).mean(0), torch.stack(biases).mean(0)

    def linear(self) -> tuple[Tensor, Tensor]:
        """Weight (D, K) and bias (K,) of the best one."""
        return self.gain * self.weight[self.best], self.bias[self.best, 0]


class Axes(NamedTuple):
    """Standardised features in their leading principal directions, where a sample has length one on average."""

    centre: Tensor
    spread: Tensor
    directions: Tensor

    def of(self, f: Tensor) -> Tensor:
        """Features (..., D) along the axes."""
        return (f - self.centre) / self.spread @ self.directions


def principal_axes(f: Tensor, eps: float, seed: int) -> Axes:
    """The axes of features (n, D); ``eps`` is that of the batch norm which standardises them later."""
    centre, spread = f.mean(0), (f.var(0, correction=0) + eps).sqrt()
    standard = (f - centre) / spread
    n = min(*f.shape, N_DIRECTIONS)
    found = PCA(n, random_state=seed % 2**32).fit(standard.cpu().numpy())
    directions = torch.from_numpy(found.components_.T.copy()).to(f)
    return Axes(centre, spread, directions / (standard @ directions).norm(dim=1).mean().clamp(min=1e-6))
