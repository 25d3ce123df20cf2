"""DeepCluster (Caron, Bojanowski, Joulin, Douze 2018): what it adds to K-means and cross-entropy."""

import torch
from torch import Tensor

FLOOR = 1e-6  # of the largest variance: directions with none would only amplify rounding


@torch.no_grad()
def whitening(f: Tensor, n_components: int) -> tuple[Tensor, Tensor]:
    """The mean (D,) and the scaled principal axes (D, n): ``(f - mean) @ axes`` are components of variance one."""
    if not 0 < n_components <= f.shape[1]:
        raise ValueError(f"n_components must be between 1 and the {f.shape[1]} features, got {n_components}")
    mean = f.mean(0)
    centred = f - mean
    variances, directions = torch.linalg.eigh((centred.T @ centred).double() / len(f))  # rising
    variances = variances.clamp(min=max(FLOOR * float(variances[-1]), torch.finfo(torch.float32).tiny))
    return mean, (directions / variances.sqrt())[:, -n_components:].flip(1).to(f.dtype)


def whiten(f: Tensor, n_components: int) -> Tensor:
    """The leading principal components (N, n), each with variance one.

    The paper then normalises the rows: ``F.normalize(whiten(f, n))``.
    """
    mean, axes = whitening(f, n_components)
    return (f - mean) @ axes


def uniform_over_clusters(labels: Tensor, n: int, rng: torch.Generator) -> Tensor:
    """``n`` indices, each a random member of a random non-empty cluster, so that large clusters do not dominate."""
    order = labels.argsort(stable=True)
    sizes = labels.bincount()
    ends, alive = sizes.cumsum(0), sizes.nonzero()[:, 0]
    drawn = torch.rand(2, n, generator=rng, device=rng.device, dtype=torch.float64).to(labels.device)
    cluster = alive[(drawn[0] * len(alive)).long()]
    return order[ends[cluster] - 1 - (drawn[1] * sizes[cluster]).long()]
