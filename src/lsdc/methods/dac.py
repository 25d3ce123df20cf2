"""DAC: labels the pairs the network is sure of, then less certain ones as it learns."""

from typing import Any

import torch
from torch import Tensor, nn

from lsdc.data.sampler import Batch
from lsdc.functional import dac_labels, dac_pair_loss, dac_thresholds
from lsdc.methods.deep import DeepEstimator, DeepObjective, Settings, assigned
from lsdc.nn.backbone import Backbone
from lsdc.nn.heads import pooled_logits
from lsdc.nn.network import Network
from lsdc.parallel import gather

LAMBDA = 0.45  # where the thresholds meet: lambda grows from 0 to it over the training


class DACLoss(DeepObjective):
    """Cross-entropy of the cosines of augmented predictions, with the certain pairs of plain ones as labels."""

    def losses(self, batch: Batch) -> dict[str, Tensor]:
        n = len(batch.indices)
        upper, lower = dac_thresholds(LAMBDA * batch.done)
        with torch.no_grad():
            p_plain = gather(self.network(self.views.plain(batch.x)).p, n)
        p = gather(self.network(self.views.augment(batch.x, batch.rng)).p, n)
        loss = dac_pair_loss(p, upper, lower, p_plain)
        alike, selected = dac_labels(p_plain, upper, lower)
        return {
            "loss": loss,
            "selected": selected.float().mean(),
            "alike": (alike * selected).mean(),
            **assigned(p_plain),
        }


class DAC(DeepEstimator):
    """Deep adaptive clustering: labels pairs of samples, the most certain ones first.

    Parameters
    ----------
    n_clusters : int
        The number of clusters K.
    backbone : {"auto", "vgg4", "vgg6", "resnet18", "mlp-norm", "mlp"} or callable ``(shape, width) -> Backbone``
        The network; "auto" is VGG-4 for small grey images, ResNet-18 for others, d-1200-1200 for vectors.
    width : float or "auto"
        Multiplies the network's channels.
    augment : {"auto", "affine", "crop", "crop-flip", "colour", "window", "noise", "dropout", "none"} or callable
        How the views that are trained on are made.
    pretext, pretext_plan
        Self-supervised pretraining, none by default, and changes to its training.
    epochs : int or "auto"
        Passes over the data; the thresholds move with them.
    n_init, batch_size, lr, random_state, device, n_workers
        As for ``LSDC``.

    Attributes
    ----------
    history_ : list of dict
        One record per epoch; ``selected`` is the share of pairs that were sure enough.
    labels_, n_clusters_, network_
        As for ``LSDC``.
    """

    method = "dac"
    behaviour = 2  # pooled logits
    objective = DACLoss
    takes = ("images", "dense vectors")

    def _defaults(self, shape: tuple[int, ...], sparse: bool) -> dict[str, Any]:
        network = {} if len(shape) == 3 else {"backbone": "mlp-norm"}
        return {**network, "lr": 1e-3, "batch_size": 128, "steps": 600, "least": 20}

    def _network(self, backbone: Backbone, settings: Settings) -> nn.Module:
        return Network(backbone, pooled_logits(backbone.n_features, backbone.n_places, settings.n_clusters))
