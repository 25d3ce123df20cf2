"""Which samples go into which batch."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


class RowsOf(torch.Generator):
    """Random numbers for some rows of a batch, the same as a single process would draw for them (see ``draw``)."""

    first: int
    last: int
    n: int


def draw(random: Callable[..., Tensor], shape: Sequence[int], rng: torch.Generator) -> Tensor:
    """``torch.rand`` or ``torch.randn`` of a shape, one row per sample; with ``RowsOf``, only its rows of the batch."""
    if not isinstance(rng, RowsOf):
        return random(tuple(shape), generator=rng, device=rng.device)
    return random((rng.n, *shape[1:]), generator=rng, device=rng.device)[rng.first : rng.last]


@dataclass(frozen=True)
class Batch:
    """Samples ``x`` on the device, their ``indices`` in the data, the random generator of this step, and the time.

    ``t`` counts epochs, ``done`` is the finished share of the stage. Where several processes share a batch,
    ``x`` holds the rows of this one and ``indices`` all of the batch.
    """

    x: Tensor
    indices: Tensor
    rng: torch.Generator
    t: float
    done: float = 0.0


def batches(n: int, batch_size: int, rng: torch.Generator) -> list[Tensor]:
    """A random order of ``range(n)`` in batches of equal size; samples that do not fill a batch sit this epoch out.

    The pairwise labels depend on the batch size (k against N), so a batch of another size would be labelled
    by another rule.
    """
    order = torch.randperm(n, generator=rng)
    size = min(n, batch_size)
    return list(torch.split(order[: n - n % size], size))
