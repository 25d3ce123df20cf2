"""DEC: an autoencoder's codes, pulled towards centres by a sharpened version of their own soft assignment."""

from functools import partial
from typing import Any

import torch
from sklearn.cluster import KMeans as Lloyd
from torch import Tensor, nn

from lsdc.data.augment import Views
from lsdc.data.sampler import Batch
from lsdc.data.sources import Data
from lsdc.functional import kl_to_target, soft_assignment, target_distribution
from lsdc.methods.deep import assigned
from lsdc.methods.neural import DeepEstimator, DeepObjective, Settings
from lsdc.nn.backbone import Backbone
from lsdc.nn.network import Output
from lsdc.parallel import gather, mean
from lsdc.pretext import StackedAutoencoder, decode, mirrored
from lsdc.training.health import Record
from lsdc.training.loop import Context
from lsdc.training.rng import derive

WARMUP = 2.0  # epochs in which Adam's rate grows: at full length its first steps can undo the pretraining
CHANGED = 1e-3  # the training ends when fewer samples than this share change their cluster (section 3.3)


class Network(nn.Module):
    """Codes ``z``, and ``q`` by their distances from the centres; the decoder gives samples back."""

    def __init__(self, backbone: Backbone, n_clusters: int) -> None:
        super().__init__()
        self.backbone, self.decoder = backbone, mirrored(backbone)
        self.centres = nn.Parameter(torch.zeros(n_clusters, backbone.n_features))

    def forward(self, x: Tensor) -> Output:
        z = self.backbone(x)
        q = soft_assignment(z, self.centres)
        return Output(z, q.log(), q)


class Refinement(DeepObjective):
    """KL(P || Q) with P of all samples, held fixed for an epoch; IDEC adds what the decoder loses."""

    network: Network
    weight = 1.0  # of the KL divergence
    rebuilds = False

    def __init__(self, network: Network, views: Views, settings: Settings, data: Data, context: Context) -> None:
        super().__init__(network, views, settings, data, context)
        n = len(data)
        self.keep(target=torch.zeros(n, settings.n_clusters), assigned=torch.full((n,), -1), changed=torch.ones(()))

    def prepare(self, history: list[Record]) -> bool:
        """P from Q of all samples; done if hardly any of them has changed its cluster since the last time."""
        _, q = self.encoded()
        labels = q.argmax(1)
        self.kept.changed = (labels != self.kept.assigned).float().mean()
        self.kept.target, self.kept.assigned = target_distribution(q), labels
        return bool(self.kept.changed < CHANGED)

    def losses(self, batch: Batch) -> dict[str, Tensor]:
        n, x = len(batch.indices), self.views.plain(batch.x)
        z, _, q = self.network(x)
        kl = mean(kl_to_target(self.rows("target", batch), q), len(x), n)
        if not self.rebuilds:
            return {"loss": self.weight * kl, "kl": kl, "changed": self.kept.changed, **assigned(gather(q, n))}
        lost = mean(nn.functional.mse_loss(decode(self.network.decoder, z), x.flatten(1)), len(x), n)
        loss = lost + self.weight * kl
        return {"loss": loss, "kl": kl, "rebuilt": lost, "changed": self.kept.changed, **assigned(gather(q, n))}


class AutoencoderEstimator(DeepEstimator):
    """A method on the codes of a stacked autoencoder d-500-500-2000-10; images are flattened."""

    def __init__(
        self,
        n_clusters: Any = 8,
        *,
        width: Any = "auto",
        pretext_plan: Any = None,
        epochs: Any = "auto",
        batch_size: Any = "auto",
        lr: Any = "auto",
        random_state: Any = None,
        device: str = "auto",
        n_workers: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.width = width
        self.pretext_plan = pretext_plan
        self.epochs = epochs
        self.batch_size = batch_size
        self.lr = lr
        self.random_state = random_state
        self.device = device
        self.n_workers = n_workers

    def _defaults(self, shape: tuple[int, ...]) -> dict[str, Any]:
        fixed = {"backbone": "coder", "augment": "none", "pretext": "stacked", "width": 0.5, "schedule": "constant"}
        return {**fixed, "batch_size": 256, "pretext_batch": 256, "pretext_steps": 3000, "pretext_least": 60}

    @classmethod
    def pretext_settings(cls, settings: dict[str, Any]) -> dict[str, Any]:
        return {**super().pretext_settings(settings), "decoder": "kept"}

    def _pretext(self, network: Any, settings: Settings) -> Any:
        return partial(StackedAutoencoder, decoder=network.decoder)


class DEC(AutoencoderEstimator):
    """Clusters of an autoencoder's codes, refined by learning from confident assignments.

    The code is pretrained layer by layer, the centres start from K-means and are trained with the encoder.

    Parameters
    ----------
    n_clusters : int
        The number of clusters K.
    width : float or "auto"
        Multiplies the hidden layers of the encoder d-500-500-2000-10.
    pretext_plan : dict or None
        Changes to the pretraining, e.g. ``{"epochs": 20}``; the layers are trained one by one in its first half.
    epochs : int or "auto"
        Most passes over the data; it ends when fewer than 0.1 % of the samples change their cluster.
    batch_size, lr, random_state, device, n_workers
        As those of ``LSDC``.

    Attributes
    ----------
    labels_ : array (n,)
        The cluster of each sample of X.
    n_clusters_ : int
        The number of clusters.
    history_ : list of dict
        One record an epoch; ``changed`` is the share of samples whose cluster changed before it.
    network_ : Network
        The trained network.
    """

    method = "dec"
    objective = Refinement

    def _defaults(self, shape: tuple[int, ...]) -> dict[str, Any]:
        return {**super()._defaults(shape), "optimizer": "sgd", "lr": 0.01, "steps": 500, "least": 20}

    def _network(self, backbone: Backbone, settings: Settings) -> nn.Module:
        return Network(backbone, settings.n_clusters)

    def _objective(self, network: Any, views: Views, settings: Any, data: Data, context: Context) -> DeepObjective:
        objective = self.objective(network, views, settings, data, context)
        z, _ = objective.encoded()
        seed = derive(context.seed, "centres") % 2**32
        centres = Lloyd(settings.n_clusters, n_init=20, random_state=seed).fit(z.cpu().numpy()).cluster_centers_
        network.centres.data.copy_(torch.from_numpy(centres))  # a checkpoint of the stage brings its own
        return objective
