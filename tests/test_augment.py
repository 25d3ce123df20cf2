"""Batched augmentation: what each one does to numbered pixels."""

from functools import partial

import pytest
import torch

from lsdc.data.augment import (
    AUGMENTATIONS,
    IMAGE_ONLY,
    affine,
    build_views,
    centre,
    crop,
    dropout,
    flip,
    jitter,
    noise,
    zoom,
)
from lsdc.errors import InputError


def rng(seed=0):
    return torch.Generator().manual_seed(seed)


def pixels(n=5, h=6, w=7):
    return torch.arange(1, n * h * w + 1, dtype=torch.float32).view(n, 1, h, w)


def test_crop_takes_a_window_of_each_image():
    x = pixels()
    y = crop(x, rng(), (3, 4))
    for image, window in zip(x[:, 0], y[:, 0], strict=True):
        places = [(i, j) for i in range(4) for j in range(4) if torch.equal(image[i : i + 3, j : j + 4], window)]
        assert len(places) == 1


def test_crop_reaches_every_place():
    x = torch.arange(9.0).view(1, 1, 3, 3).expand(500, 1, 3, 3)
    corners = crop(x, rng(), (2, 2))[:, 0, 0, 0]
    assert sorted(corners.unique().tolist()) == [0, 1, 3, 4]


def test_crop_pads_with_black():
    x = torch.ones(200, 1, 4, 4)
    y = crop(x, rng(), (4, 4), (2, 2))
    assert y.shape == x.shape
    assert set(y.unique().tolist()) == {0.0, 1.0}
    assert y.flatten(1).sum(1).min() == 4  # two of four rows and columns are left at least


def test_centre_is_the_middle():
    assert centre(pixels(1, 4, 4), (2, 2)).flatten().tolist() == [6, 7, 10, 11]


def test_flip_mirrors_about_half():
    x = pixels(400, 2, 3)
    y = flip(x, rng())
    mirrored = (y == x.flip(3)).flatten(1).all(1)
    assert ((y == x).flatten(1).all(1) ^ mirrored).all()
    assert 150 < mirrored.sum() < 250


def test_no_movement_is_the_identity():
    x = torch.rand(4, 2, 8, 8)
    torch.testing.assert_close(affine(x, rng(), 0, 0, 0, 0), x)


def test_shift_moves_by_whole_pixels():
    """A shift of one pixel to either side: the brightest pixel goes at most that far."""
    x = torch.zeros(300, 1, 9, 9)
    x[:, :, 4, 4] = 1
    places = affine(x, rng(), 0, 0, 0, 1 / 9).flatten(1).argmax(1)
    rows, columns = places // 9, places % 9
    assert set(rows.tolist()) == set(columns.tolist()) == {3, 4, 5}


def test_rotation_keeps_the_centre():
    x = torch.zeros(50, 1, 9, 9)
    x[:, :, 4, 4] = 1
    assert affine(x, rng(), 30, 0, 0, 0).flatten(1).argmax(1).eq(40).all()


def test_zoom_of_everything_mirrors_at_most():
    x = torch.rand(100, 2, 8, 8, generator=rng())
    y = zoom(x, rng(), least=1, aspect=1)
    plain, mirrored = ((y - z).abs().flatten(1).amax(1) < 1e-5 for z in (x, x.flip(3)))
    assert (plain ^ mirrored).all()
    assert 30 < plain.sum() < 70


def test_zoom_stays_inside():
    """A ramp from left to right: a box shows a part of it, never padding, and never more than there is."""
    ramp = torch.linspace(1, 2, 16).expand(300, 1, 16, 16)
    y = zoom(ramp, rng(), least=0.25, aspect=1)
    seen = y.amax((1, 2, 3)) - y.amin((1, 2, 3))
    assert y.min() >= 1
    assert y.max() <= 2
    assert 0.45 < seen.min() < 0.6
    assert seen.max() > 0.95


def test_no_jitter_is_the_identity():
    x = torch.rand(20, 3, 4, 4, generator=rng())
    torch.testing.assert_close(jitter(x, rng(), 0, 0, 0), x)


def test_jitter_makes_a_share_grey():
    y = jitter(torch.rand(500, 3, 4, 4, generator=rng()), rng(), grey=0.2)
    grey = (y.amax(1) - y.amin(1)).flatten(1).amax(1) < 1e-5
    assert 70 < grey.sum() < 130


def test_hue_keeps_the_brightness_of_every_pixel():
    x = torch.rand(50, 3, 4, 4, generator=rng())
    y = jitter(x, rng(), strength=0, hue=0.5, grey=0)
    torch.testing.assert_close(y.mean(1), x.mean(1))
    assert (y - x).abs().max() > 0.3


def test_dropout_keeps_the_mean():
    x = torch.ones(2000, 50)
    y = dropout(x, rng(), 0.2)
    assert set(y.unique().tolist()) == {0.0, 1.25}
    assert y.mean() == pytest.approx(1, abs=0.01)


def test_noise_has_its_spread():
    assert noise(torch.zeros(2000, 50), rng(), 0.3).std() == pytest.approx(0.3, abs=0.01)


@pytest.mark.parametrize("name", AUGMENTATIONS)
def test_views_keep_their_promises(name):
    shape = (1, 28, 28) if name in IMAGE_ONLY else (20,)
    views = build_views(name, shape)
    x = torch.rand(6, *shape, generator=rng())
    before = x.clone()
    first, again, other = (views.augment(x, rng(seed)) for seed in (1, 1, 2))
    assert views.plain(x).shape == first.shape == (6, *views.shape)
    assert torch.equal(first, again)
    assert name == "none" or not torch.equal(first, other)
    assert torch.equal(x, before)


def test_the_papers_crops():
    assert build_views("window", (1, 28, 28)).shape == (1, 24, 24)
    assert build_views("crop-flip", (3, 32, 32)).shape == (3, 32, 32)
    ones = torch.ones(200, 3, 96, 96)
    y = build_views("crop-flip", (3, 96, 96)).augment(ones, rng())
    assert y[:, 0].amax(1).sum(1).min() == 96 - 12


def test_functions_are_views_too():
    views = build_views(partial(noise, sigma=0.5), (20,))
    assert views.augment(torch.zeros(3, 20), rng()).std() > 0.1


@pytest.mark.parametrize("name", IMAGE_ONLY)
def test_vectors_have_no_image_views(name):
    with pytest.raises(InputError, match="needs images"):
        build_views(name, (20,))
