"""Views of whole batches of tensors: the plain view of a sample, and its augmentation.

Every augmentation is ``augment(x, rng) -> x``; each sample draws its own numbers.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from lsdc.data.sampler import draw
from lsdc.errors import InputError

Augment = Callable[[Tensor, torch.Generator], Tensor]


def _uniform(x: Tensor, shape: tuple[int, ...], rng: torch.Generator) -> Tensor:
    return draw(torch.rand, shape, rng).to(x.device)


def crop(x: Tensor, rng: torch.Generator, size: tuple[int, int], padding: tuple[int, int] = (0, 0)) -> Tensor:
    """A window of ``size`` at a random place of each image, after zero padding."""
    x = F.pad(x, (padding[1], padding[1], padding[0], padding[0]))
    n, _, height, width = x.shape
    top = (_uniform(x, (n, 1), rng) * (height - size[0] + 1)).long() + torch.arange(size[0], device=x.device)
    left = (_uniform(x, (n, 1), rng) * (width - size[1] + 1)).long() + torch.arange(size[1], device=x.device)
    rows = torch.arange(n, device=x.device)[:, None, None]
    # channels last before indexing: one gather of whole pixels instead of one per channel
    return x.permute(0, 2, 3, 1)[rows, top[:, :, None], left[:, None, :]].permute(0, 3, 1, 2)


def centre(x: Tensor, size: tuple[int, int]) -> Tensor:
    """The middle of each image: what a random crop is on average."""
    top, left = (x.shape[2] - size[0]) // 2, (x.shape[3] - size[1]) // 2
    return x[:, :, top : top + size[0], left : left + size[1]]


def flip(x: Tensor, rng: torch.Generator) -> Tensor:
    """Mirror each image left to right with probability one half."""
    mirrored = _uniform(x, (len(x), 1, 1, 1), rng) < 0.5
    return torch.where(mirrored, x.flip(3), x)


def affine(
    x: Tensor,
    rng: torch.Generator,
    degrees: float = 15.0,
    scale: float = 0.1,
    shear: float = 0.1,
    shift: float = 0.1,
) -> Tensor:
    """A small random rotation, zoom, shear and shift (a share of the side) of each image, bilinear."""
    u = _uniform(x, (len(x), 6), rng) * 2 - 1
    angle = u[:, 0] * math.radians(degrees)
    zoom_y, zoom_x = 1 + u[:, 1] * scale, 1 + u[:, 2] * scale
    cos, sin, skew = angle.cos(), angle.sin(), u[:, 3] * shear
    theta = torch.stack(
        [
            torch.stack([cos * zoom_x, (skew * cos - sin) * zoom_y, 2 * shift * u[:, 4]], 1),
            torch.stack([sin * zoom_x, (skew * sin + cos) * zoom_y, 2 * shift * u[:, 5]], 1),
        ],
        1,
    )
    grid = F.affine_grid(theta, list(x.shape), align_corners=False)
    return F.grid_sample(x, grid, padding_mode="zeros", align_corners=False)


def zoom(x: Tensor, rng: torch.Generator, least: float = 0.2, aspect: float = 4 / 3) -> Tensor:
    """A box of ``least`` to all of each image's area, its sides stretched by up to ``aspect``, as large as the image.

    Half of the boxes are mirrored left to right.
    """
    u = _uniform(x, (len(x), 5), rng)
    area, stretch = least + (1 - least) * u[:, 0], (u[:, 1] - 0.5) * math.log(aspect)
    height, width = (area.sqrt() * stretch.exp()).clamp(max=1), (area.sqrt() * (-stretch).exp()).clamp(max=1)
    zero = torch.zeros_like(area)
    across = torch.stack([torch.where(u[:, 4] < 0.5, -width, width), zero, (2 * u[:, 2] - 1) * (1 - width)], 1)
    down = torch.stack([zero, height, (2 * u[:, 3] - 1) * (1 - height)], 1)
    grid = F.affine_grid(torch.stack([across, down], 1), list(x.shape), align_corners=False)
    return F.grid_sample(x, grid, padding_mode="border", align_corners=False)


def jitter(x: Tensor, rng: torch.Generator, strength: float = 0.4, hue: float = 0.1, grey: float = 0.2) -> Tensor:
    """Change brightness, contrast and colour of four images in five, and make a share ``grey`` of all grey.

    All of it is linear in a pixel's channels, so it is one small matrix per image: saturation moves along the
    grey axis, hue (three channels only; a share of the full turn) turns around it.
    """
    n, c = x.shape[:2]
    u = _uniform(x, (n, 6), rng)[:, :, None, None]
    on = u[:, 0] < 0.8
    brightness, contrast, saturation = (torch.where(on, 1 + strength * (2 * u[:, i] - 1), 1.0) for i in (1, 2, 3))
    saturation = torch.where(u[:, 4] < grey, 0.0, saturation)
    mean = torch.full((c, c), 1 / c, device=x.device)
    colour = saturation * (torch.eye(c, device=x.device) - mean)
    if c == 3:
        angle = torch.where(on, 2 * math.pi * hue * (2 * u[:, 5] - 1), 0.0)
        turn = torch.tensor([[0.0, -1, 1], [1, 0, -1], [-1, 1, 0]], device=x.device) / math.sqrt(3)
        colour = angle.cos() * colour + angle.sin() * saturation * turn
    pixels = x.flatten(2)
    centre_of = pixels.mean((1, 2), keepdim=True)
    mixed = (brightness * contrast * (mean + colour)) @ pixels + brightness * (1 - contrast) * centre_of
    return mixed.view(x.shape).contiguous(memory_format=torch.channels_last)


def dropout(x: Tensor, rng: torch.Generator, rate: float = 0.2) -> Tensor:
    """Set a share of the features of each sample to zero and scale the others up, so that the mean stays."""
    return x * (_uniform(x, tuple(x.shape), rng) >= rate) / (1 - rate)


def noise(x: Tensor, rng: torch.Generator, sigma: float = 0.1) -> Tensor:
    """Add Gaussian noise."""
    return x + sigma * draw(torch.randn, x.shape, rng).to(x.device)


def same(x: Tensor, rng: torch.Generator) -> Tensor:
    """No augmentation."""
    return x


@dataclass(frozen=True)
class Views:
    """How samples reach the network: their ``shape``, the plain view (for labels and prediction), the augmented one."""

    shape: tuple[int, ...]
    plain: Callable[[Tensor], Tensor]
    augment: Augment


def _plain(x: Tensor) -> Tensor:
    return x


def _padded_crop(shape: tuple[int, ...]) -> Augment:
    size = (shape[1], shape[2])
    return partial(crop, size=size, padding=(max(1, size[0] // 8), max(1, size[1] // 8)))


def _crop_flip(x: Tensor, rng: torch.Generator, shift: Augment) -> Tensor:
    return flip(shift(x, rng), rng)


def _zoom_jitter(x: Tensor, rng: torch.Generator) -> Tensor:
    return jitter(zoom(x, rng), rng)


def affine_views(shape: tuple[int, ...]) -> Views:
    """Small rotations, zooms, shears and shifts, no mirroring: safe for letters and digits."""
    return Views(shape, _plain, affine)


def crop_views(shape: tuple[int, ...]) -> Views:
    """Padding by an eighth of the side and a random crop."""
    return Views(shape, _plain, _padded_crop(shape))


def crop_flip_views(shape: tuple[int, ...]) -> Views:
    """Padding by an eighth of the side, random crop, flip: the paper's views of CIFAR (4 of 32) and STL (12 of 96)."""
    return Views(shape, _plain, partial(_crop_flip, shift=_padded_crop(shape)))


