"""UMAP and a mixture: what is its own beside the contract of every method (test_estimators.py)."""

import sys

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal
from sklearn.datasets import load_digits, make_blobs

from lsdc import InputError, UMAPMixture, load
from lsdc.errors import Unsuitable
from lsdc.methods.umap import _responsibilities
from lsdc.metrics import clustering_accuracy

X, Y = make_blobs(120, 4, centers=3, random_state=0)
X = X.astype(np.float32)
NEW = X[:20] + np.float32(0.25)


@pytest.fixture(scope="module")
def fitted():
    return UMAPMixture(3, n_epochs=50, random_state=0).fit(X)


def test_training_samples_stay_where_umap_put_them(fitted):
    assert np.array_equal(fitted.transform(X), fitted.embedding_)
    assert fitted.embedding_.shape == (120, 10)
    assert clustering_accuracy(Y, fitted.labels_) == 1.0


def test_a_new_sample_is_at_the_weighted_mean_of_its_five_nearest(fitted):
    distances = np.linalg.norm(NEW[:, None].astype(np.float64) - X, axis=2)
    near = distances.argsort(1)[:, :5]
    weights = 1 / np.take_along_axis(distances, near, 1)
    expected = (weights[:, :, None] * fitted.embedding_[near]).sum(1) / weights.sum(1, keepdims=True)
    np.testing.assert_allclose(fitted.transform(NEW), expected, rtol=1e-4)
    assert (fitted.predict(NEW) == fitted.labels_[:20]).all()


def test_copies_have_one_place_however_many_there_are():
    rows = np.r_[0:120, [7] * 40]  # more than neighbours
    model = UMAPMixture(3, n_epochs=50, random_state=0).fit(X[rows])
    assert (model.embedding_[rows == 7] == model.embedding_[7]).all()
    assert clustering_accuracy(Y[rows], model.labels_) == 1.0


def test_probabilities_are_those_of_the_mixture():
    rng = np.random.default_rng(0)
    z, means, weights = rng.normal(size=(6, 2)), rng.normal(size=(3, 2)), np.array([0.5, 0.3, 0.2])
    covariances = np.stack([a @ a.T + np.eye(2) for a in rng.normal(size=(3, 2, 2))])
    densities = np.stack(
        [w * multivariate_normal(m, c).pdf(z) for w, m, c in zip(weights, means, covariances, strict=True)], 1
    )
    cholesky = np.linalg.cholesky(np.linalg.inv(covariances))
    found = _responsibilities(*map(torch.from_numpy, (z, weights, means, cholesky)))
    np.testing.assert_allclose(found, densities / densities.sum(1, keepdims=True))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning", "ignore::lsdc.HealthWarning")
@pytest.mark.parametrize("rows", [[0, 1], [0, 0, 0, 1, 1], [0, 1, 2, 2, 2, 2], [0, 1, 2, 3, 0, 1, 2, 3]])
def test_few_distinct_samples_are_enough(rows):
    few = X[np.argsort(Y, kind="stable")[::40]][np.array(rows) % 3] + np.array(rows, np.float32)[:, None] // 3
    model = UMAPMixture(2, n_epochs=20, random_state=0).fit(few)
    same = np.equal.outer(rows, rows)
    assert (np.equal.outer(model.labels_, model.labels_) | ~same).all()  # copies are never split
    assert np.array_equal(model.predict(few), model.labels_)


def test_parts_that_nothing_connects_are_clusters():
    far = np.concatenate([X[Y == 0] + 1000 * i for i in range(3)])
    model = UMAPMixture(3, n_epochs=50, random_state=0).fit(far)
    assert clustering_accuracy(np.repeat(range(3), 40), model.labels_) == 1.0


def test_digits_are_found():
    digits, y = load_digits(return_X_y=True)
    model = UMAPMixture(10, n_epochs=200, random_state=0).fit(digits[:500])
    assert clustering_accuracy(y[:500], model.labels_) > 0.75


def test_a_loaded_model_needs_no_umap_learn_and_predicts_to_the_bit(fitted, tmp_path, monkeypatch):
    fitted.save(tmp_path / "model.safetensors")
    monkeypatch.setitem(sys.modules, "umap", None)
    again = load(tmp_path / "model.safetensors")
    assert np.array_equal(again.predict_proba(NEW), fitted.predict_proba(NEW))
    assert np.array_equal(again.transform(X), fitted.embedding_)


def test_without_umap_learn_the_extra_is_named_and_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "umap", None)
    with pytest.raises(Unsuitable, match=r"^the method umap needs umap-learn: pip install 'lsd-clusters\[umap\]'$"):
        UMAPMixture(3).fit(X, run=tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"n_neighbors": 1}, "n_neighbors must be a whole number of at least 2, got 1"),
        ({"n_components": 0}, "n_components must be"),
        ({"n_init": 0}, "n_init must be"),
        ({"n_epochs": 0}, "n_epochs must be"),
    ],
)
def test_what_cannot_be_is_refused(params, said):
    with pytest.raises(InputError, match=said):
        UMAPMixture(3, **params).fit(X)


def test_a_fit_leaves_pytorch_its_threads():
    """Numba sets the threads of the whole process; other sums, so other last digits, would follow from that."""
    before = torch.get_num_threads()
    UMAPMixture(2, random_state=0, n_epochs=5).fit(np.random.default_rng(0).normal(size=(30, 4)))
    assert torch.get_num_threads() == before
