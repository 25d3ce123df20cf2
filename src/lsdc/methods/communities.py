"""Communities of a neighbour graph, merged where they are one: how many clusters the data supports, without labels."""

from itertools import combinations
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import ArpackNoConvergence, eigsh

from lsdc.functional import nearest

Labels = NDArray[np.int64]
NEIGHBOURS = 15  # with 10, digits written in two styles fall apart: digits have 13 communities, not 11
PER_NEIGHBOUR, FEWEST = 20, 5  # samples for each of them, and how many there are at least
LEAST_CUT = 8  # nodes of a community through which a cut says something
SMALLEST = 0.01  # of the samples: smaller communities join the one they have most links with
FEW_DIMENSIONS = 4.0
# two communities are one if the cut between them is wider than this share of a cut through one of them
SAME = {"few dimensions": 0.3, "many dimensions": 0.6}
DENSE = 100  # nodes up to which all eigenvectors are found at once
STEPS = 200  # of a walk, where Lanczos does not find its slowest mode in time: long thin shapes


def n_neighbours(n: int) -> int:
    """How many neighbours tell clusters apart: 15, and fewer among few samples, whose clusters may be smaller."""
    return min(NEIGHBOURS, max(FEWEST, n // PER_NEIGHBOUR), n - 1)


def neighbour_graph(f: NDArray[np.float32], k: int | None = None) -> tuple[Any, float]:
    """The symmetric graph of the k nearest (mutual links weigh 1, others 1/2), and its intrinsic dimension.

    The dimension follows from how distances to neighbours grow (Levina and Bickel's maximum likelihood), by the median
    of the samples: a mean is lost to a few copies, whose distances are zero.
    """
    n, k = len(f), k or n_neighbours(len(f))
    found = nearest(torch.from_numpy(np.ascontiguousarray(f)), k, "l2")
    links = (np.full(n * k, 0.5), (np.repeat(np.arange(n), k), found.indices.numpy().ravel()))
    directed = sp.csr_matrix(links, (n, n))
    d = found.distances.numpy().clip(min=1e-12)
    growth = float(np.median(np.log(d[:, -1:] / d).sum(1))) / max(k - 2, 1)
    return (directed + directed.T).tocsr(), 1 / max(growth, 1e-9)


def louvain(A: Any, rng: np.random.Generator) -> Labels:
    """Communities of high modularity: nodes move to the community that gains most, communities become nodes."""
    labels = np.arange(A.shape[0])
    while True:
        moved = np.unique(_moved(A, rng), return_inverse=True)[1]
        labels = moved[labels]
        if moved.max() + 1 == A.shape[0]:
            return labels
        A = between(A, moved)


def between(A: Any, labels: Labels) -> Any:
    """The graph of the communities, weighted by the links between them."""
    n = len(labels)
    member = sp.csr_matrix((np.ones(n), (np.arange(n), labels)), (n, int(labels.max()) + 1))
    return (member.T @ A @ member).tocsr()


def _moved(A: Any, rng: np.random.Generator, most: int = 20) -> Labels:
    """Move each node into its best community, in rounds of random order, until hardly any moves."""
    n, ends, others, weights = A.shape[0], A.indptr.tolist(), A.indices.tolist(), A.data.tolist()
    degree: list[float] = np.asarray(A.sum(1)).ravel().tolist()
    community, total, volume = list(range(n)), list(degree), max(sum(degree), 1e-12)
    for _ in range(most):
        n_moved = 0
        for i in rng.permutation(n).tolist():
            own, share = community[i], degree[i] / volume
            total[own] -= degree[i]
            links = {own: 0.0}
            for e in range(ends[i], ends[i + 1]):
                if others[e] != i:
                    c = community[others[e]]
                    links[c] = links.get(c, 0.0) + weights[e]
            gains = {c: link - share * total[c] for c, link in links.items()}
            best = max(gains, key=gains.__getitem__)
            best = best if gains[best] > gains[own] + 1e-12 else own
            total[best] += degree[i]
            community[i] = best
            n_moved += best != own
        if n_moved <= n // 500:
            break
    return np.array(community)


def slowest_mode(A: Any) -> NDArray[np.float64]:
    """The second eigenvector of the random walk on a connected graph: what it takes longest to cross."""
    n, degree = A.shape[0], np.asarray(A.sum(1)).ravel()
    scale = sp.diags(1 / np.sqrt(degree))
    S = scale @ A @ scale
    if n <= DENSE:
        x = np.linalg.eigh(S.toarray())[1][:, -2]
    else:
        try:
            start = 1 + np.arange(n) / n
            values, vectors = eigsh(S, k=2, which="LA", v0=start, tol=1e-2, maxiter=12, ncv=24)
            x = vectors[:, values.argmin()]
        except ArpackNoConvergence:
            first = np.sqrt(degree / degree.sum())
            x = np.random.default_rng(0).normal(size=n)
            for _ in range(STEPS):
                x = (S @ x + x) / 2
                x -= first * (first @ x)
                x /= np.linalg.norm(x)
    mode: NDArray[np.float64] = scale @ x
    return mode


def width_of_cut(across: Any, first: Any, second: Any) -> Any:
    """Links ``across`` two parts over what chance would give parts of these volumes, up to a factor."""
    return across * (first + second) / np.maximum(first * second, 1e-12)


def narrowest(A: Any) -> float:
    """The width of the narrowest cut through a graph that leaves a fifth of the nodes on either side."""
    if A.shape[0] >= LEAST_CUT:
        part = connected_components(A)[1]
        inside = part == np.bincount(part).argmax()
        A = A[inside][:, inside]
    n = A.shape[0]
    if n < LEAST_CUT:
        return 1.0  # too small to cut
    order = np.argsort(slowest_mode(A), kind="stable")
    place = np.empty(n, np.int64)
    place[order] = np.arange(n)
    links = A.tocoo()
    a, b = place[links.row], place[links.col]
    opened, closed = (np.bincount(end(a, b), links.data / 2, n) for end in (np.minimum, np.maximum))
    across = np.cumsum(opened - closed)[:-1]  # after the first, the first two, ... nodes
    volume = np.cumsum(np.asarray(A.sum(1)).ravel()[order])
    widths = width_of_cut(across, volume[:-1], volume[-1] - volume[:-1])
    return float(widths[n // 5 : -(n // 5)].min())


class Merging:
    """Merges two communities while the cut between them is about as wide as a cut through one of them.

    The data sets its own yardstick. In few dimensions a cut gets narrower as clusters grow, so the larger of the two is
    the one to compare with; in many dimensions it does not, and the more compact one is the better reference.
    """

    def __init__(self, A: Any, labels: Labels, dimensions: float) -> None:
        few = dimensions < FEW_DIMENSIONS
        self.A, self.labels = A, labels.copy()
        self.reference, self.same = (min, SAME["few dimensions"]) if few else (max, SAME["many dimensions"])
        self.links: NDArray[np.float64] = between(A, labels).toarray()
        self.alive = set(range(len(self.links)))
        self.inside: dict[int, float] = {}

    def run(self) -> "Merging":
        """Merge until all remaining communities are separate."""
        self._absorb_small()
        while (closest := self.closest()) and closest[0] >= self.same:
            self._join(*closest[1:])
        return self

    def closest(self) -> tuple[float, int, int] | None:
        """The two communities with the widest cut between them, compared with one through them."""
        found = [(self._closeness(a, b), a, b) for a, b in combinations(sorted(self.alive), 2) if self.links[a, b] > 0]
        return max(found, default=None)

    def _closeness(self, a: int, b: int) -> float:
        across = self.links[a, b]
        width = width_of_cut(across, self.links[a, a] + across, self.links[b, b] + across)
        return float(width / max(self.reference(self._inside(a), self._inside(b)), 1e-12))

    def _inside(self, c: int) -> float:
        if c not in self.inside:
            members = self.labels == c
            self.inside[c] = narrowest(self.A[members][:, members])
        return self.inside[c]

    def _absorb_small(self) -> None:
        """Merge communities too small to be clusters into others; those without links stay outside."""
        least = max(n_neighbours(len(self.labels)), SMALLEST * len(self.labels))
        sizes = np.bincount(self.labels, minlength=len(self.links))
        while small := [c for c in self.alive if sizes[c] < least]:
            c = min(small, key=lambda one: (sizes[one], one))
            links = self.links[c].copy()
            links[c] = 0
            if links.any():
                to = int(links.argmax())
                sizes[to] += sizes[c]
                self._join(to, c)
            else:
                self.alive.discard(c)

    def _join(self, a: int, b: int) -> None:
        self.links[a] += self.links[b]
        self.links[:, a] += self.links[:, b]
        self.links[b] = self.links[:, b] = 0
        self.labels[self.labels == b] = a
        self.alive.discard(b)
        self.inside.pop(a, None)


def n_communities(f: NDArray[np.float32], seed: int) -> int:
    """How many clusters a neighbour graph of features (n, D) has."""
    A, dimensions = neighbour_graph(f)
    found = Merging(A, louvain(A, np.random.default_rng(seed)), dimensions).run()
    return max(1, len(found.alive))
