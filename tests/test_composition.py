"""Section 3.3: what is shown where in a composed sample."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lsdc.functional import COMPOSITIONS, cutmix, mixup, none, ricap
from lsdc.functional.composition import beta

every_composition = pytest.mark.parametrize("name", COMPOSITIONS)
PARTS = {"ricap": 4, "mixup": 2, "cutmix": 2, "none": 1}


def rng(seed=0):
    return torch.Generator().manual_seed(seed)


def numbered(n=6, h=8, w=10):
    """Images whose every pixel is the number of the image."""
    return torch.arange(n, dtype=torch.float32)[:, None, None, None].expand(n, 2, h, w).contiguous()


@every_composition
@given(seed=st.integers(0, 10**6))
def test_shares_sum_to_one_and_sigma_permutes(name, seed):
    x = numbered()
    (y, z), sigma, w = COMPOSITIONS[name]((x, x + 100), rng(seed))
    assert y.shape == z.shape == x.shape
    assert sigma.shape == (PARTS[name], len(x))
    assert w.shape == (PARTS[name],)
    assert w.sum() == pytest.approx(1, abs=1e-6)
    assert (w >= 0).all()
    assert all(sorted(part.tolist()) == list(range(len(x))) for part in sigma)


@every_composition
@given(seed=st.integers(0, 10**6))
def test_each_sample_is_shown_in_its_share(name, seed):
    """The mean pixel of composed sample j is sum_r w_r x[sigma_r(j)]: true of patches and of weighted sums."""
    x = numbered()
    (y, z), sigma, w = COMPOSITIONS[name]((x, x + 100), rng(seed))
    wanted = (w[:, None] * x[:, 0, 0, 0][sigma]).sum(0)
    torch.testing.assert_close(y.mean((1, 2, 3)), wanted)
    torch.testing.assert_close(z.mean((1, 2, 3)), wanted + 100)  # both views are composed alike


@every_composition
def test_same_generator_same_result(name):
    x = torch.rand(5, 1, 8, 8, generator=rng())
    first, second = (COMPOSITIONS[name]((x, x), rng(3)) for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(first[0], second[0], strict=True))
    assert torch.equal(first[1], second[1])


@every_composition
def test_inputs_are_left_alone(name):
    x = torch.rand(5, 1, 8, 8, generator=rng())
    before = x.clone()
    COMPOSITIONS[name]((x, x), rng(1))
    assert torch.equal(x, before)


def test_none_is_the_identity():
    x = torch.rand(4, 3)
    (y,), sigma, w = none((x,), rng())
    assert torch.equal(x, y)
    assert sigma.tolist() == [[0, 1, 2, 3]]
    assert w.tolist() == [1.0]


def test_mixup_of_vectors_is_the_weighted_sum():
    x = torch.rand(4, 3, generator=rng())
    (y,), sigma, w = mixup((x,), rng(5))
    torch.testing.assert_close(y, w[0] * x[sigma[0]] + w[1] * x[sigma[1]])


@given(seed=st.integers(0, 10**6))
def test_ricap_patches_come_from_their_images(seed):
    """Every pixel of a part is a pixel of the image that sigma names, moved by one offset for the whole part."""
    h, w_ = 6, 7
    x = torch.arange(5 * h * w_, dtype=torch.float32).view(5, 1, h, w_)
    (y,), sigma, _ = ricap((x,), rng(seed))
    for j in range(5):
        source = (y[j, 0] // (h * w_)).long()  # which image each pixel is from
        assert set(source.flatten().tolist()) <= set(sigma[:, j].tolist())
        rows, columns = (y[j, 0] % (h * w_)) // w_, y[j, 0] % w_
        grid_y, grid_x = torch.meshgrid(torch.arange(h), torch.arange(w_), indexing="ij")
        for image in sigma[:, j].unique():
            if (sigma[:, j] == image).sum() == 1:
                here = source == image
                assert len(torch.unique(rows[here] - grid_y[here])) <= 1
                assert len(torch.unique(columns[here] - grid_x[here])) <= 1


def test_ricap_views_differ_in_their_crops():
    x = torch.rand(4, 1, 16, 16, generator=rng())
    different = 0
    for seed in range(20):
        (y, z), _, _ = ricap((x, x), rng(seed))
        different += not torch.equal(y, z)
    assert different > 10  # the same image is shown, but not the same part of it


def test_cutmix_pastes_in_place():
    x = torch.rand(4, 1, 8, 8, generator=rng())
    (y,), sigma, _ = cutmix((x,), rng(2))
    assert ((y == x[sigma[0]]) | (y == x[sigma[1]])).all()


@pytest.mark.parametrize("compose", [ricap, cutmix])
def test_patches_need_images(compose):
    with pytest.raises(ValueError, match="needs images"):
        compose((torch.rand(4, 3),), rng())


def test_beta_has_the_right_moments():
    draws = torch.tensor([beta(0.3, generator) for generator in [rng(0)] for _ in range(20_000)])
    assert draws.mean() == pytest.approx(0.5, abs=0.01)
    assert draws.var() == pytest.approx(1 / (4 * (2 * 0.3 + 1)), abs=0.005)  # 1 / (4 (2 alpha + 1))
    assert ((draws >= 0) & (draws <= 1)).all()
