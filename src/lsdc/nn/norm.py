"""Batch norm over the whole batch when several processes hold parts of it, and passes that leave statistics alone."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from lsdc import parallel
from lsdc.functional import at_least_single


class SyncedBatchNorm(_BatchNorm):
    """As ``nn.BatchNorm1d`` to ``3d``, with mean and variance over the rows of all processes while training.

    Unlike torch's own, it also works on CPUs.
    """

    def _check_input_dim(self, input: Tensor) -> None:
        pass

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or not parallel.is_member():
            return super().forward(x)
        places = [0, *range(2, x.ndim)]
        shape = [1, -1] + [1] * (x.ndim - 2)
        values = at_least_single(x)
        n = parallel.total(values.new_tensor(values.numel() / values.shape[1]))
        mean = parallel.total(values.sum(places)) / n
        centred = values - mean.view(shape)
        variance = parallel.total(centred.square().sum(places)) / n
        self._track(mean.detach(), variance.detach() * (n / (n - 1)))
        y = centred * (variance + self.eps).rsqrt().view(shape)
        if self.affine:
            y = y * self.weight.view(shape) + self.bias.view(shape)
        return y.to(x.dtype)

    @torch.no_grad()
    def _track(self, mean: Tensor, variance: Tensor) -> None:
        if not self.track_running_stats:
            return
        if self.running_mean is None or self.running_var is None or self.num_batches_tracked is None:
            return
        self.num_batches_tracked += 1
        share = 1 / float(self.num_batches_tracked) if self.momentum is None else self.momentum
        self.running_mean.lerp_(mean, share)
        self.running_var.lerp_(variance, share)


def synchronised(module: nn.Module) -> nn.Module:
    """The module; in a job of several processes, with its batch norms replaced by synchronised ones."""
    if not parallel.is_member():
        return module
    if isinstance(module, _BatchNorm) and not isinstance(module, SyncedBatchNorm):
        synced = SyncedBatchNorm(module.num_features, module.eps, module.momentum, module.affine)
        synced.__dict__.update(module.__dict__)
        return synced
    for name, child in module.named_children():
        setattr(module, name, synchronised(child))
    return module


@contextmanager
def frozen_statistics(module: nn.Module) -> Iterator[None]:
    """Passes in this context leave the running statistics alone; in training mode batches still use their own.

    For samples that evaluation will never see, such as those of virtual adversarial training.
    """
    norms = [m for m in module.modules() if isinstance(m, _BatchNorm) and m.track_running_stats]
    try:
        for norm in norms:
            norm.track_running_stats = False  # in evaluation mode the running statistics are still used
        yield
    finally:
        for norm in norms:
            norm.track_running_stats = True
