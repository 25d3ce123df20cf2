"""``lsdc list``: the names that options accept."""

import inspect
import re
from enum import StrEnum
from typing import Annotated, Any

import typer

from lsdc.cli.console import out
from lsdc.cli.importing import importing
from lsdc.errors import unknown

PARAMETER = re.compile(r"^(?P<names>\w[\w, ]*?)(?: : .*)?\n(?P<meaning>(?:    .*\n)+)", re.MULTILINE)


class Kind(StrEnum):
    methods = "methods"
    datasets = "datasets"
    similarities = "similarities"
    compositions = "compositions"
    pretexts = "pretexts"
    backbones = "backbones"
    augmentations = "augmentations"
    encoders = "encoders"
    recipes = "recipes"
    settings = "settings"


def list_(
    kind: Annotated[str, typer.Argument(help=f"what to list: {', '.join(Kind)}", metavar="KIND")],
    method: Annotated[str, typer.Option("--method", help="the method whose settings to list")] = "lsdc",
) -> None:
    """List the names that options accept: data sets, methods, settings and more."""
    with importing():
        from lsdc.data.augment import AUGMENTATIONS
        from lsdc.data.datasets import DATASETS
        from lsdc.data.encoders import ENCODERS
        from lsdc.experiments.recipes import RECIPES
        from lsdc.functional import COMPOSITIONS, SIMILARITIES
        from lsdc.methods import METHODS
        from lsdc.nn.network import BACKBONES
        from lsdc.pretext import PRETEXTS
        from lsdc.report.terminal import names_table

    if method not in METHODS:
        raise unknown("method", method, METHODS)
    if kind not in Kind.__members__:
        raise unknown("kind of name", kind, Kind.__members__)
    tables: dict[str, dict[str, Any]] = {
        "methods": METHODS,
        "datasets": DATASETS,
        "similarities": SIMILARITIES,
        "compositions": COMPOSITIONS,
        "pretexts": PRETEXTS,
        "backbones": BACKBONES,
        "augmentations": AUGMENTATIONS,
        "encoders": ENCODERS,
        "recipes": RECIPES,
        "settings": METHODS[method]().get_params(),
    }
    meanings = _meanings(METHODS[method]) if kind == Kind.settings else {}
    entries = [(name, _about(entry, kind, meanings.get(name, ""))) for name, entry in tables[kind].items()]
    out.print(names_table(f"settings of {method}" if kind == Kind.settings else kind, entries))


def _meanings(method: Any) -> dict[str, str]:
    """What a method's parameters mean, from its docstring and those of its bases."""
    found: dict[str, str] = {}
    for kind in reversed(method.__mro__):
        section = inspect.cleandoc(kind.__doc__ or "").partition("Parameters\n----------\n")[2]
        for match in PARAMETER.finditer(section.split("\n\n")[0] + "\n"):
            words = " ".join(match["meaning"].split())
            found |= {name.strip(): words for name in match["names"].split(",")}
    return {name: _elsewhere(name, words) for name, words in found.items()}


def _elsewhere(name: str, words: str) -> str:
    """What a parameter means where a docstring only says "As for ``LSDC``"."""
    from lsdc.methods import METHODS

    other = next((m for m in METHODS.values() if words == f"As for ``{m.__name__}``."), None)
    return _meanings(other)[name] if other else words


def _about(entry: Any, kind: str, meaning: str) -> str:
    if kind == Kind.settings:
        return f"default {entry!r}{': ' if meaning else ''}{meaning.replace('``', '')}"
    return entry if isinstance(entry, str) else (entry.__doc__ or "").strip().split("\n")[0]
