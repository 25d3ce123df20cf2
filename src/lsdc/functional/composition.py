"""Composed samples (section 3.3): several samples of the batch shown in one, with known shares.

``compose(views, rng)`` composes each view of the batch alike and returns ``(composed, sigma, w)``:
``sigma[r, j]`` is the sample shown in part r of composed sample j, ``w[r]`` the part's share, and the shares
sum to one. Views share ``sigma`` and ``w``; where parts are cropped, each view draws its own crop offsets.
"""

from collections.abc import Callable

import torch
from torch import Tensor

Views = tuple[Tensor, ...]
Composition = Callable[[Views, torch.Generator], tuple[Views, Tensor, Tensor]]


def _uniform(rng: torch.Generator) -> float:
    return float(torch.rand((), generator=rng, device=rng.device, dtype=torch.float64))


def _integer(high: int, rng: torch.Generator) -> int:
    """A whole number from 0 to ``high``, both included."""
    return int(torch.randint(high + 1, (), generator=rng, device=rng.device))


def beta(alpha: float, rng: torch.Generator) -> float:
    """One draw from Beta(alpha, alpha) by Joehnk's rejection; torch's own sampler takes no generator."""
    while True:
        a: float = _uniform(rng) ** (1 / alpha)
        b: float = _uniform(rng) ** (1 / alpha)
        if 0 < a + b <= 1:
            return a / (a + b)


def _permutations(parts: int, x: Tensor, rng: torch.Generator) -> Tensor:
    rows = [torch.randperm(len(x), generator=rng, device=rng.device) for _ in range(parts)]
    return torch.stack(rows).to(x.device, non_blocking=True)


def _shares(w: list[float], x: Tensor) -> Tensor:
    return torch.tensor(w, dtype=x.dtype, device=x.device)


def _need_images(name: str, x: Tensor) -> None:
    if x.ndim != 4:
        raise ValueError(
            f"composition {name!r} needs images (n, c, h, w), got shape {tuple(x.shape)}; "
            "vectors take 'mixup' or 'none'"
        )


def none(views: Views, rng: torch.Generator) -> tuple[Views, Tensor, Tensor]:
    """Every sample by itself: one part, the identity, share 1."""
    x = views[0]
    return views, torch.arange(len(x), device=x.device)[None], _shares([1.0], x)


def mixup(views: Views, rng: torch.Generator, alpha: float = 0.3) -> tuple[Views, Tensor, Tensor]:
    """A weighted sum of two permutations, the weight drawn from Beta(alpha, alpha) once per batch."""
    sigma = _permutations(2, views[0], rng)
    share = beta(alpha, rng)
    w = _shares([share, 1 - share], views[0])
    return tuple(w[0] * x[sigma[0]] + w[1] * x[sigma[1]] for x in views), sigma, w


def cutmix(views: Views, rng: torch.Generator, alpha: float = 1.0) -> tuple[Views, Tensor, Tensor]:
    """A box of a second permutation pasted over the first, at the same place."""
    _need_images("cutmix", views[0])
    height, width = views[0].shape[2:]
    side = (1 - beta(alpha, rng)) ** 0.5
    h, w_ = round(side * height), round(side * width)
    top, left = _integer(height - h, rng), _integer(width - w_, rng)
    sigma = _permutations(2, views[0], rng)
    composed = []
    for x in views:
        y = x[sigma[0]]
        y[:, :, top : top + h, left : left + w_] = x[sigma[1], :, top : top + h, left : left + w_]
        composed.append(y)
    share = h * w_ / (height * width)
    return tuple(composed), sigma, _shares([1 - share, share], views[0])


def ricap(views: Views, rng: torch.Generator, alpha: float = 0.3) -> tuple[Views, Tensor, Tensor]:
    """Four random crops patched together, one split per batch, each side drawn from Beta(alpha, alpha)."""
    _need_images("ricap", views[0])
    height, width = views[0].shape[2:]
    h, w_ = round(beta(alpha, rng) * height), round(beta(alpha, rng) * width)
    sigma = _permutations(4, views[0], rng)
    tiles = [(0, h, 0, w_), (0, h, w_, width), (h, height, 0, w_), (h, height, w_, width)]  # top, bottom, left, right
    composed = tuple(torch.empty_like(x) for x in views)
    for x, y in zip(views, composed, strict=True):
        for part, (top, bottom, left, right) in zip(sigma, tiles, strict=True):
            dy, dx = _integer(height - bottom + top, rng), _integer(width - right + left, rng)
            crop = x[:, :, dy : dy + bottom - top, dx : dx + right - left]
            y[:, :, top:bottom, left:right] = crop[part]
    areas = [(bottom - top) * (right - left) / (height * width) for top, bottom, left, right in tiles]
    return composed, sigma, _shares(areas, views[0])


COMPOSITIONS: dict[str, Composition] = {"ricap": ricap, "mixup": mixup, "cutmix": cutmix, "none": none}
