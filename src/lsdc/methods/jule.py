"""JULE: alternates between merging clusters and learning features, so that each helps the other."""

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lsdc.data.augment import Views
from lsdc.data.sampler import Batch
from lsdc.data.sources import Data
from lsdc.functional import (
    companions,
    first_neighbours,
    linked,
    merge_clusters,
    n_after,
    sparse_affinity,
    triplet_loss,
    triplets,
)
from lsdc.methods.deep import DeepEstimator, DeepObjective, Settings
from lsdc.nn.backbone import Backbone
from lsdc.nn.centres import Centres
from lsdc.nn.network import Output
from lsdc.parallel import gather, own
from lsdc.training import device as devices
from lsdc.training.context import Context
from lsdc.training.health import ALIVE, Record

N_FEATURES = 160
N_NEGATIVES = 20
RATE = 0.9  # the share of the clusters that a period merges away


class JULENetwork(nn.Module):
    """Features of unit length, and their nearest centres."""

    def __init__(self, backbone: Backbone, n_clusters: int) -> None:
        super().__init__()
        self.backbone = backbone
        self.projection = nn.Linear(backbone.n_features, N_FEATURES)
        self.centres = Centres(n_clusters, N_FEATURES)

    def forward(self, x: Tensor) -> Output:
        f = F.normalize(self.projection(self.backbone(x)), dim=1)
        logits = self.centres(f)
        return Output(f, logits, logits.softmax(1))


def first_features(inputs: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Images with mean zero and unit length, or those of low contrast would be near all others; vectors unchanged."""
    return F.normalize(inputs - inputs.mean(1, keepdim=True), dim=1) if len(shape) == 3 else inputs


def first_clusters(f: Tensor, least: int) -> Tensor:
    """Samples linked with their first neighbours, or every sample by itself if that leaves too few clusters."""
    labels = linked(first_neighbours(f, "l2").indices)
    return labels if int(labels.max()) + 1 >= least else torch.arange(len(f), device=f.device)


def merged(f: Tensor, labels: Tensor, n_clusters: int, last: bool) -> Tensor:
    """Clusters merged along the neighbour graph of the features; after the last merge all must be alive."""
    least = ALIVE * len(f) / n_clusters if last else 0
    return merge_clusters(sparse_affinity(f), labels, n_clusters, least=least)


class JULELoss(DeepObjective):
    """The triplet loss of the period's clusters, with a member of its cluster beside every sample of a batch."""

    network: JULENetwork

    def __init__(self, network: JULENetwork, views: Views, settings: Settings, data: Data, context: Context) -> None:
        super().__init__(network, views, settings, data, context)
        periods = math.log(max(len(data) / (4 * settings.n_clusters), 2)) / math.log(1 / (1 - RATE))
        self.period = math.ceil(settings.plan.epochs / math.ceil(periods))  # first neighbours make about n/4 clusters
        self.keep(labels=torch.arange(len(data)), clusters=torch.tensor(float(len(data))))

    def prepare(self, history: list[Record]) -> bool:
        """At the start of a period, merge clusters by the current features, the first time by the inputs."""
        if len(history) % self.period == 0:
            f = self.encoded()[0] if history else first_features(self.inputs(), self.views.shape)
            labels = self.kept.labels if history else first_clusters(f, self.settings.n_clusters)
            target = n_after(int(labels.max()) + 1, self.settings.n_clusters, RATE)
            self.kept.labels = merged(f, labels, target, last=target == self.settings.n_clusters)
            self.kept.clusters.fill_(target)
        return False

    def finish(self, history: list[Record]) -> None:
        """Set the centres of the last clusters, merged further if there are still too many."""
        f, _ = self.encoded()
        self.network.centres.move_to(f, merged(f, self.kept.labels, self.settings.n_clusters, last=True))

    def losses(self, batch: Batch) -> dict[str, Tensor]:
        n, labels = len(batch.indices), self.kept.labels
        partners = companions(labels, batch.indices.to(labels.device), batch.rng)
        more = devices.move(self.data.batch(own(partners, n).cpu()), self.context.device).to(batch.x)
        f, f2 = (gather(self.network(self.views.augment(x, batch.rng)).f, n) for x in (batch.x, more))
        of_both = torch.cat([labels[batch.indices.to(labels.device)], labels[partners]])
        anchors, positives, negatives = triplets(of_both, N_NEGATIVES, batch.rng)
        f = torch.cat([f, f2])
        return {"loss": triplet_loss(f[anchors], f[positives], f[negatives]), "clusters": self.kept.clusters}

    def summary(self, record: Record, history: list[Record]) -> Record:
        return {}


class JULE(DeepEstimator):
    """Joint unsupervised learning: agglomerative clustering on features that learn from the clusters.

    Parameters
    ----------
    n_clusters : int
        The number of clusters K.
    backbone : {"auto", "vgg4", "vgg6", "resnet18", "mlp"} or callable ``(shape, width) -> Backbone``
        The network; a linear layer to 160 features of unit length follows it.
    width : float or "auto"
        Multiplies the network's channels.
    augment : {"auto", "none", "affine", ...} or callable
        How samples are augmented in training; "auto" is "none".
    pretext, pretext_plan
        Self-supervised pretraining, none by default, and changes to its training.
    epochs : int or "auto"
        Passes over the data, divided into as many periods as it takes to merge 90 % of the clusters at a time.
    n_init, batch_size, lr, random_state, device, n_workers
        As for ``LSDC``.

    Attributes
    ----------
    labels_ : array (n,)
        The cluster of each sample of X: the nearest mean of the clusters merged by the learned features.
    n_clusters_ : int
        The number of clusters.
    history_ : list of dict
        One record per epoch; ``clusters`` says how many there were.
    network_ : Network
        The trained network, with the centres.
    """

    method = "jule"
    behaviour = 3  # outliers; contrast
    objective = JULELoss
    takes = ("images", "dense vectors")

    def _defaults(self, shape: tuple[int, ...], sparse: bool) -> dict[str, Any]:
        sgd = {"optimizer": "sgd", "lr": 0.01, "weight_decay": 5e-5, "schedule": "constant"}
        return {**sgd, "augment": "none", "batch_size": 100, "steps": 130, "least": 8}

    def _network(self, backbone: Backbone, settings: Settings) -> nn.Module:
        return JULENetwork(backbone, settings.n_clusters)
