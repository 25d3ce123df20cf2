"""The pairwise labels of section 3.2 (table 1 of the paper): who belongs together.

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


def row_blocks(n: int, size: int | None = None) -> Iterator[slice]:
    """Slices that cover ``range(n)`` in blocks of rows."""
    size = size or BLOCK
    return (slice(start, min(start + size, n)) for start in range(0, n, size))


def _prepare(f: Tensor) -> Tensor:
    if f.ndim != 2:
        raise ValueError(f"f must have two dimensions (samples, features), got shape {tuple(f.shape)}")
    f = f.detach()
    return f.float() if f.dtype in (torch.float16, torch.bfloat16) else f


def _squared_distances(a: Tensor, b: Tensor) -> Tensor:
    """|a_i - b_j|^2 by one matrix product; callers centre the features first, which keeps it exact enough."""
    return (a.square().sum(1, keepdim=True) + b.square().sum(1) - 2 * a @ b.T).clamp_(min=0)


def _own(values: Tensor, rows: slice) -> Tensor:
    """The diagonal entries of a block of rows, as a view."""
    return values[:, rows].diagonal()


def _centred(f: Tensor) -> Tensor:
    """Centred features: distances stay the same, but rounding errors shrink with the norms."""
    return f - f.mean(0, keepdim=True)


@torch.no_grad()
def l2_scores(f: Tensor) -> Tensor:
    """-|f_i - f_j|^2: the more similar, the larger."""
    f = _centred(_prepare(f))
    return _by_blocks(f, lambda rows: -_squared_distances(f[rows], f))


@torch.no_grad()
def cosine_scores(f: Tensor) -> Tensor:
    """cos(f_i, f_j)."""
    f = torch.nn.functional.normalize(_prepare(f), dim=1)
    return _by_blocks(f, lambda rows: f[rows] @ f.T)


@torch.no_grad()
def sne_scores(f: Tensor, temperature: float = 1.0) -> Tensor:
    """The logarithm of (p_j|i + p_i|j) / 2, p_j|i a Gaussian neighbour probability; of a sample with itself -inf.

    In logarithms, as distant pairs still differ when their probabilities underflow to 0.
    """
    f = _centred(_prepare(f))

    def log_p(rows: slice) -> Tensor:
        logits = -_squared_distances(f[rows], f) / temperature**2
        _own(logits, rows).fill_(-torch.inf)  # k != i
        return logits.log_softmax(1) if len(f) > 1 else logits

    p = _by_blocks(f, log_p)
    for rows in row_blocks(len(f)):  # p_j|i meets p_i|j, in place
        rest = slice(rows.start, len(f))
        mean = torch.logaddexp(p[rows, rest], p[rest, rows].T) - math.log(2)
        p[rows, rest] = mean
        p[rest, rows] = mean.T
    return p


def _by_blocks(f: Tensor, scores: Callable[[slice], Tensor]) -> Tensor:
    result = torch.empty(len(f), len(f), dtype=f.dtype, device=f.device)
    for rows in row_blocks(len(f)):
        result[rows] = scores(rows)
    return result


def _above(scores: Tensor, tau: float) -> Tensor:
    """A of the pairs with a score above ``tau``, in place of the scores."""
    for rows in row_blocks(len(scores)):
        scores[rows] = (scores[rows] > tau).to(scores.dtype)
    return scores.fill_diagonal_(1)


def l2(f: Tensor, tau: float) -> Tensor:
    """A_ij = [|f_i - f_j|^2 < tau] (section 3.2, L2)."""
    return _above(l2_scores(f), -tau)


def cosine(f: Tensor, tau: float) -> Tensor:
    """A_ij = [cos(f_i, f_j) > tau] (section 3.2, cosine)."""
    return _above(cosine_scores(f), tau)


def sne(f: Tensor, tau: float, temperature: float = 1.0) -> Tensor:
    """A_ij = [(p_j|i + p_i|j) / 2 > tau], p_j|i a Gaussian neighbour probability (section 3.2, equations 1 and 2)."""
    return _above(sne_scores(f, temperature), math.log(tau) if tau > 0 else -torch.inf)


@torch.no_grad()
def closest(scores: Tensor, n_pairs: int) -> Tensor:
    """A of the ``n_pairs`` pairs with the highest scores (more, if some are equal)."""
    n = len(scores)
    if not 0 < n_pairs <= n * (n - 1) // 2:
        raise ValueError(f"n_pairs must be between 1 and N (N - 1) / 2 = {n * (n - 1) // 2}, got {n_pairs}")
    scores = scores.clone().fill_diagonal_(-torch.inf)
    least = scores.flatten().kthvalue(n * n - 2 * n_pairs + 1).values  # each pair is there twice
    return (scores >= least).to(scores.dtype).fill_diagonal_(1)


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
def knn(f: Tensor, k: int, rows: int | None = None) -> Tensor:
    """A_ij = [j among the k nearest of i, or i among those of j] (section 3.2, kNN); k counts other samples.

    ``rows`` asks for A of the first samples only, their neighbours chosen among all of ``f``: a large pool is cheap.
    """
    f = _centred(_prepare(f))
    _check_k(k, len(f))

    def nearest(block: slice) -> Tensor:
        distances = _squared_distances(f[block], f)
        _own(distances, block).fill_(torch.inf)
        return distances.topk(k, dim=1, largest=False, sorted=False).indices

    return _connect_nearest(nearest, f, rows or len(f))


SCORES: dict[str, Similarity] = {"l2": l2_scores, "cosine": cosine_scores, "sne": sne_scores}
SIMILARITIES: dict[str, Similarity] = {"l2": l2, "cosine": cosine, "sne": sne, "knn": knn}
