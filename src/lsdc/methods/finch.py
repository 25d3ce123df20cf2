"""FINCH: link first neighbours, replace clusters by their means, repeat until one is left. No training."""

from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import PositiveInt
from torch import Tensor

from lsdc.data.sources import Data
from lsdc.errors import InputError, unknown
from lsdc.functional import cut, finch_partitions, natural, nearest_among
from lsdc.functional.neighbours import METRICS
from lsdc.methods.base import Arrays, Estimator
from lsdc.methods.saving import check_tensors
from lsdc.training import device as devices
from lsdc.training.context import Context
from lsdc.training.plan import Frozen

CHUNK = 4096  # samples to look up at a time: more than elsewhere, as all others are compared with each lot


class Settings(Frozen):
    """The settings of FINCH."""

    n_clusters: PositiveInt | None
    metric: Literal["cosine", "l2"]


class FINCH(Estimator):
    """Clustering by first neighbours: a hierarchy that needs neither a number of clusters nor a threshold.

    New samples join the cluster of the nearest training sample, so the model and its file contain all of them.

    Parameters
    ----------
    n_clusters : int or None
        The number of clusters K: the coarsest partition with at least K is merged further, closest pair first. Without
        it, FINCH picks the partition after which merging would have to reach farthest, compared with how far its own
        clusters reached.
    metric : {"cosine", "l2"}
        How samples and means are compared; angles are measured from the mean of dense vectors, otherwise from zero.
    random_state : int, RandomState or None
        Accepted for consistency; nothing is random here.
    device : {"auto", "cpu", "cuda"}
        Where to compute.

    Attributes
    ----------
    labels_ : array (n,)
        The cluster of each sample of X.
    n_clusters_ : int
        The number of clusters found.
    partitions_ : list of arrays (n,)
        The whole hierarchy, finest first: every cluster of a partition is a union of clusters of the one before it.
    """

    method = "finch"
    settings = Settings
    finds_n_clusters = True

    def __init__(
        self, n_clusters: Any = None, *, metric: str = "cosine", random_state: Any = None, device: str = "auto"
    ) -> None:
        self.n_clusters = n_clusters
        self.metric = metric
        self.random_state = random_state
        self.device = device

    def _resolve(self, shape: tuple[int, ...], n: int, sparse: bool = False) -> Settings:
        if self.metric not in METRICS:
            raise unknown("metric", self.metric, METRICS)
        settings: Settings = super()._resolve(shape, n, sparse)
        return settings

    def _fit(self, data: Data, settings: Settings, prepared: None, context: Context) -> None:
        self._samples = torch.cat([x.flatten(1) for x in data.chunks()])  # bit for bit what prediction will see
        f = self._samples.to(context.device)
        partitions = finch_partitions(f, settings.metric)
        if settings.n_clusters is None:
            labels = partitions[natural(partitions)].labels
        else:
            labels = cut(f, partitions, settings.n_clusters, settings.metric)
        self._clusters = labels.cpu()
        self.partitions_: list[NDArray[np.int64]] = [partition.labels.cpu().numpy() for partition in partitions]
        self.history_ = []

    def _outputs(self, data: Data) -> Arrays:
        """Features are the scaled inputs; probabilities are 0 or 1, as first neighbours have no degrees."""
        device = devices.choose(self.device)
        samples, n_clusters = self._samples.to(device), int(self._clusters.max()) + 1
        for x in data.chunks(CHUNK):
            f = x.flatten(1)
            first = nearest_among(f.to(device), samples, 1, self.settings_["metric"]).indices[:, 0].cpu()
            yield f.numpy(), torch.nn.functional.one_hot(self._clusters[first], n_clusters).float().numpy()

    def _own_outputs(self, data: Data) -> Arrays:
        """Each sample is its own nearest, and copies of it are in its cluster, unless K is too large for that."""
        first, wanted = self.partitions_[0].max() + 1, self.settings_["n_clusters"]
        if wanted is not None and wanted > first:  # then merging began with single samples
            yield from self._outputs(data)
            return
        n_clusters = int(self._clusters.max()) + 1
        for f, labels in zip(torch.split(self._samples, CHUNK), torch.split(self._clusters, CHUNK), strict=True):
            yield f.numpy(), torch.nn.functional.one_hot(labels, n_clusters).float().numpy()

    def _state(self) -> dict[str, Tensor]:
        hierarchy = torch.from_numpy(np.stack(self.partitions_))
        return {"samples": self._samples, "clusters": self._clusters, "partitions": hierarchy}

    def _restore(self, tensors: dict[str, Tensor], settings: Settings) -> None:
        n, levels = len(self.labels_), tensors.get("partitions", torch.empty(0)).shape[:1].numel()
        wanted = {
            "samples": torch.empty(n, self.n_features_in_, device="meta"),
            "clusters": torch.empty(n, dtype=torch.int64, device="meta"),
            "partitions": torch.empty(levels, n, dtype=torch.int64, device="meta"),
        }
        check_tensors(tensors, wanted)
        if tensors["clusters"].min() < 0 or int(tensors["clusters"].max()) + 1 != self.n_clusters_:
            raise InputError("the clusters of the samples are invalid")
        if not levels or tensors["partitions"].min() < 0 or tensors["partitions"].max() >= n:
            raise InputError("the partitions are invalid")
        self._samples, self._clusters = tensors["samples"], tensors["clusters"]
        self.partitions_ = list(tensors["partitions"].numpy())
