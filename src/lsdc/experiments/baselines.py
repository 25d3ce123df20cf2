"""The K-means rows next to every result."""

from typing import Any

import numpy as np

from lsdc.data.datasets import Dataset
from lsdc.methods import LSDC, KMeans, load
from lsdc.metrics import Scores, score
from lsdc.runs.folder import Run


def kmeans_rows(dataset: Dataset, y: np.ndarray, run: Run) -> dict[str, Scores]:
    """K-means on the inputs and, if the run's model had a pretext, on the features the pretext left."""
    model = load(run.path)
    seed = model.random_state
    rows = {"K-means on inputs": _scores(dataset, y, model.n_clusters_, seed)}
    if isinstance(model, LSDC) and (pretext := model.after_pretext(run)) is not None:
        rows["K-means on pretext features"] = _scores(pretext.transform(dataset.X), y, model.n_clusters_, seed)
    return rows


def _scores(X: Any, y: np.ndarray, n_clusters: int, seed: Any) -> Scores:
    model = KMeans(n_clusters, random_state=seed).fit(X)
    # K-means has no honest confidence: its assignments are hard
    return score(y, model.labels_, np.full(len(y), np.nan))._replace(confident_share=float("nan"))