def colour_views(shape: tuple[int, ...]) -> Views:
    """A random part of the image at full size, mirrored, in other colours or grey: the views of contrastive methods."""
    return Views(shape, _plain, _zoom_jitter)


def window_views(shape: tuple[int, ...]) -> Views:
    """A random window of 6/7 of the side, the middle one for prediction: the paper's 24x24 crops of MNIST."""
    if min(shape[1:]) < 14:  # too small to lose anything: shift it instead
        return crop_views(shape)
    size = (shape[1] * 6 // 7, shape[2] * 6 // 7)
    return Views((shape[0], *size), partial(centre, size=size), partial(crop, size=size))


def noise_views(shape: tuple[int, ...]) -> Views:
    """Gaussian noise, in units of the data's spread."""
    return Views(shape, _plain, noise)


def dropout_views(shape: tuple[int, ...]) -> Views:
    """A fifth of the features set to zero."""
    return Views(shape, _plain, dropout)


def no_views(shape: tuple[int, ...]) -> Views:
    """Samples unchanged."""
    return Views(shape, _plain, same)


AUGMENTATIONS: dict[str, Callable[[tuple[int, ...]], Views]] = {
    "affine": affine_views,
    "crop": crop_views,
    "crop-flip": crop_flip_views,
    "colour": colour_views,
    "window": window_views,
    "noise": noise_views,
    "dropout": dropout_views,
    "none": no_views,
}
IMAGE_ONLY = ("affine", "crop", "crop-flip", "colour", "window")


def build_views(augment: str | Augment, shape: tuple[int, ...]) -> Views:
    """The views for samples of ``shape``, by the augmentation's name or function."""
    if callable(augment):
        return Views(shape, _plain, augment)
    if augment in IMAGE_ONLY and len(shape) == 1:
        raise InputError(f"augment {augment!r} needs images; vectors take 'noise', 'dropout' or 'none'")
    return AUGMENTATIONS[augment](shape)
