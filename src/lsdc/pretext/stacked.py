"""Stacked denoising autoencoder: layer after layer, then all of them (Vincent et al. 2010; the start of DEC)."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lsdc.data.augment import Views, dropout
from lsdc.data.sampler import Batch
from lsdc.errors import InputError
from lsdc.nn.backbone import Backbone
from lsdc.parallel import mean
from lsdc.training.health import Record

LAYERWISE = 0.5  # the share of the training in which the layers are trained one by one


def mirrored(backbone: Backbone) -> nn.ModuleList:
    """A decoder of linear layers: the i-th undoes the i-th stage; all but the first, which gives inputs, have ReLU."""
    found = [[m for m in stage.modules() if isinstance(m, nn.Linear)] for stage in backbone.stages]
    if any(len(layers) != 1 for layers in found):
        raise InputError("pretext 'stacked' needs a network of linear layers, such as 'mlp'")
    back = [nn.Linear(layer.out_features, layer.in_features) for (layer,) in found]
    return nn.ModuleList([back[0], *(nn.Sequential(layer, nn.ReLU(inplace=True)) for layer in back[1:])])


def decode(decoder: nn.ModuleList, z: Tensor) -> Tensor:
    """Flattened samples from their codes."""
    for layer in reversed(decoder):
        z = layer(z)
    return z


class StackedAutoencoder:
    """Each layer learns to reconstruct its input, with a fifth of the values dropped on both sides of it.

    The layers before it are fixed. In the second half all layers learn to reconstruct the uncorrupted sample.
    """

    name = "pretext"

    def __init__(self, backbone: Backbone, views: Views, decoder: nn.ModuleList | None = None) -> None:
        self.backbone, self.plain = backbone, views.plain
        self.decoder = decoder if decoder is not None else mirrored(backbone)
        self.module = nn.ModuleDict({"backbone": backbone, "decoder": self.decoder})

    def losses(self, batch: Batch) -> dict[str, Tensor]:
        x = self.plain(batch.x).flatten(1)
        layer = int(batch.done / LAYERWISE * len(self.decoder))
        if layer < len(self.decoder):
            x, rebuilt = self._layer(layer, x, batch.rng)
        else:
            rebuilt = decode(self.decoder, self.backbone(x))
        return {"loss": mean(F.mse_loss(rebuilt, x), len(x), len(batch.indices))}

    def _layer(self, layer: int, x: Tensor, rng: torch.Generator) -> tuple[Tensor, Tensor]:
        """The input of a layer and its reconstruction by the layer and its mirror; no gradient reaches other layers."""
        with torch.no_grad():
            for stage in self.backbone.stages[:layer]:
                x = stage(x)
        h = self.backbone.stages[layer](dropout(x, rng))
        return x, self.decoder[layer](dropout(h, rng))

    def summary(self, record: Record, history: list[Record]) -> Record:
        return {}
