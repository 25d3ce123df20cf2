"""DEC: an autoencoder's codes, pulled towards centres by a sharpened version of their own soft assignment."""

from typing import Any

import torch
from sklearn.cluster import KMeans as Lloyd
from torch import Tensor, nn

from lsdc.data.augment import Views
from lsdc.data.sampler import Batch
from lsdc.data.sources import Data
from lsdc.functional import kl_to_target, soft_assignment, target_distribution
from lsdc.methods.autoencoder import AutoencoderEstimator
from lsdc.methods.deep import DeepObjective, Settings, assigned
from lsdc.nn.backbone import Backbone
from lsdc.nn.network import Output
from lsdc.parallel import gather, mean
from lsdc.pretext import mirrored
from lsdc.training.context import Context
from lsdc.training.health import Record
from lsdc.training.rng import derive

CHANGED = 1e-3  # the training ends when fewer samples than this share change their cluster (section 3.3)


class DECNetwork(nn.Module):
    """Codes ``z``, and ``q`` from their distances to the centres; the decoder reconstructs samples."""

    def __init__(self, backbone: Backbone, n_clusters: int) -> None:
        super().__init__()
        self.backbone, self.decoder = backbone, mirrored(backbone)
        self.centres = nn.Parameter(torch.zeros(n_clusters, backbone.n_features))

    def forward(self, x: Tensor) -> Output:
        z = self.backbone(x)
        q = soft_assignment(z, self.centres)
        return Output(z, q.log(), q)


class DECLoss(DeepObjective):
    """KL(P || Q), with P computed from all samples and held fixed for an epoch."""

    network: DECNetwork

    def __init__(self, network: DECNetwork, views: Views, settings: Settings, data: Data, context: Context) -> None:
        super().__init__(network, views, settings, data, context)
        n = len(data)
        self.keep(target=torch.zeros(n, settings.n_clusters), assigned=torch.full((n,), -1), changed=torch.ones(()))

    def start(self) -> None:
        """Centres by K-means on the codes."""
        z, _ = self.encoded()
        seed = derive(self.context.seed, "centres") % 2**32
        lloyd = Lloyd(self.settings.n_clusters, n_init=20, random_state=seed).fit(z.cpu().numpy())
        self.network.centres.data.copy_(torch.from_numpy(lloyd.cluster_centers_))

    def prepare(self, history: list[Record]) -> bool:
        """Compute P from Q of all samples; done if hardly any sample has changed its cluster since the last time."""
        _, q = self.encoded()
        labels = q.argmax(1)
        self.kept.changed = (labels != self.kept.assigned).float().mean()
        self.kept.target, self.kept.assigned = target_distribution(q), labels
        return bool(self.kept.changed < CHANGED)

    def losses(self, batch: Batch) -> dict[str, Tensor]:
        n, x = len(batch.indices), self.views.plain(batch.x)
        z, _, q = self.network(x)
        kl = mean(kl_to_target(self.rows("target", batch), q), len(x), n)
        return {**self.total(kl, z, x, n), "changed": self.kept.changed, **assigned(gather(q, n))}

    def total(self, kl: Tensor, z: Tensor, x: Tensor, n: int) -> dict[str, Tensor]:
        """The loss and its terms, for the codes ``z`` of samples ``x`` in a batch of ``n``; IDEC adds one."""
        return {"loss": kl, "kl": kl}


class DEC(AutoencoderEstimator):
    """Deep embedded clustering: an autoencoder's codes, refined by learning from confident assignments.

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
        At most this many passes over the data; training ends once fewer than 0.1 % of the samples change their cluster.
    n_init, batch_size, lr, random_state, device, n_workers
        As for ``LSDC``.

    Attributes
    ----------
    history_ : list of dict
        One record per epoch; ``changed`` is the share of samples whose cluster changed before it.
    labels_, n_clusters_, network_
        As for ``LSDC``.
    """

    method = "dec"
    objective = DECLoss

    def _defaults(self, shape: tuple[int, ...], sparse: bool) -> dict[str, Any]:
        return {**super()._defaults(shape, sparse), "optimizer": "sgd", "lr": 0.01, "steps": 500, "least": 20}

    def _network(self, backbone: Backbone, settings: Settings) -> nn.Module:
        return DECNetwork(backbone, settings.n_clusters)
