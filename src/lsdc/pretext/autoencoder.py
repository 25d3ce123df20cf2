"""Denoising autoencoder: the clean sample from a corrupted one (section 4, Reuters-10K)."""

from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from lsdc.data.augment import Views, dropout
from lsdc.data.sampler import Batch
from lsdc.nn.backbone import Backbone


class DenoisingAutoencoder:
    """The backbone encodes a sample with a fifth of its values lost, a decoder gives it back whole."""

    name = "pretext"

    def __init__(self, backbone: Backbone, views: Views, hidden: tuple[int, ...] = (500, 500)) -> None:
        sizes = (backbone.n_features, *hidden)
        layers = [m for a, b in zip(sizes, sizes[1:], strict=False) for m in (nn.Linear(a, b), nn.ReLU(inplace=True))]
        n_values = 1
        for size in views.shape:
            n_values *= size
        decoder = nn.Sequential(*layers, nn.Linear(sizes[-1], n_values))
        self.module = nn.ModuleDict({"backbone": backbone, "decoder": decoder})
        self.views = views

    def losses(self, batch: Batch) -> dict[str, Tensor]:
        x = self.views.plain(batch.x)
        rebuilt = self.module["decoder"](self.module["backbone"](dropout(x, batch.rng)))
        return {"loss": F.mse_loss(rebuilt.float(), x.flatten(1))}

    def summary(self, record: dict[str, Any]) -> dict[str, Any]:
        return {}
