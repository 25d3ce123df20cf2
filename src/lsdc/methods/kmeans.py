"""K-means: Lloyd's algorithm with k-means++ starts, on the inputs or on the features of a pretext."""

from typing import Any

import numpy as np
import torch
from pydantic import PositiveInt
from sklearn.cluster import KMeans as Lloyd
from torch import Tensor

from lsdc.data.sources import Data, flat
from lsdc.errors import InputError
from lsdc.methods.base import Arrays, Estimator
from lsdc.methods.saving import check_tensors
from lsdc.methods.validation import whole_number
from lsdc.nn.centres import centre_logits
from lsdc.training.context import Context
from lsdc.training.plan import Frozen
from lsdc.training.rng import derive


class Settings(Frozen):
    """The settings of K-means."""

    n_clusters: PositiveInt
    n_init: PositiveInt


class KMeans(Estimator):
    """K-means, the baseline of every table: each sample belongs to the nearest of K centres.

    Parameters
    ----------
    n_clusters : int or "auto"
        The number of clusters K; "auto" counts them first (``lsdc.suggest_k``).
    n_init : int
        Starts from k-means++; the one with the smallest inertia is kept.
    random_state : int, RandomState or None
        The same number gives the same labels.
    device : str
        Accepted for consistency; K-means runs on the CPU.

    Attributes
    ----------
    cluster_centers_ : array (n_clusters, d)
        The centres, in units of the scaled data.
    variance_ : float
        The mean variance of the samples around their centres; probabilities follow from it.
    labels_, n_clusters_
        As for ``LSDC``.
    """

    method = "kmeans"
    settings = Settings

    def __init__(
        self, n_clusters: Any = 8, *, n_init: int = 20, random_state: Any = None, device: str = "auto"
    ) -> None:
        self.n_clusters = n_clusters
        self.n_init = n_init
        self.random_state = random_state
        self.device = device

    def _resolve(self, shape: tuple[int, ...], n: int, sparse: bool = False) -> Settings:
        whole_number("n_init", self.n_init)
        settings: Settings = super()._resolve(shape, n, sparse)
        return settings

    def _fit(self, data: Data, settings: Settings, prepared: None, context: Context) -> None:
        f = flat(data)
        seed = derive(context.seed, "kmeans") % 2**32
        lloyd = Lloyd(settings.n_clusters, n_init=settings.n_init, random_state=seed).fit(f)
        self.cluster_centers_ = lloyd.cluster_centers_.astype(np.float32)
        self.variance_ = np.float32(max(lloyd.inertia_ / np.prod(f.shape), 1e-12))
        self.history_ = []

    def _outputs(self, data: Data) -> Arrays:
        """Features are the scaled inputs; probabilities are those of equal round Gaussians at the centres."""
        centres = torch.from_numpy(self.cluster_centers_)
        for x in data.chunks():
            f = x.flatten(1)
            yield f.numpy(), centre_logits(f, centres, float(self.variance_)).softmax(1).numpy()

    def _state(self) -> dict[str, Tensor]:
        return {"centres": torch.from_numpy(self.cluster_centers_), "variance": torch.tensor(self.variance_)}

    def _restore(self, tensors: dict[str, Tensor], settings: Settings) -> None:
        shape = (settings.n_clusters, self.n_features_in_)
        check_tensors(tensors, {"centres": torch.empty(shape, device="meta"), "variance": torch.empty(())})
        if tensors["variance"] <= 0:
            raise InputError("the variance of the clusters must be positive")
        self.cluster_centers_ = tensors["centres"].clone().numpy()
        self.variance_ = np.float32(tensors["variance"])
