"""Plain networks of linear layers: d-500-500-2000 (section 4, Reuters-10K), and those of the methods compared with."""

from math import prod

from torch import nn

from lsdc.nn.backbone import Backbone

N_CODE = 10  # DEC's code, whatever the width and the data


def mlp(shape: tuple[int, ...], width: float = 1.0, sizes: tuple[int, ...] = (500, 500, 2000)) -> Backbone:
    """Linear layers with ReLU; the last hidden layer is the feature space. Images are flattened."""
    n_in, stages = prod(shape), []
    for size in sizes:
        n_out = max(1, round(size * width))
        stages.append(nn.Sequential(nn.Linear(n_in, n_out), nn.ReLU(inplace=True)))
        n_in = n_out
    return _backbone(stages, n_in, shape)


def coder(shape: tuple[int, ...], width: float = 1.0) -> Backbone:
    """DEC's encoder d-500-500-2000-10: ReLU but for the code, which is linear."""
    hidden = mlp(shape, width)
    return Backbone([*hidden.stages, nn.Sequential(nn.Linear(hidden.n_features, N_CODE))], N_CODE)


def mlp_norm(shape: tuple[int, ...], width: float = 1.0, sizes: tuple[int, ...] = (1200, 1200)) -> Backbone:
    """IMSAT's d-1200-1200: linear layers with batch norm and ReLU. Images are flattened."""
    n_in, stages = prod(shape), []
    for size in sizes:
        n_out = max(1, round(size * width))
        stages.append(nn.Sequential(nn.Linear(n_in, n_out), nn.BatchNorm1d(n_out), nn.ReLU(inplace=True)))
        n_in = n_out
    return _backbone(stages, n_in, shape)


def _backbone(stages: list[nn.Sequential], n_features: int, shape: tuple[int, ...]) -> Backbone:
    first = [stages[0]] if len(shape) == 1 else [nn.Sequential(nn.Flatten(), *stages[0])]
    return Backbone([*first, *stages[1:]], n_features)
