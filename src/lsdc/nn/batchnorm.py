"""Batch norm that looks and does not remember."""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn


@contextmanager
def frozen_statistics(module: nn.Module) -> Iterator[None]:
    """Passes inside leave the running statistics alone, in training mode too, where batches still use their own.

    For passes that are not of the data, such as those of virtual adversarial training: their samples are not what
    evaluation will see.
    """
    norms = [m for m in module.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm) and m.track_running_stats]
    try:
        for norm in norms:
            norm.track_running_stats = False  # in evaluation mode the stored statistics are used all the same
        yield
    finally:
        for norm in norms:
            norm.track_running_stats = True
