"""K-means on the same features as a sanity check: the cheap answer may explain the neighbours better."""

import warnings
from typing import Any, NamedTuple

import numpy as np
import torch
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from lsdc.data.sources import Data
from lsdc.functional import nearest
from lsdc.methods.base import Estimator
from lsdc.methods.graph import Fixed, graph_neighbours
from lsdc.nn.projection import FEW_FEATURES
from lsdc.training.modes import default_modes

SAMPLES = 5_000
MARGIN = 0.01  # of the information: differences this small come from rounding and the choice of samples
SAME = 0.95  # agreement above which people see the same partition


def is_better(kmeans: float, own: float) -> bool:
    """Whether K-means has more information about the neighbours, beyond the margin."""
    return kmeans > own + MARGIN * abs(own)


class KMeansComparison(NamedTuple):
    """How a partition compares with K-means, without labels: information about neighbours, and agreement."""

    method: str
    own: float
    kmeans: float
    agreement: float

    @property
    def is_worse(self) -> bool:
        """Whether K-means explains the neighbours better."""
        return is_better(self.kmeans, self.own)

    @property
    def verdict(self) -> str:
        """The comparison in one sentence for people."""
        if self.is_worse:
            return (
                "K-means on the same features explains which samples are neighbours better than these clusters do. "
                "Try another seed, or use K-means."
            )
        if self.agreement > SAME:
            return "K-means on the same features finds nearly the same clusters."
        return "These clusters explain which samples are neighbours at least as well as K-means on the same features."

    def as_dict(self) -> dict[str, Any]:
        """For comparison.json."""
        information = {self.method: self.own, "kmeans": self.kmeans}
        return {"agreement": self.agreement, "information": information, "verdict": self.verdict}


def compare_with_kmeans(model: Estimator, data: Data) -> KMeansComparison | None:
    """Compare a fitted model with K-means on its features, on at most 5,000 samples; None where that is meaningless.

    Documents are compared by their topics, as they were clustered before their words decided.
    """
    n, k = len(data), model.n_clusters_
    if n <= 10 or k < 2 or n < k or model.method == "kmeans":
        return None
    rows = np.sort(np.random.default_rng(0).permutation(n)[:SAMPLES])
    with default_modes():
        f = np.concatenate([features for features, _ in model._outputs(Data(data.X[rows], data.spec))])
    if not np.isfinite(f).all() or not f.var():
        return None
    features, labels = model._before(torch.from_numpy(f), torch.from_numpy(model.labels_[rows]))
    f = features.numpy()
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):  # copies of few samples
        other = KMeans(k, n_init=5, random_state=0).fit_predict(f)
    few = not data.spec.is_image and data.spec.shape[0] < FEW_FEATURES
    graph = Fixed(features, nearest(features, graph_neighbours(len(f), k), "l2").indices, few=few)
    own, cheap = (float(graph.worth(found.long(), k, graph.steps)) for found in (labels, torch.from_numpy(other)))
    return KMeansComparison(model.method, own, cheap, float(adjusted_rand_score(labels, other)))
