"""The base of all backbones: a sequence of stages, the first of which can be frozen."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from lsdc.errors import InputError
from lsdc.functional import at_least_single


class Backbone(nn.Module):
    """Features ``f = Phi(x)``; ``stages`` are the units of freezing (section 3.1: keep the earlier layers).

    ``n_places`` is the number of positions if the features are a flattened map of channels.
    """

    def __init__(self, stages: Sequence[nn.Module], n_features: int, n_places: int = 1) -> None:
        super().__init__()
        self.stages = nn.ModuleList(stages)
        self.n_features = n_features
        self.n_places = n_places
        self.n_frozen = 0

    def check_frozen(self, n_stages: int) -> None:
        """Refuse to freeze more stages than exist."""
        if not 0 <= n_stages <= len(self.stages):
            raise InputError(f"n_frozen must be between 0 and {len(self.stages)} for this network, got {n_stages}")

    def freeze(self, n_stages: int) -> None:
        """Freeze the first ``n_stages`` stages: no gradient, and batch norm uses its running statistics."""
        self.check_frozen(n_stages)
        self.n_frozen = n_stages
        for i, stage in enumerate(self.stages):
            stage.requires_grad_(i >= n_stages)
        self.train(self.training)

    def train(self, mode: bool = True) -> "Backbone":
        """As usual, but frozen stages stay in evaluation mode."""
        super().train(mode)
        for stage in self.stages[: self.n_frozen]:
            stage.eval()
        return self

    def forward(self, x: Tensor) -> Tensor:
        """Features (N, D) in fp32.

        On CUDA the stages run in bf16; everything after them (heads, distances, losses) needs fp32. On CPUs bf16 can
        kill the process, so there it is never used.
        """
        with torch.autocast("cuda", torch.bfloat16, enabled=x.is_cuda):
            with torch.no_grad():
                for stage in self.stages[: self.n_frozen]:
                    x = stage(x)
            for stage in self.stages[self.n_frozen :]:
                x = stage(x)
        return at_least_single(x.flatten(1))
