"""IMSAT: predictions that are informative about the samples and robust to the worst small perturbations."""

from typing import Any

import torch
from torch import Tensor, nn

from lsdc.data.augment import Views
from lsdc.data.sampler import Batch, draw
from lsdc.data.sources import Data
from lsdc.functional import information_loss, local_radius, vat_direction, vat_loss
from lsdc.methods.deep import DeepEstimator, DeepObjective, Settings, assigned
from lsdc.nn.backbone import Backbone
from lsdc.nn.network import Network
from lsdc.nn.norm import frozen_statistics
from lsdc.parallel import gather, mean
from lsdc.training.context import Context

WEIGHT = 0.1  # lambda: weight of the information against the smoothness
RANDOM_STEP = 4.0  # length of the random step in radii: as far as that neighbour, like the authors' 10 on their images
NEIGHBOUR = 10  # the radius of a sample is a quarter of the distance to this neighbour


class IMSATLoss(DeepObjective):
    """R_VAT + 0.1 (H(Y|X) - 4 H(Y)); each sample is perturbed within its own radius."""

    def __init__(self, network: nn.Module, views: Views, settings: Settings, data: Data, context: Context) -> None:
        super().__init__(network, views, settings, data, context)
        self.keep(radius=local_radius(self.inputs(), min(NEIGHBOUR, len(data) - 1)))

    def losses(self, batch: Batch) -> dict[str, Tensor]:
        n, x = len(batch.indices), self.views.augment(batch.x, batch.rng)
        _, logits, p = self.network(x)
        noise, radius, share = draw(torch.randn, x.shape, batch.rng), self.rows("radius", batch), len(x) / n
        with frozen_statistics(self.network):
            r = vat_direction(self._logits, x, radius, RANDOM_STEP * radius, logits=logits, noise=noise, share=share)
            smooth = vat_loss(self._logits, x, r, logits)
        smooth, p = mean(smooth, len(x), n), gather(p, n)
        information = information_loss(p)
        loss = smooth + WEIGHT * information
        return {"loss": loss, "smoothness": smooth, "information": -information, **assigned(p)}

    def _logits(self, x: Tensor) -> Tensor:
        logits: Tensor = self.network(x).logits
        return logits


class IMSAT(DeepEstimator):
    """Information maximising self-augmented training, with virtual adversarial perturbations.

    Parameters
    ----------
    n_clusters : int
        The number of clusters K.
    backbone : {"auto", "mlp-norm", "mlp", "vgg4", "vgg6", "resnet18"} or callable ``(shape, width) -> Backbone``
        The network; "auto" is d-1200-1200 with batch norm, for images too, which are flattened.
    width : float or "auto"
        Multiplies the network's layers.
    augment : {"auto", "none", "affine", ...} or callable
        How samples are augmented; "auto" is "none", as the perturbations take this role.
    pretext, pretext_plan
        Self-supervised pretraining, none by default, and changes to its training.
    epochs : int or "auto"
        Passes over the data.
    n_init, batch_size, lr, random_state, device, n_workers
        As for ``LSDC``.

    Attributes
    ----------
    history_ : list of dict
        One record per epoch: the losses, clusters alive, confidence.
    labels_, n_clusters_, network_
        As for ``LSDC``.
    """

    method = "imsat"
    behaviour = 2  # the start of the weights
    objective = IMSATLoss

    def _defaults(self, shape: tuple[int, ...], sparse: bool) -> dict[str, Any]:
        training = {"lr": 2e-3, "schedule": "constant", "batch_size": 250, "steps": 350, "least": 50}
        return {"backbone": "mlp-norm", "width": 0.5, "augment": "none", **training}

    def _network(self, backbone: Backbone, settings: Settings) -> nn.Module:
        head = nn.Linear(backbone.n_features, settings.n_clusters)
        small_weights(head, 1e-4)  # undecided at first
        if settings.backbone == "mlp-norm":
            for layer in (m for m in backbone.modules() if isinstance(m, nn.Linear)):
                small_weights(layer, 0.1)  # quick to move under batch norm
        return Network(backbone, head)


def small_weights(layer: nn.Linear, scale: float) -> None:
    """Weights as small as in the authors' code."""
    nn.init.normal_(layer.weight, std=scale / layer.in_features**0.5)
    nn.init.zeros_(layer.bias)
