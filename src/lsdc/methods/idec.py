"""IDEC: DEC that keeps the decoder, so that codes cannot forget what they are codes of (Guo, Gao, Liu, Yin 2017)."""

from typing import Any

from lsdc.methods.dec import DEC, WARMUP, Refinement


class Preserving(Refinement):
    """MSE of the reconstruction + 0.1 KL(P || Q)."""

    weight = 0.1
    rebuilds = True


class IDEC(DEC):
    """Clusters of an autoencoder's codes, refined while the samples can still be rebuilt from them.

    Parameters
    ----------
    n_clusters, width, pretext_plan, epochs, batch_size, lr, random_state, device, n_workers
        As those of ``DEC``.

    Attributes
    ----------
    labels_, history_, network_
        As those of ``DEC``; ``rebuilt`` in a record is the reconstruction's mean squared error.
    """

    method = "idec"
    objective = Preserving

    def _defaults(self, shape: tuple[int, ...]) -> dict[str, Any]:
        return {**super()._defaults(shape), "optimizer": "adam", "lr": 1e-3, "warmup": WARMUP}
