"""What sets a cluster apart: the features or words whose mean in it is farthest from the overall mean."""

import re
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from lsdc.data.sources import raw, row_chunks

LARGEST = 2**26  # clusters x features that are held at once
SHOWN = 5
WORDS = 8
EXCERPT = 240  # characters


class Feature(NamedTuple):
    """A feature of a cluster: its mean there, the overall mean, and the difference in standard deviations."""

    name: str
    here: float
    all: float
    deviations: float


def means(X: Any, labels: NDArray[np.int64], n_clusters: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The mean of each feature in each cluster (K, d), and its standard deviation over all samples (d,)."""
    total, square = np.zeros((n_clusters, X.shape[1])), np.zeros(X.shape[1])
    if sp.issparse(X):
        member = sp.csr_matrix((np.ones(len(labels)), (labels, np.arange(len(labels)))), (n_clusters, len(labels)))
        total, square = (member @ X).toarray(), np.asarray(X.multiply(X).sum(0)).ravel()
    else:
        for rows in row_chunks(X):
            part, mine = raw(X, rows).astype(np.float64), labels[rows]
            np.add.at(total, mine, part)
            square += np.square(part).sum(0)
    n = X.shape[0]
    spread = np.sqrt(np.maximum(square / n - np.square(total.sum(0) / n), 0))
    return total / np.maximum(np.bincount(labels, minlength=n_clusters), 1)[:, None], spread


def set_apart(X: Any, labels: NDArray[np.int64], n_clusters: int, names: list[str]) -> list[list[Feature]]:
    """For each cluster, the features farthest from the overall mean, in standard deviations."""
    if n_clusters * X.shape[1] > LARGEST:
        return [[] for _ in range(n_clusters)]
    here, spread = means(X, labels, n_clusters)
    sizes = np.bincount(labels, minlength=n_clusters)
    overall = (sizes @ here) / sizes.sum()
    away = (here - overall) / np.where(spread > 0, spread, np.inf)
    order = np.argsort(-np.abs(away), axis=1, kind="stable")[:, :SHOWN]
    return [
        [Feature(names[j], float(here[k, j]), float(overall[j]), float(away[k, j])) for j in order[k]]
        if sizes[k]
        else []
        for k in range(n_clusters)
    ]


def words_of(X: Any, labels: NDArray[np.int64], n_clusters: int, words: tuple[str, ...]) -> list[list[str]]:
    """For each cluster of texts, the words that weigh more there than elsewhere."""
    if n_clusters * X.shape[1] > LARGEST:
        return [[] for _ in range(n_clusters)]
    here, _ = means(X, labels, n_clusters)
    more = here - np.bincount(labels, minlength=n_clusters) @ here / len(labels)
    return [[words[j] for j in np.argsort(-row, kind="stable")[:WORDS] if row[j] > 0] for row in more]


def excerpt(text: str, terms: list[str], length: int = EXCERPT) -> list[tuple[str, bool]]:
    """An excerpt from the beginning of a text or around its first term, cut at words, in parts with terms marked."""
    text = " ".join(text.split())
    spoken = re.compile("|".join(rf"\b{re.escape(term)}\b" for term in terms), re.IGNORECASE) if terms else None
    found = spoken.search(text) if spoken else None
    start = text.rfind(" ", 0, max(found.start() - length // 3, 0)) + 1 if found and found.end() > length else 0
    shown = text[start : start + length]
    if start + length < len(text):
        shown = (shown[: shown.rfind(" ")] if " " in shown else shown) + " …"
    shown = ("… " if start else "") + shown
    parts, end = [], 0
    for match in spoken.finditer(shown) if spoken else ():
        parts += [(shown[end : match.start()], False), (match.group(), True)]
        end = match.end()
    return [part for part in [*parts, (shown[end:], False)] if part[0]]
