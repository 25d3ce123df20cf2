"""Many linear classifiers side by side, and the axes along which they see features."""

from typing import NamedTuple

import torch
from sklearn.decomposition import PCA
from torch import Tensor, nn

from lsdc.functional import pair_likelihood
from lsdc.nn.projection import N_DIRECTIONS

Forms = tuple[tuple[float, float], ...]
GAIN = 10.0  # of logits, as features have length one
# (power, rarity) of the likelihood, in turn: a low power leaves room for doubt, in which a classifier finds its way, a
# low rarity splits no large cluster; images need many tries with the first two, the others find less there
FORMS = ((0.6, 1.0), (1.0, 1.0), (0.6, 0.6), (1.0, 0.6))
IMAGE_FORMS = FORMS[:2]


class Classifiers(nn.Module):
    """Linear classifiers from different starts (n_init, D, K), side by side; ``best`` is the one to keep."""

    mean: Tensor
    best: Tensor
    power: Tensor
    rarity: Tensor

    def __init__(self, start: Tensor, gain: float = GAIN, forms: Forms = FORMS) -> None:
        super().__init__()
        n_init, _, n_clusters = start.shape
        self.gain = gain
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
        side_by_side = self.weight.transpose(0, 1).reshape(n_features, n_init * n_clusters)  # one product, no copies
        logits = (self.gain * f @ side_by_side).view(len(f), n_init, n_clusters).transpose(0, 1)
        return (logits + self.bias).softmax(2)

    def likelihood(self, p: Tensor, q: Tensor, mean: Tensor) -> Tensor:
        """How likely each makes pairs of its predictions (n_init, N), in the form that is its own."""
        return pair_likelihood(p, q, mean.pow(self.rarity), self.power)

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
