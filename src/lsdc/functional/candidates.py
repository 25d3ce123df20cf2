"""Candidates for the nearest neighbours, from single precision: none is left out that double precision would pick."""

from collections.abc import Iterable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

SPARE = 8  # candidates beyond the k that are asked for
GROUP = 64  # columns in a group; at first, only the smallest value of each group is compared
WIDE = 16_384  # columns at a time: 2048 rows of them are 128 MB
UNIT = 2.0**-24  # rounding of single precision
IMAGES = 16  # of fewer images PyTorch passes a convolution to the slower product


class Candidates(NamedTuple):
    """For each row (N, k + SPARE): the columns, in order, |b_j|^2 - 2 a_i b_j and which of them may be among the k.

    ``margin`` (N,) is how far the values may be from the truth; ``complete`` says for which rows nobody is missing.
    """

    indices: Tensor
    values: Tensor
    possible: Tensor
    margin: Tensor
    complete: Tensor


class Rough:
    """Rows to search among, in single precision and with norms of one at most, so that rounding has a known limit."""

    def __init__(self, blocks: Iterable[Tensor]) -> None:
        rows = [block.float() for block in blocks]
        square = torch.cat([row.double().square().sum(1) for row in rows])
        largest = float(square.max().sqrt())
        self.is_bounded = 1e-15 < largest < 1e15  # else nothing is promised
        self.scale = largest if self.is_bounded else 1.0
        self.square = (square / self.scale**2).float()
        self.weight = torch.cat(rows).mul_(-2 / self.scale)

    def candidates(self, a: Tensor, k: int, own: Tensor) -> Candidates:
        """Those near the rows ``a`` (double precision); ``own`` says at which column each row itself is."""
        near = (a / self.scale).float()
        best, indices = near.new_empty(len(a), 0), own.new_empty(len(a), 0)
        for start in range(0, len(self.weight), WIDE):
            values = product(near, self.weight[start : start + WIDE], self.square[start : start + WIDE])
            mine = ((own >= start) & (own < start + values.shape[1])).nonzero()[:, 0]
            values[mine, own[mine] - start] = torch.inf
            found, at = smallest(values, k + SPARE)
            best, indices = torch.cat([best, found], 1), torch.cat([indices, at + start], 1)
            best, at = best.topk(min(k + SPARE, best.shape[1]), largest=False)
            indices = indices.gather(1, at)
        # a sum of D products is off by D roundings of |a| |b| at most, in whatever order they are added
        margin = UNIT * (2 * (a.shape[1] + 8) * near.double().norm(dim=1) + 4)
        limit = best[:, k - 1].double() + 2 * margin
        complete = best[:, -1] > limit if self.is_bounded else torch.zeros_like(limit, dtype=torch.bool)
        indices, order = indices.sort(1)
        values = best.gather(1, order).double()
        return Candidates(indices, values * self.scale**2, values <= limit[:, None], margin * self.scale**2, complete)


def product(a: Tensor, b: Tensor, bias: Tensor) -> Tensor:
    """``a @ b.T + bias``, as a convolution of single pixels.

    Convolutions are oneDNN's, which uses AVX-512 on every processor that has it; MKL's matrix product does not on those
    of AMD, and takes 2.4 times as long there (EPYC, one thread, 2048 x 128 and 8192 x 128).
    """
    rows = F.pad(a, (0, 0, 0, -len(a) % IMAGES)) if len(a) % IMAGES else a
    images = rows.view(IMAGES, -1, 1, a.shape[1]).permute(0, 3, 1, 2)
    return F.conv2d(images, b[:, :, None, None], bias).permute(0, 2, 3, 1).reshape(-1, len(b))[: len(a)]


def smallest(values: Tensor, m: int) -> tuple[Tensor, Tensor]:
    """The ``m`` smallest values of each row and where they are, in any order.

    They are in the m groups of columns with the smallest minima, so that few values are sorted: 2048 x 16384 take 18
    instead of 40 ms.
    """
    n_groups = -(-values.shape[1] // GROUP)
    if n_groups < 2 * m:
        found = values.topk(min(m, values.shape[1]), largest=False, sorted=False)
        return found.values, found.indices
    if values.shape[1] % GROUP:
        values = F.pad(values, (0, -values.shape[1] % GROUP), value=torch.inf)
    groups = values.view(len(values), n_groups, GROUP)
    chosen = groups.amin(2).topk(m, largest=False, sorted=False).indices
    first = n_groups * torch.arange(len(values), device=values.device)[:, None]
    some = groups.flatten(0, 1).index_select(0, (first + chosen).flatten()).view(len(values), -1)
    found = some.topk(m, largest=False, sorted=False)
    return found.values, chosen.gather(1, found.indices // GROUP) * GROUP + found.indices % GROUP
