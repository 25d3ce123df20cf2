"""The paper's table of hyper-parameters, literally."""

import pytest

from lsdc import LSDC
from lsdc.errors import InputError
from lsdc.experiments.recipes import PAPER, RECIPES, recipe

SHAPES = {
    "cifar10": (3, 32, 32),
    "cifar100-20": (3, 32, 32),
    "stl10": (3, 96, 96),
    "mnist": (1, 28, 28),
    "reuters10k": (2000,),
}
# epochs, steps, lr, lambda, ramp-up, similarity, tau, temperature, k, weight decay: supplementary, table 1
TABLE = {
    "cifar10": (220, (140, 180), 0.1, 5, 100, "knn", None, 1.0, 20, 5e-4),
    "cifar100-20": (200, (170,), 0.1, 25, 150, "knn", None, 1.0, 10, 5e-4),
    "stl10": (200, (140, 180), 0.1, 5, 50, "sne", 0.01, 0.5, None, 5e-4),
    "mnist": (15, (), 0.1, 5, 50, "knn", None, 1.0, 10, 5e-4),
    "reuters10k": (75, (), 1e-3, 25, 100, "knn", None, 1.0, 5, 2e-3),
}


@pytest.mark.parametrize("name", PAPER)
def test_the_recipe_is_the_papers_table(name):
    settings = LSDC(10, **recipe("paper", name))._resolve(SHAPES[name], 60_000)
    plan = settings.plan
    assert (
        plan.epochs,
        plan.milestones,
        plan.lr,
        settings.consistency,
        settings.rampup,
        settings.similarity,
        settings.tau,
        settings.temperature,
        settings.k,
        plan.weight_decay,
    ) == TABLE[name]
    assert plan.batch_size == 256
    assert plan.gamma == 0.1
    assert plan.optimizer == ("adam" if name == "reuters10k" else "sgd")
    assert settings.width == 1.0


@pytest.mark.parametrize("name", PAPER)
def test_the_recipe_holds_nothing_the_paper_has_not(name):
    settings = LSDC(10, **recipe("paper", name))._resolve(SHAPES[name], 60_000)
    assert settings.balance == 0
    assert not settings.weighted
    assert settings.pool == 0
    assert settings.space == "features"
    assert settings.head == "linear"


@pytest.mark.parametrize("name", ["cifar10", "cifar100-20", "stl10", "mnist"])
def test_rotnet_is_trained_as_in_the_paper(name):
    plan = LSDC(10, **recipe("paper", name))._resolve(SHAPES[name], 60_000).pretext_plan
    assert (plan.epochs, plan.milestones, plan.gamma, plan.lr, plan.batch_size) == (200, (60, 120, 160), 0.2, 0.1, 256)
    assert [plan.lr_at(t) for t in (0, 60, 120, 160)] == pytest.approx([0.1, 0.02, 0.004, 0.0008])


def test_other_data_takes_the_recipe_of_the_most_similar():
    assert recipe("paper", shape=(3, 64, 64)) == PAPER["cifar10"]
    assert recipe("paper", shape=(1, 64, 64)) == PAPER["mnist"]
    assert recipe("paper", shape=(7,)) == recipe("paper") == PAPER["reuters10k"]


def test_the_default_recipe_is_the_estimators_own():
    assert recipe("default", "mnist") == {}
    assert set(RECIPES) == {"default", "paper", "cpu"}


def test_unknown_recipes_suggest():
    with pytest.raises(InputError, match=r"unknown recipe 'papre': did you mean 'paper'\?"):
        recipe("papre")
