"""The plain network for vectors: d-500-500-2000 (section 4, Reuters-10K)."""

from torch import nn

from lsdc.nn.backbone import Backbone


def mlp(shape: tuple[int, ...], width: float = 1.0, sizes: tuple[int, ...] = (500, 500, 2000)) -> Backbone:
    """Linear layers with ReLU; the last hidden layer is the feature space."""
    (n_in,) = shape
    stages = []
    for size in sizes:
        n_out = max(1, round(size * width))
        stages.append(nn.Sequential(nn.Linear(n_in, n_out), nn.ReLU(inplace=True)))
        n_in = n_out
    return Backbone(stages, n_in)
