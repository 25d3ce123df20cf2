"""VaDE: a variational autoencoder whose prior is a mixture of Gaussians, one for each cluster."""

from typing import Any

import numpy as np
import torch
from sklearn.mixture import GaussianMixture
from torch import Tensor, nn

from lsdc.data.sampler import Batch, draw
from lsdc.functional import Mixture, mixture_log_density, reparameterise, responsibilities, vade_loss
from lsdc.methods.autoencoder import WARMUP, AutoencoderEstimator
from lsdc.methods.deep import DeepObjective, Settings, assigned
from lsdc.nn.backbone import Backbone
from lsdc.nn.network import Output
from lsdc.parallel import gather, mean
from lsdc.pretext import decode, mirrored
from lsdc.training.rng import derive

FEWEST = 64  # values a sample counts as having at least: with fewer, the prior outweighs them and one cluster takes all


class VaDENetwork(nn.Module):
    """The encoder's last stage gives the mean of z, a parallel layer the log variance; the mixture is trained too."""

    def __init__(self, backbone: Backbone, n_clusters: int) -> None:
        super().__init__()
        self.backbone, self.decoder = backbone, mirrored(backbone)
        self.log_var = nn.Linear(backbone.stages[-1][0].in_features, backbone.n_features)  # type: ignore[index]
        self.shares = nn.Parameter(torch.zeros(n_clusters))
        self.mu = nn.Parameter(torch.zeros(n_clusters, backbone.n_features))
        self.log_var_c = nn.Parameter(torch.zeros(n_clusters, backbone.n_features))

    @property
    def mixture(self) -> Mixture:
        """The prior, its shares positive and of sum one."""
        return Mixture(self.shares.log_softmax(0), self.mu, self.log_var_c)

    def encode(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and log variance of z."""
        *hidden, last = self.backbone.stages
        for stage in hidden:
            x = stage(x)
        return last(x), self.log_var(x)

    def forward(self, x: Tensor) -> Output:
        z = self.backbone(x)
        logits = mixture_log_density(z, *self.mixture)
        return Output(z, logits, logits.softmax(1))


class VaDELoss(DeepObjective):
    """The negative evidence lower bound, with one draw of z for each sample."""

    network: VaDENetwork

    def start(self) -> None:
        """Start the prior as a Gaussian mixture of the codes, with equal shares."""
        network, z = self.network, self.encoded()[0].cpu().numpy()
        seed = derive(self.context.seed, "mixture") % 2**32
        mixture = GaussianMixture(self.settings.n_clusters, n_init=5, reg_covar=1e-4, random_state=seed).fit(z)
        variances = torch.from_numpy(np.diagonal(mixture.covariances_, axis1=1, axis2=2).copy())
        network.mu.data.copy_(torch.from_numpy(mixture.means_))
        network.log_var_c.data.copy_(variances.log())
        network.log_var.weight.data.zero_()  # so that z varies as much as codes within a component
        network.log_var.bias.data.copy_((torch.from_numpy(mixture.weights_) @ variances).log())

    def losses(self, batch: Batch) -> dict[str, Tensor]:
        n, x = len(batch.indices), self.views.plain(batch.x)
        m, log_var = self.network.encode(x)
        z = reparameterise(m, log_var, noise=draw(torch.randn, m.shape, batch.rng))
        gamma = responsibilities(z, *self.network.mixture)
        error = (decode(self.network.decoder, z) - x.flatten(1)).square().mean(1)
        rebuilding = error * max(x[0].numel(), FEWEST)
        loss = mean(vade_loss(rebuilding, m, log_var, gamma, self.network.mixture), len(x), n)
        rebuilt = mean(error.mean(), len(x), n)
        return {"loss": loss, "rebuilt": rebuilt, **assigned(gather(gamma, n))}


class VaDE(AutoencoderEstimator):
    """Variational deep embedding: the clusters are the components of a variational autoencoder's prior.

    The encoder is pretrained layer by layer, and the prior starts as a Gaussian mixture of its codes. A sample belongs
    to the most probable component at the mean of z.

    Parameters
    ----------
    epochs : int or "auto"
        Passes over the data.
    n_clusters, n_init, width, pretext_plan, batch_size, lr, random_state, device, n_workers
        As for ``DEC``.

    Attributes
    ----------
    history_ : list of dict
        One record per epoch; ``rebuilt`` is the mean squared error of the reconstruction.
    network_ : Network
        The trained network and its mixture.
    labels_, n_clusters_
        As for ``LSDC``.
    """

    method = "vade"
    behaviour = 2  # the start of the mixture
    objective = VaDELoss

    def _defaults(self, shape: tuple[int, ...], sparse: bool) -> dict[str, Any]:
        rate = {"lr": 2e-3, "schedule": "steps", "milestones": tuple(range(10, 1000, 10)), "gamma": 0.9}
        return {
            **super()._defaults(shape, sparse),
            **rate,
            "warmup": WARMUP,
            "batch_size": 100,
            "steps": 700,
            "least": 30,
        }

    def _network(self, backbone: Backbone, settings: Settings) -> nn.Module:
        return VaDENetwork(backbone, settings.n_clusters)
