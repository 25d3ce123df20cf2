"""How many clusters there are, without labels: communities, the eigengap, silhouettes, stability."""

import warnings
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from scipy.linalg import eigvalsh
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score, silhouette_score

from lsdc.data.sources import Data
from lsdc.errors import InputError, counted
from lsdc.functional import nearest
from lsdc.methods.communities import FEW_DIMENSIONS, n_communities, neighbour_graph
from lsdc.nn.projection import projection
from lsdc.training.rng import derive

Features = NDArray[np.float32]
AUTO = "auto"  # n_clusters="auto" asks for a suggestion
MIN_SAMPLES = 20  # samples; with fewer, clusters cannot be counted
SAMPLES = 10_000  # looked at in total ...
PART_SAMPLES = 5_000  # ... at a time for communities, so that every one of them takes part
KMEANS_SAMPLES = 1_500  # for K-means
REPEATS = 4
MAX_CLUSTERS = 20  # clusters that K-means tries
IMAGE_DIRECTIONS = 50  # principal directions of images
TEXT_DIRECTIONS = 20  # singular directions of sparse documents, as in LSD-C
FAR_OFF = 1.5  # times too many or too few clusters: worth a warning
COPY_DISTANCE = 0.1  # of the usual distance to the nearest sample
STABLE = 0.95  # agreement of K-means on two halves


@dataclass(frozen=True)
class Candidate:
    """The evidence for ``n_clusters``: votes of the communities, and scores where larger is better."""

    n_clusters: int
    votes: int
    eigengap: float
    silhouette: float | None  # undefined for one cluster
    stability: float | None


@dataclass(frozen=True)
class Suggestion:
    """A number of clusters, how sure it is ("sure", "fairly sure" or "a guess"), and the evidence for each number."""

    n_clusters: int
    sureness: str
    signals: dict[str, list[int]]
    candidates: tuple[Candidate, ...]
    n_samples: int

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)

    def in_words(self) -> str:
        """One line for people."""
        low, high = min(self.signals["communities"]), max(self.signals["communities"])
        range_ = f", between {low} and {high} in parts of the data" if low < high else ""
        what = "1 cluster: nothing separates the samples" if self.n_clusters == 1 else f"{self.n_clusters} clusters"
        return f"{what} ({self.sureness}{range_})"


def suggest(data: Data, seed: int = 0) -> Suggestion:
    """How many clusters there are, judged by the features that LSD-C would use or cheap ones like them."""
    if len(data) < MIN_SAMPLES:
        raise InputError(f"X has only {len(data)} samples, too few to count clusters; set n_clusters yourself")
    f, _ = features(data, seed)
    votes = [n_communities(part, derive(seed, "louvain", i)) for i, part in enumerate(_parts(f, seed))]
    some = _drawn(f, KMEANS_SAMPLES, seed, "some")
    gaps, (silhouettes, stabilities) = eigengaps(some), kmeans_scores(some, seed)
    signals = {
        "communities": votes,
        "eigengap": [1 + int(np.argmax(gaps))],
        "silhouette": [2 + int(np.argmax(silhouettes))],
        "stability": [_most_stable(stabilities)],
    }
    chosen = int(np.median(votes))
    candidates = []
    for n in range(1, max(MAX_CLUSTERS, *votes) + 1):
        gap = float(gaps[n - 1]) if n <= len(gaps) else 0.0
        of_kmeans = (silhouettes[n - 2], stabilities[n - 2]) if 2 <= n < len(silhouettes) + 2 else (None, None)
        candidates.append(Candidate(n, votes.count(n), gap, *of_kmeans))
    return Suggestion(chosen, _sureness(chosen, signals), signals, tuple(candidates), len(f))


