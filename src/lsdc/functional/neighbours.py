"""Nearest neighbours and connected components, in tiles: never an N x N matrix."""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from lsdc.functional import similarity
from lsdc.functional.candidates import Rough
from lsdc.functional.similarity import row_blocks

METRICS = ("cosine", "l2")
MANY = 2048  # rows from which single precision looks for candidates first
PAIRS = 2**20  # numbers in the candidates that are compared at a time
SAME = 1e-14  # |a - b|^2 / |a|^2 up to which two rows count as equal: single precision resolves 1e-7


class Neighbours(NamedTuple):
    """Who is nearest to each row, nearest first: indices and distances (N, k)."""

    indices: Tensor
    distances: Tensor


@torch.no_grad()
def nearest(f: Tensor, k: int, metric: str = "l2", rows: Tensor | None = None) -> Neighbours:
    """The ``k`` nearest other rows of each row of ``f`` (or of the ``rows`` asked for), by distance or 1 - cosine.

    Ties go to the first row if k = 1 (to any if k > 1), and rows that single precision can hardly tell apart count as
    equal, so that the links of FINCH do not depend on rounding.
    """
    similarity._check_k(k, len(f))
    own = torch.arange(len(f), device=f.device) if rows is None else rows
    return _search(f if rows is None else f[rows], f, k, metric, own)


@torch.no_grad()
def nearest_among(queries: Tensor, f: Tensor, k: int, metric: str = "l2") -> Neighbours:
    """The ``k`` rows of ``f`` nearest to each query, with the rules of ``nearest``."""
    if not 0 < k <= len(f):
        raise ValueError(f"k must be between 1 and the {len(f)} rows to choose from, got {k}")
    return _search(queries, f, k, metric, torch.full((len(queries),), -1, device=f.device))


def _check_metric(metric: str) -> None:
    if metric not in METRICS:
        raise ValueError(f"metric must be one of {', '.join(METRICS)}, got {metric!r}")


def _search(queries: Tensor, f: Tensor, k: int, metric: str, own: Tensor) -> Neighbours:
    _check_metric(metric)
    f, queries = similarity._prepare(f), similarity._prepare(queries)
    origin = f.mean(0, dtype=torch.float64)
    indices = torch.empty(len(queries), k, dtype=torch.long, device=f.device)
    distances = torch.empty(len(queries), k, dtype=f.dtype, device=f.device)
    many = f.device.type == "cpu" and len(queries) >= MANY and len(f) >= MANY + k  # GPUs may round convolutions further
    rough = Rough(_placed(f[rows], metric, origin) for rows in row_blocks(len(f))) if many else None
    for rows in row_blocks(len(queries)):
        a = _placed(queries[rows], metric, origin)
        if rough:
            best, indices[rows] = _smallest_of_candidates(a, f, k, metric, origin, own[rows], rough)
        else:
            best, indices[rows] = _smallest_of_row(a, _tiles(f, k, metric, origin), k, own[rows])
        distances[rows] = (best.sqrt() if metric == "l2" else best / 2).to(f.dtype)
    return Neighbours(indices, distances)


