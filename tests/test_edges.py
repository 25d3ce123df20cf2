"""Values at the edge of what numbers can hold: fitted and loaded, or refused with the reason; never a traceback."""

import numpy as np
import pytest
import scipy.sparse as sp

from lsdc import FINCH, InputError, KMeans, load
from lsdc.data.sources import spec_of
from test_cli import inside, refused
from test_readable import small

RNG = np.random.default_rng(0)
BLOBS = RNG.normal(size=(60, 4)) + 10 * np.repeat([0, 1, 2], 20)[:, None]
IMAGES = RNG.random((40, 8, 8))
REFUSED = {
    "tiny": (BLOBS * 1e-50, "too little for single precision; scale it up"),
    "tiny images": (IMAGES * 1e-50, "too little for single precision; scale it up"),
    "tiny and sparse": (sp.csr_matrix(np.abs(BLOBS) * 1e-50), "too little for single precision; scale it up"),
    "far apart": (np.where(BLOBS > 5, 3e38, -3e38), "too far apart"),
    "whole numbers": (2**60 + BLOBS.astype(np.int64), "less than double precision can resolve"),
    "a large constant": (np.c_[BLOBS, np.full(60, 3e38)], "drop large constant columns"),
    "a large constant of many samples": (np.c_[np.tile(BLOBS, (10, 1)), np.full(600, 1.1e20)], "drop large constant"),
}
TAKEN = {
    "small": BLOBS * 1e-30,
    "large": BLOBS * 1e35,
    "large whole numbers": 2**60 + (1000 * BLOBS).astype(np.int64),
    "times of day": 1_700_000_000 + BLOBS,
}


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("name", ["kmeans", "finch", "deepcluster", "lsdc"])
def test_values_that_cannot_be_held_are_refused(case, name):
    X, why = REFUSED[case]
    with pytest.raises(InputError, match=why) as caught:
        small(name).fit(X)
    assert str(caught.value).startswith("X ")


def test_the_file_is_named(tmp_path):
    np.save(tmp_path / "x.npy", BLOBS * 1e-50)
    refused(inside("fit", "x.npy", "-k", 3, "--method", "finch", cwd=tmp_path), "x.npy: X varies by only about")
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("case", TAKEN)
@pytest.mark.parametrize("name", ["kmeans", "deepcluster"])
@pytest.mark.filterwarnings("ignore::lsdc.errors.HealthWarning")
def test_values_that_can_be_held_are_clustered(tmp_path, case, name):
    model = small(name).fit(TAKEN[case])
    assert sorted(np.bincount(model.labels_)) == [20, 20, 20]
    model.save(tmp_path / "m.safetensors")
    assert (load(tmp_path / "m.safetensors").predict(TAKEN[case]) == model.labels_).all()


def test_scaling_is_what_it_was():
    assert float(spec_of(BLOBS).scale) == np.float32(np.sqrt(np.square(BLOBS - BLOBS.mean(0)).mean()))


@pytest.mark.parametrize("method", [KMeans, FINCH])
def test_new_samples_that_cannot_be_held_are_not_labelled(method):
    model = method(3, random_state=0).fit(BLOBS * 1e-20)
    with pytest.raises(InputError, match=r"X gives a result that is not finite in row 1 .* too extreme"):
        model.predict(np.array([[0.0] * 4, [3e38] * 4]))


def test_copies_of_fewer_samples_than_clusters_are_clustered_without_a_warning_of_python(tmp_path):
    """Warnings are errors here; K-means, which is fitted beside, warned of too few distinct points."""
    np.save(tmp_path / "x.npy", np.repeat([[0.0, 1.0], [5.0, 5.0]], 15, 0))
    few = ("--set", "epochs=1", "--set", "n_init=2", "--set", "batch_size=4096")
    assert inside("fit", "x.npy", "-k", 3, *few, "--out", "run", cwd=tmp_path).returncode == 0