def doubts(f: Features, n_clusters: int, seed: int = 0) -> list[str]:
    """A line for the user if the data supports far more or far fewer clusters than requested."""
    found = n_communities(_drawn(f, PART_SAMPLES // 2, seed, "doubts"), derive(seed, "louvain"))
    if n_clusters > FAR_OFF * found:
        what = "nothing separates the samples" if found == 1 else f"the data seems to have about {found}"
        return [f"too many? you asked for {counted(n_clusters, 'cluster')}, but {what}"]
    if found > FAR_OFF * n_clusters + 1:
        return [f"too few? you asked for {counted(n_clusters, 'cluster')}, but the data seems to have about {found}"]
    return []


def near_duplicates(f: Features) -> list[tuple[int, int, float]]:
    """Pairs (i, j, distance) much closer than usual; none in few dimensions, where that happens by chance."""
    found = nearest(torch.from_numpy(f), 2, "l2")
    _, dimensions = neighbour_graph(_drawn(f, KMEANS_SAMPLES, 0, "dimensions"))
    d, j = found.distances[:, 0].numpy(), found.indices[:, 0].numpy()
    usual = np.median(d)
    if dimensions < FEW_DIMENSIONS or usual == 0:
        return []
    close = np.flatnonzero(d < COPY_DISTANCE * usual)
    return [(int(i), int(j[i]), float(d[i])) for i in close if i < j[i] or j[j[i]] != i]


def features(data: Data, seed: int) -> tuple[Features, NDArray[np.int64]]:
    """Features to compare samples by: angles in leading directions of vectors or documents, pixels of images.

    Also returns which samples these are: large data is sampled.
    """
    rows = torch.from_numpy(np.sort(np.random.default_rng(derive(seed, "rows")).permutation(len(data))[:SAMPLES]))
    if sp.issparse(data.X):
        X = data.X[rows.numpy()].astype(np.float32)
        n = max(1, min(TEXT_DIRECTIONS, X.shape[1] - 1))
        f = TruncatedSVD(n, random_state=0).fit_transform(X)
        f = f / np.linalg.norm(f, axis=1, keepdims=True).clip(min=1e-12)
    elif data.spec.is_image:
        pixels = torch.cat([data.batch(part).flatten(1) for part in torch.split(rows, 1024)]).numpy()
        f = PCA(min(IMAGE_DIRECTIONS, *pixels.shape), random_state=0).fit_transform(pixels)
    else:
        x = data.batch(rows)
        stage: Any = projection(data.spec.shape).stages[0]
        f = stage.fit(x, -data.spec.offset / data.spec.scale, derive(seed, "directions")).numpy()
    return np.ascontiguousarray(f, np.float32), rows.numpy()


def _drawn(f: Features, n: int, seed: int, *place: str | int) -> Features:
    return f[np.random.default_rng(derive(seed, *place)).permutation(len(f))[:n]]


def _parts(f: Features, seed: int) -> list[Features]:
    """Random parts of the data: what shows up in all of them is not an accident."""
    return [_drawn(f, min(PART_SAMPLES, max(MIN_SAMPLES, len(f) * 4 // 5)), seed, "part", i) for i in range(REPEATS)]


def eigengaps(f: Features, most: int = MAX_CLUSTERS) -> NDArray[np.float64]:
    """Gaps after the first, second, ... eigenvalue of the graph's normalised Laplacian.

    With a dense solver: Lanczos finds the repeated zero of separate clusters only once, and crawls on long thin shapes.
    """
    A, _ = neighbour_graph(f)
    most = min(most, len(f) - 3)
    scale = sp.diags(1 / np.sqrt(np.asarray(A.sum(1)).ravel()))
    values = eigvalsh((scale @ A @ scale).toarray(), subset_by_index=[len(f) - most - 1, len(f) - 1])
    gaps: NDArray[np.float64] = -np.diff(values[::-1])
    return gaps


def kmeans_scores(f: Features, seed: int) -> tuple[list[float], list[float]]:
    """Silhouettes of K-means with 2, 3, ... clusters, and how well K-means on two halves of the samples agree."""
    silhouettes, stabilities = [], []
    halves = f[::2], f[1::2]
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):  # copies of few samples
        for n in range(2, min(MAX_CLUSTERS, len(f) // 4) + 1):
            lloyds = [KMeans(n, n_init=3, random_state=derive(seed, n) % 2**32).fit(part) for part in halves]
            first, second = (lloyd.predict(f) for lloyd in lloyds)
            stabilities.append(float(adjusted_rand_score(first, second)))
            parted = len(np.unique(first)) > 1
            silhouettes.append(float(silhouette_score(f, first)) if parted else 0.0)
    return silhouettes, stabilities


def _most_stable(stabilities: list[float]) -> int:
    """The largest number of clusters that both halves agree on, or the one they agree on best."""
    agreed = [i for i, stability in enumerate(stabilities) if stability >= STABLE]
    return 2 + (agreed[-1] if agreed else int(np.argmax(stabilities)))


def _sureness(chosen: int, signals: dict[str, list[int]]) -> str:
    """How sure a choice is, by how well parts of the data and the other signals agree."""
    votes = signals["communities"]
    others = [n for name, found in signals.items() if name != "communities" for n in found]
    if set(votes) == {chosen} and any(abs(n - chosen) <= chosen // 10 for n in others):
        return "sure"
    return "fairly sure" if max(votes) - min(votes) <= max(1, chosen // 4) else "a guess"