def _smallest_of_candidates(
    a: Tensor, f: Tensor, k: int, metric: str, origin: Tensor, own: Tensor, rough: Rough
) -> tuple[Tensor, Tensor]:
    """As ``_smallest_of_row``: single precision finds candidates, double precision decides among them.

    Rows for which that may leave somebody out are compared with all others in double precision.
    """
    found, square = rough.candidates(a, k, own), a.square().sum(1, keepdim=True)
    exact = torch.full_like(found.values, torch.inf)
    pairs = found.possible.nonzero()
    for i, at in (part.unbind(1) for part in torch.split(pairs, max(1, PAIRS // a.shape[1]))):
        b = _placed(f[found.indices[i, at]], metric, origin)
        exact[i, at] = b.square().sum(1) - 2 * (a[i] * b).sum(1)
    as_promised = ((exact - found.values).abs() <= found.margin[:, None]) | ~found.possible
    exact = torch.maximum(exact, square * (SAME - 1))
    best, at = _smallest(exact, k)
    indices = found.indices.gather(1, at)
    best = _with_square(best, square)
    rest = (~(found.complete & as_promised.all(1))).nonzero()[:, 0]
    if len(rest):
        best[rest], indices[rest] = _smallest_of_row(a[rest], _tiles(f, k, metric, origin), k, own[rest])
    return best, indices


def _placed(f: Tensor, metric: str, origin: Tensor) -> Tensor:
    """Rows transformed so that squared distances express the metric, in double precision.

    A matrix product loses what is small beside the norms: in single precision all angles below 3e-4 are equal. Rows of
    zeros have no direction; an extra column makes them equal to each other and orthogonal to all others.
    """
    f = f.double()
    if metric == "l2":
        return f - origin
    norm = f.norm(dim=1, keepdim=True)
    return torch.cat([f / norm.clamp(min=torch.finfo(f.dtype).tiny), (norm == 0).to(f.dtype)], 1)


def _tiles(f: Tensor, k: int, metric: str, origin: Tensor) -> Iterator[tuple[slice, Tensor]]:
    """Columns to compare a block of rows with.

    For k = 1 few: 2048 x 512 doubles stay in the cache (1.4 times as fast as 2048^2). For larger k 8192 (128 MB), as
    topk is three times as fast per value on 8192 values as on 512.
    """
    for columns in row_blocks(len(f), max(1, similarity.BLOCK // 4) if k == 1 else 4 * similarity.BLOCK):
        yield columns, _placed(f[columns], metric, origin)


def _smallest_of_row(a: Tensor, tiles: Iterator[tuple[slice, Tensor]], k: int, own: Tensor) -> tuple[Tensor, Tensor]:
    """The k smallest |a_i - b_j|^2 of each row and their j; |a_i|^2 is the same for all j and added at the end."""
    square = a.square().sum(1, keepdim=True)
    best = torch.empty(len(a), 0, dtype=a.dtype, device=a.device)
    indices = torch.empty(len(a), 0, dtype=torch.long, device=a.device)
    for columns, b in tiles:
        values = torch.addmm(b.square().sum(1), a, b.T, alpha=-2)
        torch.maximum(values, square * (SAME - 1), out=values)  # equal rows are equally near, whatever the rounding
        mine = ((own >= columns.start) & (own < columns.stop)).nonzero()[:, 0]
        values[mine, own[mine] - columns.start] = torch.inf
        found, at = _smallest(values, k)
        best, indices = torch.cat([best, found], 1), torch.cat([indices, at + columns.start], 1)
        best, at = _smallest(best, k)
        indices = indices.gather(1, at)
    return _with_square(best, square), indices


def _with_square(best: Tensor, square: Tensor) -> Tensor:
    """Squared distances from values without |a_i|^2; of rows that count as equal 0."""
    best = best + square
    return torch.where(best <= 2 * SAME * square, 0, best)


def _smallest(values: Tensor, k: int) -> tuple[Tensor, Tensor]:
    if k == 1:
        found = values.min(1, keepdim=True)  # guarantees the first of ties, which topk does not
        return found.values, found.indices
    top = values.topk(min(k, values.shape[1]), dim=1, largest=False)
    return top.values, top.indices


def compact(labels: Tensor) -> Tensor:
    """The same clusters, numbered from 0 without gaps."""
    numbered: Tensor = torch.unique(labels, return_inverse=True)[1]
    return numbered


@torch.no_grad()
def components(links: Tensor, n: int) -> Tensor:
    """The connected component of each of ``n`` nodes, by ``links`` (2, E) between them, numbered by first member.

    Every component joins the lowest one it is linked with until nothing changes, which takes a handful of rounds.
    """
    label = torch.arange(n, device=links.device)
    while True:
        roots = label[links]
        lowest = roots.amin(0).expand(2, -1)
        lower = label.scatter_reduce(0, roots.flatten(), lowest.flatten(), "amin")
        lower = lower[lower]
        if torch.equal(lower, label):
            return compact(label)
        label = lower
