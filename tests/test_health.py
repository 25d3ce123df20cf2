"""The ways in which clusterings die are noticed without labels."""

import re
import warnings

import pytest

from lsdc.errors import HealthWarning
from lsdc.methods import LSDC, METHODS, lsdc
from lsdc.methods.deep import DeepEstimator
from lsdc.training.health import REMEDIES, assignment_entropy, clusters_alive, examine, symptoms

GOOD = {"shares": [0.2, 0.3, 0.25, 0.25], "density": 0.25, "spread": 0.5, "epoch": 9}


def lived(epochs):
    """The records of a run, epoch by epoch."""
    history = []
    for epoch, record in enumerate(epochs, start=1):
        record = {**record, "epoch": epoch}
        history.append(record | examine(record, history, len(epochs)))
    return history


def test_alive_by_hand():
    assert clusters_alive([0.5, 0.5, 0.0, 0.0]) == 2
    assert clusters_alive([0.9, 0.07, 0.02, 0.01]) == 3  # an even share is .25, a twentieth of it .0125


def test_entropy_by_hand():
    assert assignment_entropy([0.25] * 4) == pytest.approx(1)
    assert assignment_entropy([1.0, 0.0]) == 0
    assert assignment_entropy([0.5, 0.5, 0, 0]) == pytest.approx(0.5)
    assert assignment_entropy([1.0]) == 1


def test_one_empty_cluster_is_one():
    assert "1 of 3 clusters is (nearly) empty" in symptoms({"shares": [0.5, 0.5, 0.0]})["dead"]
    assert "2 of 4 clusters are (nearly) empty" in symptoms({"shares": [0.5, 0.5, 0.0, 0.0]})["dead"]


def test_a_good_epoch_has_no_symptoms():
    assert symptoms(GOOD) == {}


@pytest.mark.parametrize(
    ("change", "kind", "word"),
    [
        ({"shares": [0.97, 0.01, 0.01, 0.01]}, "collapsed", "one cluster"),
        ({"shares": [0.5, 0.5, 0.0, 0.0]}, "dead", "2 of 4 clusters"),
        ({"density": 0.03}, "density", "more neighbours (the setting k"),
        ({"density": 1.0}, "density", None),
        ({"spread": 1e-5}, "shrunk", "weight_decay"),
    ],
)
def test_symptoms_are_named_with_what_to_try(change, kind, word):
    found = symptoms({**GOOD, "shares": [0.1] * 10, **change} if change == {"density": 1.0} else {**GOOD, **change})
    assert list(found) == [kind]
    assert word is None or word in found[kind]


@pytest.mark.parametrize("name", [name for name in METHODS if issubclass(METHODS[name], DeepEstimator)])
def test_remedies_are_parameters_of_the_method(name):
    """DEC has no balance term: nobody should be told to make it larger."""
    remedies = lsdc.REMEDIES if name == "lsdc" else REMEDIES
    words = {word for remedy in remedies.values() for word in re.findall("[a-z_]+", remedy)}
    assert words & LSDC().get_params().keys() <= METHODS[name]().get_params().keys()
    shares = {"collapsed": [0.97, 0.01, 0.01, 0.01], "dead": [0.5, 0.5, 0.0, 0.0]}
    assert all(remedies[kind] in symptoms({**GOOD, "shares": s}, remedies)[kind] for kind, s in shares.items())


def test_warns_once_of_what_lasts_in_the_second_half():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        records = lived([{**GOOD, "shares": [0.5, 0.5, 0.0, 0.0]}] * 20)
    assert [r["epoch"] for r in records if r.get("warned") == ["dead"]] == [11]
    assert [w.category for w in caught] == [HealthWarning]
    assert "epoch 11" in str(caught[0].message)


def test_says_nothing_of_a_rough_start():
    records = lived([{**GOOD, "shares": [0.5, 0.5, 0.0, 0.0]}] * 9 + [GOOD] * 11)
    assert [r["alive"] for r in records] == [2] * 9 + [4] * 11
    assert not any("warned" in r for r in records)


def test_a_bad_end_is_always_said():
    with pytest.warns(HealthWarning, match="fall into one cluster"):
        lived([GOOD, {**GOOD, "shares": [1.0, 0, 0, 0]}])
