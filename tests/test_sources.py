"""Whatever X is, the batches are right, and bad input is named."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from lsdc.data import datasets
from lsdc.data.sources import Data, Joined, check_finite, image_shape, raw, spec_of
from lsdc.errors import InputError


def images(*shape, dtype=np.uint8):
    return np.random.default_rng(0).integers(0, 255, shape).astype(dtype)


@pytest.mark.parametrize(
    ("shape", "expected"),
    [((5, 8, 9), (1, 8, 9)), ((5, 8, 9, 3), (3, 8, 9)), ((5, 3, 8, 9), (3, 8, 9)), ((5, 1, 8, 9), (1, 8, 9))],
)
def test_images_are_read_channels_first(shape, expected):
    X = images(*shape)
    assert image_shape(X.shape) == expected
    rows = X[[3, 1]]
    rows = rows[:, None] if rows.ndim == 3 else rows if shape[1:] == expected else np.moveaxis(rows, 3, 1)
    assert np.array_equal(raw(X, np.array([3, 1])), rows)


def test_layouts_agree():
    X = images(6, 10, 12, 3)
    first = raw(X, np.arange(6))
    assert np.array_equal(first, raw(X.transpose(0, 3, 1, 2), np.arange(6)))
    assert first[2, 1, 3, 4] == X[2, 3, 4, 1]


@pytest.mark.parametrize("shape", [(5, 7, 7), (5, 32, 32, 5), (5, 2, 32, 32), (5, 1, 2, 3, 4), (5, 4, 64)])
def test_other_shapes_are_refused(shape):
    with pytest.raises(InputError, match=r"images must be|at least 8x8"):
        image_shape(shape)


def test_dense_and_sparse_vectors_agree():
    X = np.random.default_rng(0).random((50, 7)).astype(np.float32)
    X[X < 0.7] = 0
    dense, sparse = raw(X, np.array([4, 2])), raw(sp.csr_matrix(X), np.array([4, 2]))
    assert np.array_equal(dense, sparse)


def test_vectors_are_centred_and_keep_their_proportions():
    X = np.random.default_rng(0).normal([5, -3], [1, 10], (500, 2))
    x = torch.cat(list(Data(X, spec_of(X)).chunks(100)))
    torch.testing.assert_close(x.mean(0), torch.zeros(2), atol=1e-4, rtol=0)
    assert x.square().mean() == pytest.approx(1, abs=1e-3)
    assert x.std(0)[1] / x.std(0)[0] == pytest.approx(X.std(0)[1] / X.std(0)[0], rel=1e-3)


def test_images_and_sparse_vectors_keep_their_zero():
    X = images(20, 8, 8)
    X[:, 0] = 0
    assert Data(X, spec_of(X)).batch(torch.arange(20))[:, :, 0].eq(0).all()
    S = sp.random(50, 20, 0.1, format="csr", random_state=0)
    assert Data(S, spec_of(S)).batch(torch.arange(50)).ne(0).sum() == S.nnz


def test_small_differences_of_large_values_survive():
    """Around a billion, single precision steps by 64: values are centred before they are rounded."""
    X = np.random.default_rng(0).normal(size=(50, 3)) + 1e9
    x = Data(X, spec_of(X)).batch(torch.arange(50))
    wanted = (X - X.mean(0)) / (X - X.mean(0)).std()
    np.testing.assert_allclose(x.numpy(), wanted, atol=1e-4)


def test_a_constant_column_is_no_constant_data():
    X = np.random.default_rng(0).normal(size=(50, 3))
    X[:, 0] = 1.7e9  # a timestamp
    wanted = (X - X.mean(0)) / (X - X.mean(0)).std()
    np.testing.assert_allclose(Data(X, spec_of(X)).batch(torch.arange(50)).numpy(), wanted, atol=1e-4)


def test_values_beyond_single_precision_are_refused():
    X = np.zeros((5, 2))
    X[3, 1] = 1e39
    with pytest.raises(InputError, match=r"1e\+39, which is beyond single precision, in row 3"):
        check_finite(X)


def test_scaling_of_a_memmap_is_that_of_the_array(tmp_path):
    X = np.random.default_rng(0).normal(size=(9000, 3)).astype(np.float32)  # more than one chunk
    np.save(tmp_path / "x.npy", X)
    on_disk = np.load(tmp_path / "x.npy", mmap_mode="r")
    first, second = spec_of(X), spec_of(on_disk)
    assert torch.equal(first.offset, second.offset)
    assert torch.equal(first.scale, second.scale)
    assert isinstance(Data(on_disk, second).X, np.memmap)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("row", [0, 17, 4999])
def test_the_row_of_a_bad_value_is_named(value, row):
    X = np.zeros((5000, 3))
    X[row, 2] = value
    for bad in (X, sp.csr_matrix(X)):
        with pytest.raises(InputError, match=rf"(NaN|infinity) in row {row} "):
            check_finite(bad)


@pytest.mark.parametrize("X", [np.full((10, 4), 3.7), np.zeros((10, 4)), np.full((10, 8, 8), 200, np.uint8)])
def test_constant_data_is_refused(X):
    with pytest.raises(InputError, match="constant"):
        spec_of(X)


@pytest.mark.parametrize("name", ["digits", "blobs", "two-moons"])
def test_built_in_data_sets(name):
    first, second = datasets.load(name), datasets.load(name)
    assert len(first.X) == len(first.y)
    assert set(np.unique(first.y)) == set(range(first.n_clusters))
    assert np.array_equal(first.X, second.X)
    assert first.name == name


def test_unknown_data_set_suggests():
    with pytest.raises(InputError, match=r"unknown data set 'digit': did you mean 'digits'\?"):
        datasets.load("digit")


def test_joined_samples_are_those_of_both():
    first, second = np.arange(12.0).reshape(4, 3), -np.arange(15.0).reshape(5, 3)
    spec = spec_of(first)
    joined = Joined(Data(first, spec), Data(second, spec))
    assert len(joined) == 9
    indices = torch.tensor([8, 0, 4, 3])
    both = Data(np.concatenate([first, second]), spec)
    assert torch.equal(joined.batch(indices), both.batch(indices))
