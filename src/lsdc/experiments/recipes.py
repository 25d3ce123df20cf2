"""Recipes: named sets of LSD-C's parameters. ``default`` is what the estimator does by itself."""

from typing import Any

from lsdc.errors import unknown

# The paper's literal settings, section 4 and the supplementary's table of hyper-parameters: nothing of what the
# default adds, and its own network, schedule and thresholds.
_ROTNET = {
    "epochs": 200,
    "batch_size": 256,
    "optimizer": "sgd",
    "lr": 0.1,
    "weight_decay": 5e-4,
    "schedule": "steps",
    "milestones": (60, 120, 160),
    "gamma": 0.2,
}
_LITERAL: dict[str, Any] = {
    "similarity": "knn",
    "pool": 0,
    "weighted": False,
    "balance": 0.0,
    "head": "linear",
    "width": 1.0,
    "batch_size": 256,
    "optimizer": "sgd",
    "lr": 0.1,
    "weight_decay": 5e-4,
    "schedule": "constant",
}
_IMAGES = {**_LITERAL, "composition": "ricap", "pretext": "rotnet", "pretext_plan": _ROTNET, "consistency": 5.0}
_COLOUR = {**_IMAGES, "backbone": "resnet18", "n_frozen": 3, "augment": "crop-flip", "schedule": "steps"}

PAPER: dict[str, dict[str, Any]] = {
    "cifar10": {**_COLOUR, "epochs": 220, "milestones": (140, 180), "rampup": 100, "k": 20},
    "cifar100-20": {
        **_COLOUR,
        "epochs": 200,
        "milestones": (170,),
        "rampup": 150,
        "k": 10,
        "consistency": 25.0,
    },
    "stl10": {
        **_COLOUR,
        "epochs": 200,
        "milestones": (140, 180),
        "rampup": 50,
        "similarity": "sne",
        "tau": 0.01,
        "temperature": 0.5,
    },
    "mnist": {**_IMAGES, "backbone": "vgg4", "n_frozen": 3, "augment": "window", "epochs": 15, "rampup": 50, "k": 10},
    "reuters10k": {
        **_LITERAL,
        "backbone": "mlp",
        "n_frozen": 0,
        "composition": "mixup",
        "augment": "dropout",
        "pretext": "autoencoder",
        "consistency": 25.0,
        "rampup": 100,
        "epochs": 75,
        "optimizer": "adam",
        "lr": 1e-3,
        "weight_decay": 2e-3,
        "k": 5,
    },
}

RECIPES: dict[str, str] = {
    "default": "what LSDC does by itself: the paper's method, with what keeps all clusters alive",
    "paper": "the paper's literal settings for this data set, or for the one most like it",
}


def recipe(name: str, dataset: str = "", ndim: int = 2, colour: bool = False) -> dict[str, Any]:
    """The parameters of a recipe, for a data set by name or for data of a kind."""
    if name not in RECIPES:
        raise unknown("recipe", name, RECIPES)
    if name == "default":
        return {}
    like = "reuters10k" if ndim <= 2 else "cifar10" if colour else "mnist"
    return dict(PAPER.get(dataset, PAPER[like]))
