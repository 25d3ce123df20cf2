"""What the user asked for on the command line, as methods and their parameters."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lsdc.data.datasets import Dataset
from lsdc.errors import InputError, unknown
from lsdc.experiments.recipes import merged, recipe_for
from lsdc.methods import METHODS
from lsdc.methods.choosing import AUTO

OWN = {
    "n_clusters": "--clusters",
    "random_state": "--seeds",
    "device": "--device",
}  # settings with options of their own


def words(text: str, option: str, kind: str) -> list[str]:
    """The names in a comma-separated list, each once."""
    found = list(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))
    if not found:
        raise InputError(f"{option} {text!r}: name at least one (lsdc list {kind})")
    return found


def methods_of(text: str) -> list[str]:
    """The methods of ``--methods``, each once."""
    methods = list(METHODS) if text.strip() == "all" else words(text, "--methods", "methods")
    for method in methods:
        if method not in METHODS:
            raise unknown("method (--methods)", method, METHODS)
    return methods


def changes_of(given: Sequence[str], methods: Sequence[str]) -> dict[str, dict[str, Any]]:
    """What ``--set METHOD.KEY=VALUE`` changes in each method."""
    result: dict[str, dict[str, Any]] = {}
    for word in given:
        method, dot, rest = word.partition(".")
        if not dot or "=" in method or "=" not in rest:
            raise InputError(f"--set {word}: write METHOD.KEY=VALUE")
        if method not in methods:
            if method in METHODS:
                raise InputError(f"--set {word}: {method} is not one of the methods to run; add it to --methods")
            raise unknown("method (--set)", method, methods)
        if (key := rest.partition("=")[0]) in OWN:
            raise InputError(f"--set {word}: this is the same for all methods; use {OWN[key]}")
        result[method] = merged(result.get(method, {}), settings([rest], method))
    return result


def chosen(
    method: str, recipe: str, words: list[str], dataset: Dataset, clusters: int | str | None, seed: int | None
) -> dict[str, Any]:
    """The recipe's parameters, with the changes of ``--set`` and of the options that stand for a setting."""
    if method not in METHODS:
        raise unknown("method", method, METHODS)
    if recipe != "default" and method != "lsdc":
        raise InputError(f"--recipe {recipe} is for the method lsdc, not for {method}")
    named = {key: value for key, value in (("n_clusters", clusters), ("random_state", seed)) if value is not None}
    changed = settings(words, method)
    for key, value in named.items():
        if key in changed and changed[key] != value:
            option = {"n_clusters": "--clusters", "random_state": "--seed"}[key]
            raise InputError(f"--set {key}={changed[key]} and {option} {value} differ; give one of them")
    return merged(recipe_for(recipe, dataset), changed) | named


def complete(given: dict[str, Any], dataset: Dataset, method: str) -> dict[str, Any]:
    """Fill in what was not given: the data set's number of clusters, and seed 0."""
    if given.get("n_clusters", dataset.n_clusters) is None and not METHODS[method].finds_n_clusters:
        raise InputError(
            f"--clusters is missing: {dataset.name} has no known number of classes; "
            "give a number or --clusters auto, or run lsdc suggest-k DATA first"
        )
    return {"n_clusters": dataset.n_clusters, "random_state": 0, **given}


def resumed(params: dict[str, Any], given: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The parameters a run was started with; options given again must agree with them."""
    for key, value in given.items():
        if key == "n_clusters" and value == AUTO:  # it was counted when the run began
            continue
        if json.loads(json.dumps(value)) != params.get(key):
            raise InputError(
                f"{folder}: started with {key}={params.get(key)!r}, not {value!r}; use --overwrite to start over"
            )
    return params


def settings(words: list[str], method: str) -> dict[str, Any]:
    """``key=value`` pairs as parameters of the method; a dot goes into a group, as in pretext_plan.lr=0.01."""
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
            raise InputError(f"--set {word}: {group} has no fields of its own")
    return result
