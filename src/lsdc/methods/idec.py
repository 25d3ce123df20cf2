"""IDEC: DEC that keeps training the decoder, so that codes still describe their samples (Guo et al. 2017)."""

from typing import Any

from torch import Tensor, nn

from lsdc.methods.autoencoder import WARMUP, AutoencoderEstimator
from lsdc.methods.dec import DECLoss, DECNetwork
from lsdc.methods.deep import Settings
from lsdc.nn.backbone import Backbone
from lsdc.parallel import mean
from lsdc.pretext import decode

GAMMA = 0.1  # weight of the clustering term


class IDECLoss(DECLoss):
    """MSE of the reconstruction + 0.1 KL(P || Q)."""

    def total(self, kl: Tensor, z: Tensor, x: Tensor, n: int) -> dict[str, Tensor]:
        error = nn.functional.mse_loss(decode(self.network.decoder, z), x.flatten(1))
        rebuilt = mean(error, len(x), n)
        return {"loss": rebuilt + GAMMA * kl, "kl": kl, "rebuilt": rebuilt}


class IDEC(AutoencoderEstimator):
    """Improved DEC: an autoencoder's codes, refined while they still reconstruct the samples.

    Parameters
    ----------
    n_clusters, n_init, width, pretext_plan, epochs, batch_size, lr, random_state, device, n_workers
        As for ``DEC``.

    Attributes
    ----------
    labels_, history_, network_
        As for ``DEC``; ``rebuilt`` in a record is the mean squared error of the reconstruction.
    """

    method = "idec"
    objective = IDECLoss

    def _defaults(self, shape: tuple[int, ...], sparse: bool) -> dict[str, Any]:
        adam = {"optimizer": "adam", "lr": 1e-3, "warmup": WARMUP}
        return {**super()._defaults(shape, sparse), **adam, "steps": 500, "least": 20}

    def _network(self, backbone: Backbone, settings: Settings) -> nn.Module:
        return DECNetwork(backbone, settings.n_clusters)
