"""DAC: pairs that the network is sure of are labelled, and ever less sure ones as it learns."""

from typing import Any

import torch
from torch import Tensor, nn

from lsdc.data.augment import Views
from lsdc.data.sampler import Batch
from lsdc.data.sources import Data
from lsdc.functional import dac_labels, dac_pair_loss, dac_thresholds
from lsdc.methods.deep import assigned
from lsdc.methods.neural import DeepEstimator, DeepObjective, Settings
from lsdc.nn.backbone import Backbone
from lsdc.nn.network import Network
from lsdc.parallel import gather
from lsdc.training.loop import Context

LAMBDA = 0.45  # where the thresholds meet: lambda grows from 0 to it over the training


def pooled_logits(n_features: int, n_places: int, n_clusters: int) -> nn.Module:
    """A channel for each cluster, its mean over the places where it is positive, standardised, as the authors have it.

    What is found is then the same wherever it is; a layer on all places begins with clusters of places instead.
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


class Adaptive(DeepObjective):
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
    """Clusters by labelling pairs of samples, from the most certain ones on.

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
    batch_size, lr, random_state, device, n_workers
        As those of ``LSDC``.

    Attributes
    ----------
    labels_ : array (n,)
        The cluster of each sample of X.
    n_clusters_ : int
        The number of clusters.
    history_ : list of dict
        One record an epoch; ``selected`` is the share of pairs that were sure enough.
    network_ : Network
        The trained network.
    """

    method = "dac"
    behaviour = 2  # pooled logits
    takes = ("images", "dense vectors")

    def _defaults(self, shape: tuple[int, ...]) -> dict[str, Any]:
        network = {} if len(shape) == 3 else {"backbone": "mlp-norm"}
        return {**network, "lr": 1e-3, "batch_size": 128, "steps": 600, "least": 20}

    def _network(self, backbone: Backbone, settings: Settings) -> nn.Module:
        return Network(backbone, pooled_logits(backbone.n_features, backbone.n_places, settings.n_clusters))

    def _objective(self, network: Any, views: Views, settings: Any, data: Data, context: Context) -> DeepObjective:
        return Adaptive(network, views, settings, data, context)
