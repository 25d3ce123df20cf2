"""Whose data it is: every row and value counts, when a run goes on, is evaluated, or is compared with another."""

import json

import numpy as np
import pytest
import scipy.sparse as sp

from lsdc import InputError, KMeans
from lsdc.data.digest import digest, same_data
from lsdc.experiments.results import difference
from lsdc.runs.folder import Run
from test_cli import inside, refused

RNG = np.random.default_rng(0)
X = RNG.normal(size=(2500, 4))


def between(X):
    """The data with new values in rows that an evenly spaced sample of 1,000 does not see."""
    seen = np.linspace(0, len(X) - 1, 1000).astype(int)
    other = X.copy()
    rest = np.setdiff1d(np.arange(len(X)), seen)
    other[rest] = RNG.normal(size=(len(rest), X.shape[1]))
    return other


def test_a_digest_sees_every_row():
    assert digest(X) == digest(X.copy())
    assert digest(between(X)) != digest(X)
    assert digest(between(X))[:16] == digest(X)[:16]
    assert digest(X[::-1]) != digest(X)
    large = 1e9 + X
    assert digest(large) != digest(np.where(np.arange(2500)[:, None] == 7, large + 1e-6, large))


def test_a_digest_of_a_sparse_matrix_is_of_its_values():
    S = sp.random(2500, 50, 0.1, "csr", random_state=0)
    shuffled = sp.csr_matrix((S.data[::-1].copy(), S.indices[::-1].copy(), S.indptr), S.shape)
    assert digest(S) == digest(S.copy())
    assert digest(S) != digest(shuffled)
    messy = S.copy()
    messy.indices = messy.indices.astype(np.int64)
    assert digest(messy) == digest(S)


def test_a_digest_of_a_file_is_that_of_its_array(tmp_path):
    np.save(tmp_path / "x.npy", X)
    assert digest(np.load(tmp_path / "x.npy", mmap_mode="r")) == digest(X)


def test_a_run_does_not_go_on_with_other_rows(tmp_path):
    KMeans(3, random_state=0).fit(X, run=tmp_path / "run")
    KMeans(3, random_state=0).fit(X, resume=tmp_path / "run")
    with pytest.raises(InputError, match="started with other settings or data"):
        KMeans(3, random_state=0).fit(between(X), resume=tmp_path / "run")


def test_runs_and_results_of_old_stay_valid(tmp_path):
    """Their digests are the first 16 characters of today's."""
    KMeans(3, random_state=0).fit(X, run=tmp_path / "run")
    path = tmp_path / "run" / "config.json"
    config = json.loads(path.read_text())
    run = Run(tmp_path / "run")
    old = {name: config["data"][name] for name in ("n", "shape", "digest")} | {"digest": digest(X)[:16]}
    run.bind({**{name: config[name] for name in ("method", "behaviour", "seed", "settings")}, "data": old})
    path.write_text(json.dumps({**config, "data": old, "fingerprint": run.fingerprint}))
    KMeans(3, random_state=0).fit(X, resume=tmp_path / "run")
    with pytest.raises(InputError, match="started with other settings or data"):
        KMeans(3, random_state=0).fit(X + 1, resume=tmp_path / "run")
    before = {"data": {"n": 2500, "digest": digest(X)[:16]}}
    assert difference(before, {"data": {"n": 2500, "digest": digest(X)}}) == ""
    assert difference(before, {"data": {"n": 2500, "digest": digest(X + 1)}}).startswith("digest was")
    assert not same_data(None, digest(X))
    assert not same_data("", digest(X))


@pytest.fixture
def shuffled(tmp_path):
    """A finished run on labelled data, whose rows were shuffled afterwards."""
    y = np.repeat([0, 1], 50)
    points = RNG.normal(size=(100, 3)) + 20 * y[:, None]
    np.savez(tmp_path / "d.npz", X=points, y=y)
    assert inside("fit", "d.npz", "-k", 2, "--method", "kmeans", "--out", "run", cwd=tmp_path).returncode == 0
    assert '"acc": 1.0' in inside("evaluate", "run", "--json", cwd=tmp_path).stdout
    order = RNG.permutation(100)
    np.savez(tmp_path / "d.npz", X=points[order], y=y[order])
    return tmp_path


def test_labels_of_shuffled_rows_are_not_compared(shuffled):
    refused(inside("evaluate", "run", cwd=shuffled), "d.npz: not the data the run was fitted on", "--labels")
    refused(inside("evaluate", "run", "--baselines", cwd=shuffled), "d.npz: not the data the run was fitted on")
    np.savetxt(shuffled / "y.txt", np.repeat([0, 1], 50), "%d")
    assert '"acc": 1.0' in inside("evaluate", "run", "--labels", "y.txt", "--json", cwd=shuffled).stdout


def test_a_report_does_without_shuffled_rows(shuffled):
    done = inside("report", "run", cwd=shuffled)
    assert done.returncode == 0
    assert "d.npz: not the data the run was fitted on" in done.stderr
    assert "ACC" not in (shuffled / "run" / "report.html").read_text()
