"""DeepCluster: K-means labels the features before every epoch, and the network learns to predict these labels."""

from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from sklearn.cluster import KMeans as Lloyd
from torch import Tensor, nn

from lsdc.data.augment import Views
from lsdc.data.sampler import Batch
from lsdc.data.sources import Data
from lsdc.functional import uniform_over_clusters, whitening
from lsdc.methods.deep import DeepEstimator, DeepObjective, Settings, assigned
from lsdc.metrics import nmi
from lsdc.nn.backbone import Backbone
from lsdc.nn.centres import Centres
from lsdc.nn.network import Output, seeded
from lsdc.parallel import gather, mean, own
from lsdc.training import device as devices
from lsdc.training.context import Context
from lsdc.training.health import Record
from lsdc.training.rng import derive

COMPONENTS = 1 / 16  # of the features are kept when whitening: the paper's 256 of 4,096


class DeepClusterNetwork(nn.Module):
    """Features, whitened to unit length, and their nearest centres; a classifier that only training uses."""

    mean: Tensor
    axes: Tensor

    def __init__(self, backbone: Backbone, n_clusters: int) -> None:
        super().__init__()
        self.backbone = backbone
        n = max(1, min(round(COMPONENTS * backbone.n_features), n_clusters))  # K centres span no more directions
        self.register_buffer("mean", torch.zeros(backbone.n_features))
        self.register_buffer("axes", torch.zeros(backbone.n_features, n))
        self.centres = Centres(n_clusters, n)
        self.classifier = nn.Linear(backbone.n_features, n_clusters)

    def whitened(self, f: Tensor) -> Tensor:
        """The features by which samples are clustered."""
        return F.normalize((f - self.mean) @ self.axes, dim=1)

    def forward(self, x: Tensor) -> Output:
        f = self.backbone(x)
        logits = self.centres(self.whitened(f))
        return Output(f, logits, logits.softmax(1))


class DeepClusterLoss(DeepObjective):
    """Cross-entropy with the epoch's K-means labels, on samples drawn evenly from the clusters."""

    network: DeepClusterNetwork

    def __init__(
        self, network: DeepClusterNetwork, views: Views, settings: Settings, data: Data, context: Context
    ) -> None:
        super().__init__(network, views, settings, data, context)
        self.keep(labels=torch.full((len(data),), -1), agreement=torch.zeros(()))

    def prepare(self, history: list[Record]) -> bool:
        """Compute new labels and their agreement with the last ones, and reset the classifier."""
        labels = self.cluster(len(history))
        self.kept.agreement.fill_(nmi(self.kept.labels.cpu().numpy(), labels.cpu().numpy()))
        self.kept.labels = labels
        seed = derive(self.context.seed, self.name, "classifier", len(history))
        fresh = seeded(partial(nn.Linear, self.network.backbone.n_features, self.settings.n_clusters), seed)
        self.network.classifier.load_state_dict(fresh.state_dict())
        return False

    def cluster(self, epoch: int, n_init: int = 1) -> Tensor:
        """The K-means clusters of the whitened features, which become the network's centres."""
        f, _ = self.encoded()
        for buffer, value in zip(
            (self.network.mean, self.network.axes), whitening(f, self.network.axes.shape[1]), strict=True
        ):
            buffer.copy_(value)
        white = self.network.whitened(f)
        seed = derive(self.context.seed, self.name, "kmeans", epoch) % 2**32
        lloyd = Lloyd(self.settings.n_clusters, n_init=n_init, random_state=seed).fit(white.cpu().numpy())
        labels = torch.from_numpy(lloyd.labels_).long().to(f.device)
        self.network.centres.move_to(white, labels)
        return labels

    def finish(self, history: list[Record]) -> None:
        """A last K-means, from more starts."""
        self.cluster(len(history), n_init=20)

    def losses(self, batch: Batch) -> dict[str, Tensor]:
        n = len(batch.indices)
        drawn = own(uniform_over_clusters(self.kept.labels, n, batch.rng), n)
        x = devices.move(self.data.batch(drawn.cpu()), self.context.device).to(batch.x)
        logits = self.network.classifier(self.network.backbone(self.views.augment(x, batch.rng)))
        loss = mean(F.cross_entropy(logits, self.kept.labels[drawn]), len(x), n)
        p = F.one_hot(self.rows("labels", batch), logits.shape[1]).to(logits.dtype)
        shares = assigned(gather(p, n))["shares"]
        return {"loss": loss, "agreement": self.kept.agreement, "shares": shares}


class DeepCluster(DeepEstimator):
    """K-means on features that are trained to predict the clusters of the previous K-means.

    ``agreement`` in the records, the NMI of an epoch's clusters with the previous ones, shows whether it settles.

    Parameters
    ----------
    n_clusters : int
        The number of clusters K, of the training and of the result.
    backbone : {"auto", "resnet18", "vgg4", "vgg6", "mlp"} or callable ``(shape, width) -> Backbone``
        The network that makes features.
    width : float or "auto"
        Multiplies the network's channels.
    augment : {"auto", "affine", "crop", "crop-flip", "colour", "window", "noise", "dropout", "none"} or callable
        How the samples that are trained on are shown.
    pretext, pretext_plan
        Self-supervised pretraining, none by default, and changes to its training.
    epochs : int or "auto"
        Passes over the data, each with new labels.
    n_init, batch_size, lr, random_state, device, n_workers
        As for ``LSDC``.

    Attributes
    ----------
    labels_ : array (n,)
        The cluster of each sample of X: the nearest centre of a last K-means.
    n_clusters_ : int
        The number of clusters.
    history_ : list of dict
        One record per epoch.
    network_ : Network
        The trained network, with the whitening and the centres.
    """

    method = "deepcluster"
    objective = DeepClusterLoss

    def _defaults(self, shape: tuple[int, ...], sparse: bool) -> dict[str, Any]:
        sgd = {"optimizer": "sgd", "lr": 0.02, "weight_decay": 1e-5, "schedule": "constant"}
        return {**sgd, "batch_size": 64, "steps": 500, "least": 15}

    def _network(self, backbone: Backbone, settings: Settings) -> nn.Module:
        return DeepClusterNetwork(backbone, settings.n_clusters)
