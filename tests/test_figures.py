"""The figures the README promises, on one seed each: default settings, last epoch, labels only for looking."""

import numpy as np
import pytest
import scipy.sparse as sp

from lsdc import LSDC, datasets
from lsdc.metrics import clustering_accuracy


@pytest.mark.slow
@pytest.mark.parametrize(("name", "least"), [("digits", 0.85), ("blobs", 0.98), ("two-moons", 0.98)])
def test_default_settings_solve(name, least):
    data = datasets.load(name)
    model = LSDC(data.n_clusters, random_state=0).fit(data.X)
    assert clustering_accuracy(data.y, model.labels_) >= least
    assert len(np.unique(model.labels_)) == data.n_clusters
    assert model.history_[-1]["alive"] == data.n_clusters


@pytest.mark.slow
def test_unequal_clusters_stay_unequal():
    """The balance term fades: clusters of 50, 30 and 20 % are found as they are (70, 20, 10 are not: decision 4)."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(3, 8)) * 6
    y = np.repeat([0, 1, 2], [500, 300, 200])
    X = centres[y] + rng.normal(size=(1000, 8))
    labels = LSDC(3, random_state=0).fit_predict(X)
    assert clustering_accuracy(y, labels) >= 0.98


@pytest.mark.slow
def test_topics_of_unequal_size_are_found_in_documents():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2, 3], [400, 300, 200, 100])
    words = np.concatenate([np.arange(40) + 40 * topic for topic in range(4)]).reshape(4, 40)
    # of the 30 words of a document, two in three are of its topic, the others of any
    drawn = np.where(
        rng.random((1000, 30)) < 2 / 3,
        words[y][np.arange(1000)[:, None], rng.integers(0, 40, (1000, 30))],
        rng.integers(0, 160, (1000, 30)),
    )
    counts = np.zeros((1000, 160))
    np.add.at(counts, (np.arange(1000)[:, None], drawn), 1)
    model = LSDC(4, random_state=0).fit(sp.csr_matrix(counts))
    assert clustering_accuracy(y, model.labels_) >= 0.97
