"""Documents are given to clusters by their words: the weights of words, and what becomes of a fit."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from sklearn.naive_bayes import ComplementNB

from lsdc import LSDC
from lsdc.functional import by_words, word_weights
from lsdc.methods import documents as methods_of_documents
from lsdc.methods import graph

QUICK = {"epochs": 3, "n_init": 3}


def documents(seed=0, sizes=(200, 60, 30), n_words=60):
    """Counts of words: each group prefers some, a third of what it says is common to all."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    own = rng.dirichlet(np.full(n_words, 0.1), len(sizes))
    said = 2 / 3 * own + 1 / 3 * rng.dirichlet(np.ones(n_words))
    return sp.csr_matrix(np.stack([rng.multinomial(30, said[c]) for c in y]).astype(float)), torch.from_numpy(y)


def nearest_cluster(x, weights):
    return torch.from_numpy(x @ weights.numpy()).argmax(1)


@pytest.mark.parametrize("seed", range(3))
def test_weights_are_those_of_complement_naive_bayes(seed):
    x, y = documents(seed)
    noisy = y.where(torch.rand(len(y), generator=torch.Generator().manual_seed(seed)) > 0.4, (y + 1) % 3)
    other = ComplementNB(alpha=x.sum() / x.shape[1]).fit(x, noisy)
    assert nearest_cluster(x, word_weights(x, noisy, 3)).tolist() == other.predict(x).tolist()


def test_the_unit_of_the_numbers_makes_no_difference():
    x, y = documents()
    torch.testing.assert_close(word_weights(x, y, 3), word_weights(1e-3 * x, y, 3))


def test_words_mend_what_is_wrong():
    x, y = documents()
    wrong = torch.rand(len(y), generator=torch.Generator().manual_seed(0)) < 0.25
    found = nearest_cluster(x, by_words(x, y.where(~wrong, (y + 1) % 3), 3))
    assert (found == y).double().mean() > 0.97


def test_nobody_joins_an_empty_cluster():
    x, y = documents()
    weights = by_words(x, y, 5)
    assert weights.isfinite().all()
    assert nearest_cluster(x, weights).unique().tolist() == [0, 1, 2]


def test_words_decide_in_the_end():
    x, _ = documents()
    model = LSDC(3, random_state=0, **QUICK).fit(x)
    weights = model.network_.backbone.stages[-1].evidence
    assert weights.shape == (60, 3)
    assert model.labels_.tolist() == nearest_cluster(x, weights.double()).tolist()
    assert (model.predict(x[:50]) == model.labels_[:50]).all()


def test_kmeans_is_compared_on_topics_alone(monkeypatch):
    """Features made from clusters would confirm any clusters; the ones compared are those of the last classifier."""
    x, _ = documents()
    monkeypatch.setattr(graph, "decide_by_words", lambda *_: None)
    before = LSDC(3, random_state=0, **QUICK).fit(x)
    monkeypatch.undo()
    model = LSDC(3, random_state=0, **QUICK).fit(x)
    f, labels = model._before(torch.from_numpy(model.transform(x)), torch.from_numpy(model.labels_))
    assert f.shape == (290, 6)
    assert labels.tolist() == before.labels_.tolist()
    assert torch.equal(f, torch.from_numpy(before.transform(x))[:, :6])


@pytest.mark.parametrize("share", [0.45, 0.7, 0.9])
def test_documents_are_as_sure_as_they_are_told_to_be(share):
    evidence = torch.nn.functional.normalize(torch.randn(400, 4, generator=torch.Generator().manual_seed(0)))
    assert (methods_of_documents.gain_for(evidence, share) * evidence).softmax(1).amax(1).mean() == pytest.approx(
        share, abs=1e-6
    )


@pytest.mark.parametrize(("share", "bound"), [(0.0, 1.0), (1.0, 30.0)])
def test_nobody_is_told_to_be_surer_than_can_be(share, bound):
    evidence = torch.eye(3, dtype=torch.double) - torch.tensor([0, 0, 1e-3])
    assert methods_of_documents.gain_for(evidence, share) == pytest.approx(bound, abs=1e-6)


def test_numbers_below_zero_count_no_words(monkeypatch):
    monkeypatch.setattr(methods_of_documents, "by_words", lambda *_: pytest.fail("these are no documents"))
    x, _ = documents()
    x.data[0] = -1
    assert len(np.unique(LSDC(3, random_state=0, **QUICK).fit(x).labels_)) == 3
