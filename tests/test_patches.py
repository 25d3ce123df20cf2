"""Colour images as embedded patches: the formulas by loops, the law of the embedding, and what LSDC makes of them."""

import numpy as np
import pytest
import torch
from sklearn.datasets import load_sample_images

from lsdc import LSDC, load
from lsdc.errors import InputError
from lsdc.methods.onnx import export_onnx
from lsdc.metrics import clustering_accuracy
from lsdc.nn.patches import GRID, N_EMBEDDED, NEAR, PATCH, STEEP, Patches, patches


def textures(n=(60, 30, 30), side=32, seed=0):
    """Images of one of three textures (stripes, dots, plain) in one of many colours, at random places, with noise."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat(np.arange(3), n))
    rows, columns = np.mgrid[:side, :side]
    pictures = []
    for kind in y:
        a, b = rng.integers(0, 6, 2)
        stripes, dots = (columns + a) % 6 < 3, ((columns + a) % 6 < 2) & ((rows + b) % 6 < 2)
        shape = (stripes, dots, np.zeros_like(stripes))[kind]
        colours = rng.integers(40, 216, (2, 3))
        pictures.append(np.where(shape[..., None], colours[0], colours[1]) + rng.normal(0, 8, (side, side, 3)))
    return np.clip(pictures, 0, 255).astype(np.uint8), y


@pytest.fixture(scope="module")
def fitted():
    X, _ = textures()
    x = torch.from_numpy(X).permute(0, 3, 1, 2).float() / 64
    stage = Patches((3, 32, 32))
    stage.fit(x, torch.zeros(()), 0)
    return stage, x


def test_a_patch_is_coded_by_the_patterns_it_resembles(fitted):
    """By hand: the patch at row 2, column 4 of the map, less its mean, whitened, at angles below the threshold."""
    stage, x = fitted
    patch = x[7, :, 4 : 4 + PATCH, 8 : 8 + PATCH].flatten()
    white = stage.white.flatten(1) @ patch + stage.shift
    expected = [min(1.0, max(0.0, float(STEEP * (white @ atom / white.norm() - NEAR) + 0.5))) for atom in stage.atoms]
    assert stage.codes(x[7:8])[0, :, 2, 4].tolist() == pytest.approx(expected, abs=1e-3)
    assert 0 < sum(expected) < len(expected) / 4


def test_brightness_does_not_change_codes(fitted):
    stage, x = fitted
    torch.testing.assert_close(stage.codes(x[:5] + 0.5), stage.codes(x[:5]), rtol=0, atol=1e-2)


def test_embedded_patches_vary_by_one_and_images_most_in_the_first_directions(fitted):
    """The generalised eigenvalue problem: total covariance the identity, that of images diagonal and falling."""
    stage, x = fitted
    e = torch.einsum("ea,naij->neij", stage.embed, stage.codes(x)).flatten(2) - stage.centre[:, None]
    flat = e.transpose(1, 2).flatten(0, 1).double()
    assert flat.mean(0).abs().max() < 1e-3
    leading = (flat.T @ flat / len(flat))[:10, :10]
    torch.testing.assert_close(leading, torch.eye(10, dtype=torch.float64), atol=0.05, rtol=0)
    of_images = e.mean(2).double()
    between = of_images.T @ of_images / len(x)
    assert (between.diagonal().diff()[:20] <= 1e-4).all()
    assert (between - between.diag().diag())[:20, :20].abs().max() < 1e-3


def test_features_are_means_over_a_grid_of_unit_vectors(fitted):
    stage, x = fitted
    f = stage(x).view(len(x), N_EMBEDDED, GRID, GRID)
    assert f.norm(dim=1).max() <= 1 + 1e-5
    e = torch.einsum("ea,naij->neij", stage.embed, stage.codes(x[:3])) - stage.centre[:, None, None]
    corner = torch.nn.functional.normalize(e)[:, :, :5, :5].mean((2, 3))
    torch.testing.assert_close(f[:3, :, 0, 0], corner, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("shape", [(3, 1, 1), (3, 3, 200), (2, 5, 7), (3, 16, 16), (3, 47, 33), (4, 96, 64)])
def test_images_of_any_size_have_features(shape):
    backbone = patches(shape)
    x = torch.rand(6, *shape, generator=torch.Generator().manual_seed(0))
    first, second = backbone.stages
    first.fit(x, torch.zeros(()), 0)
    second.fit(first(x), torch.zeros(first.n_out), 0)
    assert backbone(x).shape == (6, backbone.n_features)
    assert backbone(x).isfinite().all()


@pytest.mark.parametrize("x", [torch.zeros(5, 3, 16, 16), torch.ones(5, 3, 16, 16), torch.eye(16).repeat(5, 3, 1, 1)])
def test_images_that_are_all_the_same_have_the_same_features(x):
    stage = Patches((3, 16, 16))
    stage.fit(x, torch.zeros(()), 0)
    f = stage(x)
    assert f.isfinite().all()
    assert torch.equal(f, f[:1].expand_as(f))


def crops(n=(100, 50), seed=0):
    """Random squares of two photographs, a temple and a flower, as images of 32 x 32."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat(np.arange(2), n))
    pictures = []
    for photo in (load_sample_images().images[kind] for kind in y):
        top, left = (rng.integers(0, side - 160) for side in photo.shape[:2])
        pictures.append(photo[top : top + 160, left : left + 160].reshape(32, 5, 32, 5, 3).mean((1, 3)))
    return np.array(pictures, np.uint8), y


def test_crops_of_two_photographs_are_told_apart(tmp_path):
    X, y = crops()
    model = LSDC(2, random_state=0).fit(X)
    assert model.settings_["backbone"] == "patches"
    assert clustering_accuracy(y, model.labels_) > 0.95
    assert np.array_equal(model.predict(X), model.labels_)
    new, photos = crops(seed=1)
    assert clustering_accuracy(photos, model.predict(new)) > 0.95
    assert export_onnx(model, tmp_path / "m.onnx") <= 1e-4
    model.save(tmp_path / "m.safetensors")
    assert np.array_equal(load(tmp_path / "m.safetensors").predict_proba(new), model.predict_proba(new))


def test_grey_images_and_whoever_asks_for_a_network_get_a_network():
    def backbone(shape, **given):
        return LSDC(3, **given)._resolve(shape, 100).backbone

    assert backbone((3, 32, 32)) == "patches"
    assert backbone((3, 32, 32), backbone="".join(["au", "to"])) == "patches"  # another string of the same letters
    assert backbone((1, 32, 32)) == "vgg4"
    assert backbone((3, 32, 32), pretext="contrastive") == "resnet18"
    assert backbone((3, 32, 32), width=0.5) == "resnet18"
    assert backbone((3, 32, 32), similarity="knn") == "resnet18"
    assert backbone((1, 32, 32), backbone="patches") == "patches"


def test_patches_are_fitted_not_trained():
    with pytest.raises(InputError, match="backbone 'patches' is fitted, not trained: leave out pretext"):
        LSDC(3, backbone="patches", pretext="autoencoder")._resolve((3, 32, 32), 100)
    with pytest.raises(InputError, match="neighbours='graph'"):
        LSDC(3, backbone="patches", neighbours="batch", pretext="none")._resolve((3, 32, 32), 100)
    with pytest.raises(InputError, match="needs images"):
        LSDC(3, backbone="patches")._resolve((40,), 100)
