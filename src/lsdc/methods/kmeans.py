"""K-means: Lloyd's algorithm with k-means++ starts, on the inputs or on the features of a pretext."""

from typing import Any

import numpy as np
import torch
from sklearn.cluster import KMeans as Lloyd
from torch import Tensor

from lsdc.data.sources import Data, flat
from lsdc.methods.base import Arrays, Estimator, whole_number
from lsdc.training.loop import Context
from lsdc.training.rng import derive


class KMeans(Estimator):
    """The baseline of every table: K centres, each sample with the nearest.

    Parameters
    ----------
    n_clusters : int
        The number of clusters K.
    n_init : int
        Starts from k-means++; the one with the smallest inertia is kept.
    random_state : int, RandomState or None
        The same number gives the same labels.
    device : str
        Accepted as for every method; K-means runs on the CPU.

    Attributes
    ----------
    labels_ : array (n,)
        The cluster of each sample of X.
    cluster_centers_ : array (n_clusters, d)
        The centres, in units of the scaled data.
    """

    method = "kmeans"
    n_clusters: int

    def __init__(
        self, n_clusters: int = 8, *, n_init: int = 20, random_state: Any = None, device: str = "auto"
    ) -> None:
        self.n_clusters = n_clusters
        self.n_init = n_init
        self.random_state = random_state
        self.device = device

    def _settings(self, data: Data) -> dict[str, Any]:
        return {"n_clusters": int(self.n_clusters), "n_init": whole_number("n_init", self.n_init)}

    def _fit(self, data: Data, context: Context) -> None:
        f = flat(data)
        seed = derive(context.seed, "kmeans") % 2**32
        lloyd = Lloyd(self.n_clusters, n_init=self.n_init, random_state=seed).fit(f)
        self.cluster_centers_ = lloyd.cluster_centers_.astype(np.float32)
        self.variance_ = np.float32(max(lloyd.inertia_ / np.prod(f.shape), 1e-12))
        self.history_ = []

    def _outputs(self, data: Data) -> Arrays:
        """Features are the scaled inputs; probabilities those of equal round Gaussians at the centres."""
        centres = torch.from_numpy(self.cluster_centers_)
        for x in data.chunks():
            f = x.flatten(1)
            nearness = f @ centres.T - centres.square().sum(1) / 2
            yield f.numpy(), (nearness / float(self.variance_)).softmax(1).numpy()

    def _state(self) -> dict[str, Tensor]:
        return {"centres": torch.from_numpy(self.cluster_centers_), "variance": torch.tensor(self.variance_)}

    def _restore(self, tensors: dict[str, Tensor], settings: dict[str, Any]) -> None:
        self.cluster_centers_ = tensors["centres"].numpy()
        self.variance_ = np.float32(tensors["variance"])
