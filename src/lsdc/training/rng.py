"""Randomness as an argument: one generator for each use, derived from the seed and the place where it is used.

Nothing is drawn from a shared stream, so the numbers of step 7 of epoch 3 do not depend on what ran before:
a resumed run, and any number of data workers, see the same ones without any state being stored.
"""

import hashlib

import torch

from lsdc import parallel
from lsdc.data.sampler import RowsOf


def derive(seed: int, *place: str | int) -> int:
    """A 63-bit seed for one place, e.g. ``derive(0, "clustering", epoch, step)``."""
    text = "/".join(map(str, (seed, *place)))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1


def generator(seed: int, *place: str | int) -> torch.Generator:
    """A generator for one place."""
    return torch.Generator().manual_seed(derive(seed, *place))


def rows_generator(n: int, seed: int, *place: str | int) -> torch.Generator:
    """A generator for a batch of ``n`` rows, or for the rows of it that this process holds."""
    if not parallel.is_member():
        return generator(seed, *place)
    rng = RowsOf()
    rows = parallel.own(range(n), n)
    rng.first, rng.last, rng.n = rows.start, rows.stop, n
    rng.manual_seed(derive(seed, *place))
    return rng
