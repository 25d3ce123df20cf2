"""Which samples go into which batch."""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Batch:
    """Samples ``x`` on the device, their ``indices`` in the data, randomness for this step, and the time in epochs."""

    x: Tensor
    indices: Tensor
    rng: torch.Generator
    t: float


def batches(n: int, batch_size: int, rng: torch.Generator) -> list[Tensor]:
    """A random order of ``range(n)`` in batches of equal size; what does not fill a batch sits this epoch out.

    The pairwise labels depend on the batch size (k against N), so a batch of another size would be labelled
    by another rule.
    """
    order = torch.randperm(n, generator=rng)
    size = min(n, batch_size)
    return list(torch.split(order[: n - n % size], size))
