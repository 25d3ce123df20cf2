"""Who belongs together: the pairwise labels of section 3.2 (table 1 of the paper).

Each function takes features ``f`` (N, D) and returns the adjacency matrix ``A`` (N, N) of 0 and 1 in the
dtype of ``f``: symmetric, with ones on the diagonal, and without a gradient. Rows are handled in blocks, so
nothing larger than (N, N) is ever made.
"""

import math
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

Similarity = Callable[..., Tensor]

BLOCK = 2048  # rows at a time: 2048 x 16384 floats are 128 MB


def row_blocks(n: int) -> Iterator[slice]:
    """Slices that cover ``range(n)`` in blocks of rows."""
    return (slice(start, min(start + BLOCK, n)) for start in range(0, n, BLOCK))


def _prepare(f: Tensor) -> Tensor:
    if f.ndim != 2:
        raise ValueError(f"f must have two dimensions (samples, features), got shape {tuple(f.shape)}")
    f = f.detach()
    return f.float() if f.dtype in (torch.float16, torch.bfloat16) else f


def _squared_distances(a: Tensor, b: Tensor) -> Tensor:
    """|a_i - b_j|^2 by one matrix product; callers centre the features first, which keeps it exact enough."""
    return (a.square().sum(1, keepdim=True) + b.square().sum(1) - 2 * a @ b.T).clamp_(min=0)


def _own(values: Tensor, rows: slice) -> Tensor:
    """The entries of a block of rows that belong to the samples themselves, as a view."""
    return values[:, rows].diagonal()


def _centred(f: Tensor) -> Tensor:
    """Distances do not change under a shift, but rounding errors shrink with the norms."""
    return f - f.mean(0, keepdim=True)


@torch.no_grad()
def l2(f: Tensor, tau: float) -> Tensor:
    """A_ij = [|f_i - f_j|^2 < tau] (section 3.2, L2)."""
    f = _centred(_prepare(f))
    A = torch.empty(len(f), len(f), dtype=f.dtype, device=f.device)
    for rows in row_blocks(len(f)):
        A[rows] = (_squared_distances(f[rows], f) < tau).to(f.dtype)
    return A.fill_diagonal_(1)


@torch.no_grad()
def cosine(f: Tensor, tau: float) -> Tensor:
    """A_ij = [cos(f_i, f_j) > tau] (section 3.2, cosine)."""
    f = torch.nn.functional.normalize(_prepare(f), dim=1)
    A = torch.empty(len(f), len(f), dtype=f.dtype, device=f.device)
    for rows in row_blocks(len(f)):
        A[rows] = (f[rows] @ f.T > tau).to(f.dtype)
    return A.fill_diagonal_(1)


@torch.no_grad()
def sne(f: Tensor, tau: float, temperature: float = 1.0) -> Tensor:
    """A_ij = [(p_j|i + p_i|j) / 2 > tau], p_j|i a Gaussian neighbour probability (section 3.2, equations 1 and 2)."""
    f = _centred(_prepare(f))
    n = len(f)
    p = torch.zeros(n, n, dtype=f.dtype, device=f.device)  # p[i, j] = p_j|i
    for rows in row_blocks(n if n > 1 else 0):
        logits = -_squared_distances(f[rows], f) / temperature**2
        _own(logits, rows).fill_(-torch.inf)  # k != i
        p[rows] = logits.softmax(1)
    A = torch.empty_like(p)
    for rows in row_blocks(n):
        A[rows] = ((p[rows] + p[:, rows].T) / 2 > tau).to(f.dtype)
    return A.fill_diagonal_(1)


def _connect_nearest(nearest: Callable[[slice], Tensor], f: Tensor, rows: int) -> Tensor:
    """A of the first ``rows`` samples: connected if either is a neighbour (among all of ``f``) of the other."""
    A = torch.empty(rows, rows, dtype=f.dtype, device=f.device)
    for block in row_blocks(rows):
        neighbours = torch.zeros(block.stop - block.start, len(f), dtype=f.dtype, device=f.device)
        A[block] = neighbours.scatter_(1, nearest(block), 1)[:, :rows]
    for block in row_blocks(rows):  # or: the transpose, in place
        rest = slice(block.start, rows)
        either = torch.maximum(A[block, rest], A[rest, block].T)
        A[block, rest] = either
        A[rest, block] = either.T
    return A.fill_diagonal_(1)


def _check_k(k: int, n: int) -> None:
    if not 0 < k < n:
        raise ValueError(f"k must be between 1 and N - 1 = {n - 1} (the other samples of the batch), got {k}")


@torch.no_grad()
def knn(f: Tensor, k: int) -> Tensor:
    """A_ij = [j among the k nearest of i, or i among those of j] (section 3.2, kNN); k counts other samples."""
    f = _centred(_prepare(f))
    _check_k(k, len(f))

    def nearest(block: slice) -> Tensor:
        distances = _squared_distances(f[block], f)
        _own(distances, block).fill_(torch.inf)
        return distances.topk(k, dim=1, largest=False, sorted=False).indices

    return _connect_nearest(nearest, f, len(f))


@torch.no_grad()
def diffusion(f: Tensor, k: int, alpha: float = 0.99, rows: int | None = None) -> Tensor:
    """A_ij = [j among the k best reached from i, or i among those of j] (not in the paper: decision 1).

    Nearness by random walks on a sparse kNN graph follows the shape of a cluster, so that at the density near 1/K
    that keeps clusters alive fewer labels are wrong than by plain kNN. Samples that no path joins stay apart.
    ``rows`` asks for A of the first samples only, with all of ``f`` to walk on.
    """
    f = _prepare(f)
    n = len(f)
    _check_k(k, n)
    S = knn(f, min(n - 1, math.ceil(math.log2(n)))).fill_diagonal_(0)
    scale = S.sum(1).rsqrt_()
    S.mul_(scale[:, None]).mul_(scale)
    root = torch.linalg.cholesky(S.mul_(-alpha).fill_diagonal_(1))
    del S

    def best_reached(block: slice) -> Tensor:
        # D^-1/2 (I - alpha S)^-1 D^-1/2: visits of walks from i to j, over the share of visits any walk pays to j
        start = torch.zeros(n, block.stop - block.start, dtype=f.dtype, device=f.device)
        start[block].fill_diagonal_(1)
        visits = torch.cholesky_solve(start, root).T * scale
        _own(visits, block).fill_(0)
        reach, columns = visits.topk(k, dim=1, sorted=False)
        itself = torch.arange(block.start, block.stop, device=f.device)[:, None]
        return torch.where(reach > 0, columns, itself)  # no path: nobody but itself

    return _connect_nearest(best_reached, f, rows or n)


SIMILARITIES: dict[str, Similarity] = {"l2": l2, "cosine": cosine, "sne": sne, "knn": knn, "diffusion": diffusion}
