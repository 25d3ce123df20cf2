"""Features of vectors that need no training: leading directions of many numbers or of documents, waves of few."""

import math
from math import prod
from typing import Any

import torch
import torch.nn.functional as F
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.preprocessing import normalize
from torch import Tensor, nn

from lsdc.nn.backbone import Backbone

FEW_FEATURES = 32  # below, the inputs are good neighbours already and a pretext has nothing to find
N_WAVES = 512
WIDTH = 0.5  # of the kernel, as a share of the root mean square distance from the mean
N_DIRECTIONS = 128  # more add noise: 6,000 embeddings of 1,280 numbers are clustered better and faster with these


class Directions(nn.Module):
    """Samples by their angle, seen from ``origin``, in the leading principal directions.

    The origin is the zero of the inputs. Their mean would not do: a cluster of most samples lies around it, so that
    angles seen from there are noise (70 % of the samples: ACC 0.66 instead of 1.0).
    """

    origin: Tensor
    centre: Tensor
    directions: Tensor
    scale: Tensor

    def __init__(self, n_in: int, n_out: int) -> None:
        super().__init__()
        self.register_buffer("origin", torch.zeros(n_in))
        self.register_buffer("centre", torch.zeros(n_in))
        self.register_buffer("scale", torch.ones(()))
        self.register_buffer("directions", torch.eye(n_in, n_out))

    def forward(self, x: Tensor) -> Tensor:
        return (F.normalize(x.flatten(1) - self.origin) - self.centre) @ self.directions / self.scale

    @torch.no_grad()
    def fit(self, x: Tensor, origin: Tensor, seed: int) -> Tensor:
        """Find mean and directions of some samples; fewer samples than directions leave the last ones empty.

        Neighbours are looked for among the features.
        """
        self.origin.copy_(origin)
        x = F.normalize(x.flatten(1) - self.origin)
        n = min(len(x), self.directions.shape[1])
        found = PCA(n, random_state=seed % 2**32).fit(x.cpu().numpy())
        self.centre.copy_(torch.from_numpy(found.mean_))
        self.directions.zero_()[:, :n] = torch.from_numpy(found.components_.T.copy())
        features = (x - self.centre) @ self.directions
        self.scale.copy_(features.norm(dim=1).mean().clamp(min=1e-6))
        return features / self.scale


class Topics(nn.Module):
    """Documents by their angle in the leading singular directions of the inputs: latent semantic analysis."""

    directions: Tensor
    centre: Tensor
    scale: Tensor

    def __init__(self, n_in: int, n_out: int) -> None:
        super().__init__()
        self.register_buffer("directions", torch.zeros(n_in, n_out))
        self.register_buffer("centre", torch.zeros(n_out))
        self.register_buffer("scale", torch.ones(()))

    def forward(self, x: Tensor) -> Tensor:
        return (F.normalize(F.normalize(x) @ self.directions) - self.centre) / self.scale

    @torch.no_grad()
    def fit(self, x: Any, origin: Tensor, seed: int) -> Tensor:
        """Find the directions of some documents, a sparse matrix, by their angle from zero; origin plays no part.

        Neighbours are looked for among the features.
        """
        x = normalize(x)
        n = min(*x.shape, self.directions.shape[1])
        found = TruncatedSVD(n, random_state=seed % 2**32).fit(x)
        self.directions.zero_()[:, :n] = torch.from_numpy(found.components_.T.copy())
        z = F.normalize(torch.from_numpy(found.transform(x)).to(self.directions))
        self.centre.zero_()[:n] = z.mean(0)
        z = z - z.mean(0)
        self.scale.copy_(z.norm(dim=1).mean().clamp(min=1e-6))
        return z / self.scale


