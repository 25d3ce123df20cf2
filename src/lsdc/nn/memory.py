"""A memory of recent features: more samples to choose neighbours from than one batch holds."""

import torch
from torch import Tensor, nn


class Memory(nn.Module):
    """A queue of the last ``size`` samples' features; part of the module, so it is checkpointed with it."""

    ids: Tensor
    features: Tensor
    position: Tensor

    def __init__(self, size: int, n_features: int) -> None:
        super().__init__()
        self.register_buffer("ids", torch.full((size,), -1))
        self.register_buffer("features", torch.zeros(size, n_features))
        self.register_buffer("position", torch.zeros((), dtype=torch.long))

    def pooled(self, f: Tensor, ids: Tensor) -> Tensor:
        """The batch's features, followed by the remembered ones of other samples."""
        others = (self.ids >= 0) & ~torch.isin(self.ids, ids)
        return torch.cat([f, self.features[others]])

    def store(self, f: Tensor, ids: Tensor) -> None:
        """Remember a batch in place of the oldest samples."""
        size = len(self.ids)
        if not size:
            return
        f, ids = f[-size:], ids[-size:]
        self.ids[torch.isin(self.ids, ids)] = -1  # one entry per sample: its older features are forgotten
        slots = (self.position + torch.arange(len(ids), device=self.ids.device)) % size
        self.features[slots] = f.to(self.features.dtype)
        self.ids[slots] = ids
        self.position += len(ids)
