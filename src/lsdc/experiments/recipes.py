"""Recipes: named sets of LSD-C's parameters. ``default`` leaves everything to the estimator."""

from typing import Any

from lsdc.data.datasets import Dataset
from lsdc.data.sources import sample_shape
from lsdc.errors import unknown

# The paper's literal settings, from section 4 and the supplementary's table of hyper-parameters, without anything
# that the default adds.
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
    "space": "features",
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

# The default for two CPU cores: smaller networks and schedules.
_PHOTOS = {
    "backbone": "vgg6",
    "width": 0.25,
    "augment": "colour",
    "pretext": "contrastive",
    "pretext_plan": {"epochs": 25, "lr": 2e-3, "warmup": 1},
    "n_frozen": 2,
}
CPU: dict[str, dict[str, Any]] = {
    "cifar10": _PHOTOS,
    "cifar100-20": _PHOTOS,
    "stl10": _PHOTOS,
}

# RotNet shows each image four times, so on a CPU it gets fewer epochs than the pretexts of these recipes.
ROTNET_EPOCHS = {"cifar10": 6, "cifar100-20": 6, "stl10": 6, "mnist": 1}

# The ablation labels pairs within batches, as the paper does. With these its base row (kNN, RICAP) finishes learning:
# 20,000 images of MNIST end at 0.95 and more after three minutes of one core. (With twice the learning rate 0.91.)
ABLATION = {"mnist": {"width": 0.125, "lr": 5e-4}}
ABLATION_STEPS = 2_340

# The parameters of the paper's labellings; where its table has none (L2, and the dashes), the threshold is chosen to
# connect as many pairs as kNN does.
LABELLINGS: dict[str, dict[str, dict[str, Any]]] = {
    "cifar10": {"knn": {"k": 20}, "sne": {"tau": 0.01, "temperature": 1.0}, "cosine": {"tau": 0.9}},
    "cifar100-20": {"knn": {"k": 10}, "sne": {"tau": 0.01, "temperature": 0.5}, "cosine": {"tau": 0.95}},
    "stl10": {"sne": {"tau": 0.01, "temperature": 0.5}},
    "mnist": {"knn": {"k": 10}},
    "reuters10k": {"knn": {"k": 5}},
}

RECIPES: dict[str, str] = {
    "default": "the estimator's own defaults: the paper's method, extended to keep all clusters alive",
    "paper": "the paper's literal settings for this data set, or for the most similar one",
    "cpu": "for the paper's data sets on two CPU cores: the default with a smaller network and schedule",
}
SCALES = ("cpu", "paper")


def recipe(name: str, dataset: str = "", shape: tuple[int, ...] = ()) -> dict[str, Any]:
    """The parameters of a recipe, for a data set by name or for samples of a shape (none: texts)."""
    if name not in RECIPES:
        raise unknown("recipe", name, RECIPES)
    if name == "default":
        return {}
    if name == "cpu":
        return dict(CPU.get(dataset, {}))
    like = "reuters10k" if len(shape) < 3 else "mnist" if shape[0] == 1 else "cifar10"
    return dict(PAPER.get(dataset, PAPER[like]))


def recipe_for(name: str, dataset: Dataset) -> dict[str, Any]:
    """The parameters of a recipe for a data set at hand."""
    is_plain = isinstance(dataset.X, list) or dataset.X.ndim < 2  # texts, or something no method accepts
    return recipe(name, dataset.name, () if is_plain else sample_shape(dataset.X))


def labelling(similarity: str, dataset: str, scale: str) -> dict[str, Any]:
    """The parameters of a similarity: the paper's at its scale, automatic ones elsewhere."""
    free = {"similarity": similarity, "k": "auto", "tau": None, "temperature": 1.0}
    known = LABELLINGS.get(dataset, {}) if scale == "paper" else {}
    return free | known.get("knn", {}) | known.get(similarity, {})  # kNN's k decides how many pairs to connect


def ablation(dataset: str, n: int, batch_size: int = 256) -> dict[str, Any]:
    """What every row of the ablation has on a CPU, whatever the number of samples."""
    if dataset not in ABLATION:
        return {}
    return {**ABLATION[dataset], "epochs": max(1, round(ABLATION_STEPS * batch_size / n))}


def merged(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """The second on top of the first, field by field where both hold groups."""
    both = {**first, **second}
    for key, value in second.items():
        if isinstance(value, dict) and isinstance(first.get(key), dict):
            both[key] = {**first[key], **value}
    return both
