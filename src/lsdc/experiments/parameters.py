"""What a user asked for on the command line, as parameters of a method."""

import json
from pathlib import Path
from typing import Any

from lsdc.data.datasets import Dataset
from lsdc.errors import InputError, unknown
from lsdc.experiments.recipes import merged, recipe_for
from lsdc.methods import METHODS
from lsdc.methods.choosing import AUTO


def words(text: str, option: str, kind: str) -> list[str]:
    """What is named in a list with commas, each once."""
    found = list(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))
    if not found:
        raise InputError(f"{option} {text!r}: name at least one (lsdc list {kind})")
    return found


def chosen(
    method: str, recipe: str, words: list[str], dataset: Dataset, clusters: int | str | None, seed: int | None
) -> dict[str, Any]:
    """The recipe's parameters, what ``--set`` changes in them, and the options that have names of their own."""
    if method not in METHODS:
        raise unknown("method", method, METHODS)
    if recipe != "default" and method != "lsdc":
        raise InputError(f"--recipe {recipe} is for the method lsdc, not for {method}")
    named = {key: value for key, value in (("n_clusters", clusters), ("random_state", seed)) if value is not None}
    return merged(recipe_for(recipe, dataset), settings(words, method)) | named


def complete(given: dict[str, Any], dataset: Dataset, method: str) -> dict[str, Any]:
    """With the data set's number of clusters and seed 0 where nothing is said of them."""
    if given.get("n_clusters", dataset.n_clusters) is None and not METHODS[method].finds_n_clusters:
        raise InputError(
            f"--clusters is missing: {dataset.name} does not say how many there are; "
            "give a number or --clusters auto, or look first: lsdc suggest-k DATA"
        )
    return {"n_clusters": dataset.n_clusters, "random_state": 0, **given}


def resumed(params: dict[str, Any], given: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The parameters a run was started with; what is given again must agree with them."""
    for key, value in given.items():
        if key == "n_clusters" and value == AUTO:  # it was counted when the run began
            continue
        if json.loads(json.dumps(value)) != params.get(key):
            raise InputError(
                f"{folder}: was started with {key}={params.get(key)!r}, not {value!r}; use --overwrite to start again"
            )
    return params


def settings(words: list[str], method: str) -> dict[str, Any]:
    """``key=value`` pairs as parameters of the method; a dot reaches into a group, as in pretext_plan.lr=0.01."""
    known = METHODS[method]().get_params()
    result: dict[str, Any] = {}
    for word in words:
        key, equals, text = word.partition("=")
        if not equals:
            raise InputError(f"--set {word}: write KEY=VALUE")
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            value = text
        group, dot, field = key.partition(".")
        if group not in known:
            raise unknown("setting (--set)", group, known)
        if not dot:
            result[key] = value
        elif field and isinstance(result.setdefault(group, {}), dict):
            result[group][field] = value
        else:
            raise InputError(f"--set {word}: {group} is no group with fields")
    return result