class Words(nn.Module):
    """Documents by their topics and, in the last third, by what their words say for each cluster, once that is known.

    Both parts are angles, so that neither outweighs the other. Topics tell more documents apart than clusters do: maps,
    neighbours and K-means on these features see both.
    """

    evidence: Tensor
    weight: Tensor
    bias: Tensor

    def __init__(self, n_in: int, n_out: int) -> None:
        super().__init__()
        n_words = n_out // 3
        self.topics = Topics(n_in, n_out - n_words)
        self.register_buffer("evidence", torch.zeros(n_in, n_words))
        self.register_buffer("weight", torch.zeros(n_out - n_words, n_words))  # of the clusters before words decided
        self.register_buffer("bias", torch.zeros(n_words))

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([self.topics(x), F.normalize(F.normalize(x) @ self.evidence)], 1)

    @torch.no_grad()
    def fit(self, x: Any, origin: Tensor, seed: int) -> Tensor:
        """Find the topics of some documents, a sparse matrix; neighbours are looked for among these."""
        for values in (self.evidence, self.weight, self.bias):
            values.zero_()
        return self.topics.fit(x, origin, seed)

    @torch.no_grad()
    def before_words(self, f: Tensor, n_clusters: int) -> tuple[Tensor, Tensor]:
        """The topics among features (n, D), and the clusters that these were given by their topics alone."""
        f = f[:, : len(self.weight)]
        return f, (f @ self.weight + self.bias)[:, :n_clusters].argmax(1)


class Waves(nn.Module):
    """Random Fourier features: what is linear in these may be bent in the inputs, as it must be for two moons.

    Inner products of them are those of a Gaussian kernel of half the data's spread.
    """

    frequencies: Tensor
    phases: Tensor
    centre: Tensor
    scale: Tensor

    def __init__(self, n_in: int, n_out: int) -> None:
        super().__init__()
        self.register_buffer("frequencies", torch.zeros(n_in, n_out))
        self.register_buffer("phases", torch.zeros(n_out))
        self.register_buffer("centre", torch.zeros(n_out))
        self.register_buffer("scale", torch.ones(()))

    def forward(self, x: Tensor) -> Tensor:
        return ((x.flatten(1) @ self.frequencies + self.phases).cos() - self.centre) / self.scale

    @torch.no_grad()
    def fit(self, x: Tensor, origin: Tensor, seed: int) -> Tensor:
        """Draw waves as long as the samples are spread. Neighbours are those of the inputs: distances count there."""
        rng = torch.Generator().manual_seed(seed)
        spread = x.flatten(1).square().sum(1).mean().sqrt().clamp(min=1e-6)
        frequencies = torch.randn(self.frequencies.shape, generator=rng) / (WIDTH * spread.cpu())
        self.frequencies.copy_(frequencies)
        self.phases.copy_(2 * math.pi * torch.rand(self.phases.shape, generator=rng))
        self.centre.zero_()
        self.scale.fill_(1.0)
        f = self(x)
        self.centre.copy_(f.mean(0))
        self.scale.copy_((f - self.centre).norm(dim=1).mean().clamp(min=1e-6))
        return x.flatten(1)


def projection(shape: tuple[int, ...], width: float = 1.0) -> Backbone:
    """At most 128 x ``width`` principal directions of the inputs, or 512 waves of fewer than 32."""
    n_in = prod(shape)
    if n_in < FEW_FEATURES:
        return Backbone([Waves(n_in, N_WAVES)], N_WAVES)
    n = _directions(n_in, width)
    return Backbone([Directions(n_in, n)], n)


def topics(shape: tuple[int, ...], width: float = 1.0) -> Backbone:
    """At most 128 x ``width`` singular directions of sparse documents."""
    n = _directions(prod(shape), width)
    return Backbone([Topics(prod(shape), n)], n)


def words(shape: tuple[int, ...], width: float = 1.0) -> Backbone:
    """At most 128 x ``width`` features of sparse documents: two thirds are topics, a third what words say."""
    n = _directions(prod(shape), width)
    return Backbone([Words(prod(shape), n)], n)


def _directions(n_in: int, width: float) -> int:
    return max(1, min(n_in, round(N_DIRECTIONS * width)))
