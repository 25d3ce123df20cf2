"""A memory of recent features: more samples to choose neighbours from than one batch holds."""

from typing import Any, Self

import torch
from torch import Tensor, nn


class Memory(nn.Module):
    """A queue of the last ``size`` samples' features; part of the module, so it is checkpointed with it.

    Which samples these are stays in main memory: how many there are decides shapes, and a GPU would halt to tell.
    """

    ids: Tensor
    features: Tensor
    position: Tensor

    def __init__(self, size: int, n_features: int) -> None:
        super().__init__()
        self.register_buffer("ids", torch.full((size,), -1))
        self.register_buffer("features", torch.zeros(size, n_features))
        self.register_buffer("position", torch.zeros((), dtype=torch.long))

    def _apply(self, fn: Any, recurse: bool = True) -> Self:
        ids, position = self.ids, self.position
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        self.ids, self.position = ids, position
        return self

    def pooled(self, f: Tensor, ids: Tensor) -> Tensor:
        """The batch's features, followed by the remembered ones of other samples."""
        others = ((self.ids >= 0) & ~torch.isin(self.ids, ids)).nonzero()[:, 0]
        return torch.cat([f, self.features[others.to(f.device, non_blocking=True)]])

    def store(self, f: Tensor, ids: Tensor) -> None:
        """Remember a batch in place of the oldest samples."""
        size = len(self.ids)
        if not size:
            return
        f, ids = f[-size:], ids[-size:]
        self.ids[torch.isin(self.ids, ids)] = -1  # one entry per sample: its older features are forgotten
        slots = (self.position + torch.arange(len(ids))) % size
        self.features[slots.to(f.device, non_blocking=True)] = f.to(self.features.dtype)
        self.ids[slots] = ids
        self.position += len(ids)
