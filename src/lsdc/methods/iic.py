"""IIC: maximise the mutual information between the clusters of two views of a sample."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from lsdc.data.augment import Augment, Views
from lsdc.data.sampler import Batch
from lsdc.functional import iic_loss, sobel
from lsdc.methods.deep import DeepEstimator, DeepObjective, Settings, assigned
from lsdc.nn.backbone import Backbone
from lsdc.nn.heads import ManyHeads
from lsdc.nn.network import Network
from lsdc.parallel import gather
from lsdc.training.health import Record


class IICLoss(DeepObjective):
    """-I(z, z') of the plain and the augmented view, mean over the heads of one kind; the kinds take turns by epoch."""

    network: Network

    def losses(self, batch: Batch) -> dict[str, Tensor]:
        n, heads = len(batch.indices), self.network.head
        f = self.network.backbone(self.views.plain(batch.x))
        f2 = self.network.backbone(self.views.augment(batch.x, batch.rng))
        is_main = (self.settings.plan.epochs - 1 - int(batch.t)) % 2 == 0  # the last epoch is one of the main heads
        each = [
            iic_loss(gather(head(f).softmax(1), n), gather(head(f2).softmax(1), n))
            for head in (heads.main if is_main else heads.over)  # type: ignore[union-attr]
        ]
        losses = torch.stack(each)
        with torch.no_grad():
            shown = assigned(gather(heads(f).softmax(1), n))
        return {"loss": losses.mean(), "main" if is_main else "over": losses, **shown}

    def prepare(self, history: list[Record]) -> bool:
        """Let the head with the lowest loss in the last main epoch predict; choosing it needs no labels."""
        records = [record["main"] for record in history if "main" in record]
        if records:
            self.network.head.best.fill_(int(np.argmin(records[-1])))  # type: ignore[operator]
        return False

    def finish(self, history: list[Record]) -> None:
        self.prepare(history)


class IIC(DeepEstimator):
    """Invariant information clustering: maximises the mutual information between the predictions of two views.

    Parameters
    ----------
    n_clusters : int
        The number of clusters K; further heads with five times as many help the features.
    backbone : {"auto", "vgg4", "vgg6", "resnet18", "mlp-norm", "mlp"} or callable ``(shape, width) -> Backbone``
        The network; "auto" is VGG-4 for small grey images, ResNet-18 for others, d-1200-1200 for vectors.
    width : float or "auto"
        Multiplies the network's channels.
    augment : {"auto", "affine", "crop", "crop-flip", "colour", "window", "noise", "dropout", "none"} or callable
        How the second view is made; it is all the method knows about what belongs together.
    pretext, pretext_plan
        Self-supervised pretraining, none by default, and changes to its training.
    epochs : int or "auto"
        Passes over the data, alternating between the two kinds of heads.
    n_init, batch_size, lr, random_state, device, n_workers
        As for ``LSDC``.

    Attributes
    ----------
    labels_ : array (n,)
        The cluster of each sample of X, by the head with the lowest loss.
    history_ : list of dict
        One record per epoch; ``main`` or ``over`` are the losses of the heads that were trained.
    n_clusters_, network_
        As for ``LSDC``.
    """

    method = "iic"
    objective = IICLoss
    takes = ("images", "dense vectors")

    def _defaults(self, shape: tuple[int, ...], sparse: bool) -> dict[str, Any]:
        network = {} if len(shape) == 3 else {"backbone": "mlp-norm"}
        return {**network, "lr": 1e-3, "batch_size": 256, "steps": 350, "least": 16}

    def _build_views(self, settings: Settings) -> Views:
        """Show colour images by their edges, so that colour alone does not make a cluster."""
        views = super()._build_views(settings)
        if len(views.shape) == 1 or views.shape[0] == 1:
            return views
        return Views((2, *views.shape[1:]), partial(_edges, views.plain), partial(_edges_of, views.augment))

    def _network(self, backbone: Backbone, settings: Settings) -> nn.Module:
        return Network(backbone, ManyHeads(backbone.n_features, settings.n_clusters))


def _edges(plain: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    return sobel(plain(x))


def _edges_of(augment: Augment, x: Tensor, rng: torch.Generator) -> Tensor:
    return sobel(augment(x, rng))
