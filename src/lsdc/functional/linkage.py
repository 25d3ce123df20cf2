"""Agglomerative clustering on a sparse graph, as JULE merges: graph degree linkage, and a look at the nearest clusters.

One pair at a time, as in the paper, and exact. A merge costs as much as the smaller of the two clusters and their
neighbours, so 70,000 samples with 20 neighbours each take seconds (in dicts, as all of it is scalar work).
"""

from collections import defaultdict
from heapq import heapify, heappop, heappush, nlargest

import torch
from torch import Tensor

Row = dict[int, float]


@torch.no_grad()
def merge_clusters(W: Tensor, labels: Tensor, n_clusters: int, k: int = 5, least: float = 0) -> Tensor:
    """Merge the best pair of clusters, by their affinity in the sparse graph ``W``, until ``n_clusters`` are left.

    The best is the cluster with the highest ``merge_score``, with its nearest one. If no links are left between the
    clusters, the two smallest are merged. Clusters of fewer than ``least`` samples go first, the smallest with its
    nearest one: otherwise outliers that nobody links to would remain clusters of their own.
    """
    clusters = Clusters(W, labels.tolist(), k)
    while len(clusters.members) > n_clusters and (pair := clusters.smallest_pair(least)):
        clusters.merge(*pair)
    while len(clusters.members) > n_clusters:
        clusters.merge(*clusters.best_pair())
    order: dict[int, int] = {}
    return torch.tensor([order.setdefault(c, len(order)) for c in clusters.label], device=labels.device)


def merge_score(affinities: Row, k: int) -> float:
    """The affinity of the nearest cluster, plus how much it stands out among the k nearest on average (lambda = 1).

    Clusters without any link count as neighbours with affinity 0.
    """
    first, *others = nlargest(k, affinities.values())
    return first + (first - sum(others) / (k - 1) if k > 1 else 0.0)


class Clusters:
    """Merging clusters: their members, the links between them, and which pair comes next.

    ``into[c][j]`` is the weight of links from cluster c to sample j, ``out[c][j]`` of those from j to c, and
    ``both[c][d]`` the sum of their products over the samples j of cluster d.
    """

    def __init__(self, W: Tensor, label: list[int], k: int) -> None:
        self.label, self.k = label, k
        self.members: dict[int, list[int]] = defaultdict(list)
        for j, c in enumerate(label):
            self.members[c].append(j)
        self.into: dict[int, Row] = {c: defaultdict(float) for c in self.members}
        self.out: dict[int, Row] = {c: defaultdict(float) for c in self.members}
        for i, j, w in zip(*W.indices().tolist(), W.values().tolist(), strict=True):
            if label[i] != label[j]:
                self.into[label[i]][j] += w
                self.out[label[j]][i] += w
        self.both = {c: self._products(self.into[c], self.out[c]) for c in self.members}
        self.affinity: dict[int, Row] = {c: {} for c in self.members}
        for c, row in self.both.items():
            for d in row:
                self._link(c, d)
        self.version = dict.fromkeys(self.members, 0)
        self.queue = [self._entry(c) for c, row in self.affinity.items() if row]
        heapify(self.queue)

    def _products(self, few: Row, many: Row) -> Row:
        """The sum of few[j] many[j] over the samples j of each cluster."""
        result: Row = defaultdict(float)
        for j, w in few.items():
            if j in many:
                result[self.label[j]] += w * many[j]
        return result

    def _link(self, c: int, d: int) -> None:
        """A(c, d) = both(c, d) / |c|^2 + both(d, c) / |d|^2."""
        one = self.both[c].get(d, 0.0) / len(self.members[c]) ** 2
        other = self.both[d].get(c, 0.0) / len(self.members[d]) ** 2
        self.affinity[c][d] = self.affinity[d][c] = one + other

    def _entry(self, c: int) -> tuple[float, int, int]:
        return -merge_score(self.affinity[c], self.k), c, self.version[c]

    def best_pair(self) -> tuple[int, int]:
        """The cluster with the best score and its nearest; outdated entries of the queue are skipped."""
        while self.queue:
            _, c, version = heappop(self.queue)
            if self.version.get(c) == version:
                row = self.affinity[c]
                return c, max(row, key=lambda d: (row[d], -d))
        small, next_, *_ = sorted(self.members, key=lambda c: (len(self.members[c]), c))
        return small, next_

    def smallest_pair(self, least: float) -> tuple[int, int] | None:
        """The smallest cluster of fewer than ``least`` samples that links to any other, and its nearest."""
        for c in sorted(self.members, key=lambda c: (len(self.members[c]), c)):
            if len(self.members[c]) >= least:
                return None
            row = self.affinity[c] or self._one_way(c)
            if row:
                return c, max(row, key=lambda d: (row[d], -d))
        return None

    def _one_way(self, c: int) -> Row:
        """The weight of links from a cluster to every other."""
        result: Row = defaultdict(float)
        for j, w in self.into[c].items():
            if self.label[j] != c:
                result[self.label[j]] += w
        return result

    def merge(self, a: int, b: int) -> None:
        """Merge two clusters: the smaller one's links are added to the larger one's."""
        if len(self.into[a]) + len(self.out[a]) < len(self.into[b]) + len(self.out[b]):
            a, b = b, a
        crossed = (self._products(self.into[b], self.out[a]), self._products(self.out[b], self.into[a]))
        for more in (*crossed, self.both.pop(b)):
            _add(self.both[a], more)
        _add(self.into[a], self.into.pop(b))
        _add(self.out[a], self.out.pop(b))
        for j in self.members[b]:
            self.label[j] = a
        self.members[a] += self.members.pop(b)
        near = (self.affinity[a].keys() | self.affinity.pop(b).keys() | self.both[a].keys()) - {a, b}
        for inside in (a, b):
            self.both[a].pop(inside, None)
        self._relink(a, b, near)

    def _relink(self, a: int, b: int, near: set[int]) -> None:
        """Update affinities and queue entries of a cluster that absorbed ``b``, and of all linked to either."""
        self.affinity[a] = {}
        del self.version[b]
        for c in near:
            self.affinity[c].pop(b, None)
            if b in self.both[c]:
                self.both[c][a] = self.both[c].get(a, 0.0) + self.both[c].pop(b)
            self._link(a, c)
        for c in (a, *near):
            self.version[c] += 1
            if self.affinity[c]:
                heappush(self.queue, self._entry(c))


def _add(row: Row, more: Row) -> None:
    for key, value in more.items():
        row[key] = row.get(key, 0.0) + value
