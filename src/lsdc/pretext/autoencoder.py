"""Denoising autoencoder: reconstruct a sample from a corrupted one (section 4, Reuters-10K)."""

from itertools import pairwise
from math import prod

import torch.nn.functional as F
from torch import Tensor, nn

from lsdc.data.augment import Views, dropout
from lsdc.data.sampler import Batch
from lsdc.nn.backbone import Backbone
from lsdc.parallel import mean
from lsdc.training.health import Record


class DenoisingAutoencoder:
    """The backbone encodes a corrupted view, and a decoder reconstructs the plain sample.

    Images are corrupted by their augmentation, so that the features learn what the views have in common; vectors also
    lose a fifth of their values.
    """

    name = "pretext"

    def __init__(self, backbone: Backbone, views: Views, hidden: tuple[int, ...] = (500, 500)) -> None:
        sizes = (backbone.n_features, *hidden)
        layers = [m for a, b in pairwise(sizes) for m in (nn.Linear(a, b), nn.ReLU(inplace=True))]
        decoder = nn.Sequential(*layers, nn.Linear(sizes[-1], prod(views.shape)))
        self.module = nn.ModuleDict({"backbone": backbone, "decoder": decoder})
        self.views = views

    def losses(self, batch: Batch) -> dict[str, Tensor]:
        x, corrupted = self.views.plain(batch.x), self.views.augment(batch.x, batch.rng)
        if x.ndim == 2:
            corrupted = dropout(corrupted, batch.rng)
        rebuilt = self.module["decoder"](self.module["backbone"](corrupted))
        return {"loss": mean(F.mse_loss(rebuilt, x.flatten(1)), len(x), len(batch.indices))}

    def summary(self, record: Record, history: list[Record]) -> Record:
        return {}
