"""The settings of LSD-C: which there are, and what "auto" means for each kind of data (docs/decisions.md)."""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field, PositiveInt, model_validator

from lsdc.errors import InputError
from lsdc.methods import deep
from lsdc.methods.deep import is_auto
from lsdc.methods.graph import graph_neighbours
from lsdc.nn.network import FITTED
from lsdc.nn.projection import FEW_FEATURES, N_DIRECTIONS

DOCUMENT_WIDTH = 3  # features of documents for each cluster: two directions (decision 70), one of words (89)
N_INIT = 20  # classifiers side by side, fewer for more than a hundred clusters
STEPS = {("batch", "image"): 500, ("batch", "vector"): 200, ("graph", "vector"): 300}  # ten epochs at least
PRETEXT_STEPS = {"image": 700, "vector": 300}
BATCH_SIZE = {("batch", "vector"): 256, ("batch", "image"): 256, ("graph", "vector"): 512, ("graph", "image"): 128}
LR = {("batch", "vector"): 1e-3, ("batch", "image"): 1e-3, ("graph", "vector"): 3e-2, ("graph", "image"): 1e-3}
# whoever changes one of these asks for labels made within a batch, as in the paper ...
IN_BATCH: dict[str, Any] = {
    "similarity": "auto",
    "space": "auto",
    "composition": "auto",
    "rampup": "auto",
    "balance": "auto",
    "head": "auto",
    "tau": None,
    "temperature": 1.0,
    "pool": 1024,
    "consistency": 5.0,
    "weighted": True,
}
# ... and where samples are vectors or colour images, one of these asks for a network (that of the paper for vectors)
OF_NETWORK: dict[str, Any] = {
    "backbone": "auto",
    "width": "auto",
    "n_frozen": "auto",
    "pretext": "auto",
    "augment": "auto",
    "pretext_plan": None,
}
Params = Mapping[str, Any]


class Settings(deep.Settings):
    """Everything that decides a fit of LSD-C."""

    neighbours: Literal["graph", "batch"]
    k: PositiveInt | None
    walk: PositiveInt = Field(3, le=1000)
    similarity: str
    tau: float | None
    temperature: float = Field(gt=0, le=1e6)
    space: Literal["features", "predictions"]
    pool: int = Field(ge=0, le=2**20)
    composition: str
    consistency: float = Field(ge=0, le=1e6)
    rampup: float = Field(ge=0, le=1e9)
    weighted: bool
    balance: float = Field(ge=0, le=1e6)
    head: str

    @model_validator(mode="before")
    @classmethod
    def _from_groups(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Files of format 1 hold groups of settings."""
        names = ("labelling", "architecture", "graph")
        labelling, architecture, graph = (values.get(name) for name in names)
        if not (isinstance(labelling, dict) and isinstance(architecture, dict) and isinstance(graph, dict | None)):
            return values
        rest = {name: value for name, value in values.items() if name not in names}
        source = {"neighbours": "graph", **graph} if graph else {"neighbours": "batch", "n_init": 1}
        return {**rest, **labelling, **architecture, **source}


def defaults(params: Params, shape: tuple[int, ...], sparse: bool) -> dict[str, Any]:
    """What "auto" means for samples of ``shape``."""
    source, is_image = pair_source(params, shape), len(shape) == 3
    kind = "image" if is_image and not (source == "graph" and takes_patches(params, shape)) else "vector"
    easy = not is_image and shape[0] < FEW_FEATURES
    documents = sparse and not easy
    found: dict[str, Any] = {
        "neighbours": source,
        "k": None,
        "similarity": "knn",
        "space": "features",
        "balance": 0.0 if documents else 2.0,
        "head": "linear" if is_image else "normed",
        "n_frozen": 0,
        "pretext": "none" if easy else "autoencoder",
        "pretext_steps": PRETEXT_STEPS[kind],
        "composition": "none" if easy else "mixup",
        "rampup": 0.0,  # half of the epochs, once these are known
        "batch_size": BATCH_SIZE[source, kind],
        "lr": LR[source, kind],
        "steps": STEPS.get((source, kind)),
        "least": 10,
    }
    return found | _graph_defaults(params, shape, documents) if source == "graph" else found


def pair_source(params: Params, shape: tuple[int, ...]) -> str:
    """Where pairs come from, "graph" or "batch": what suits the data, if no parameter says otherwise."""
    given = params["neighbours"]
    if not (isinstance(given, str) and given in ("auto", "graph", "batch")):
        raise InputError(f"neighbours must be 'auto', 'graph' or 'batch', got {given!r}")
    is_image = len(shape) == 3
    changed = _changed(params, IN_BATCH if is_image else {**IN_BATCH, **OF_NETWORK})
    if given == "graph" and changed:
        raise InputError(f"{changed[0]} has no effect with neighbours='graph'; leave out one of the two")
    return "graph" if given == "graph" or (given == "auto" and not changed) else "batch"


def takes_patches(params: Params, shape: tuple[int, ...]) -> bool:
    """Whether images are seen as patches: those in colour, if no parameter of a network is changed."""
    if _changed(params, OF_NETWORK):
        return isinstance(params["backbone"], str) and params["backbone"] == "patches"
    return len(shape) == 3 and shape[0] > 1


def _changed(params: Params, untouched: Params) -> list[str]:
    """The names of the parameters that differ from their ``untouched`` values."""
    return [name for name, value in untouched.items() if params[name] is not value and params[name] != value]


def _graph_defaults(params: Params, shape: tuple[int, ...], documents: bool) -> dict[str, Any]:
    n_clusters, is_image = params["n_clusters"], len(shape) == 3
    n_init = max(1, min(N_INIT, 100 * N_INIT // max(n_clusters, 1)))
    found = {"n_init": n_init, "composition": "none", "pretext_least": 1, "pretext_batch": 256}
    if is_image and not takes_patches(params, shape):
        return {**found, "head": "normed"}
    return {
        **found,
        "backbone": "words" if documents else "patches" if is_image else "projection",
        "width": min(16.0, DOCUMENT_WIDTH * n_clusters / N_DIRECTIONS) if documents else 1.0,
        "head": "linear",
        "n_frozen": 2 if is_image else 1,  # all there is
        "augment": "none",
        "pretext": "none",
    }


def completed(settings: Settings, params: Params, n: int) -> Settings:
    """The settings with what follows from others and from the ``n`` samples; refuses combinations that cannot work."""
    on_graph = settings.neighbours == "graph"
    if is_auto(params["rampup"]):
        settings = settings.model_copy(update={"rampup": settings.plan.epochs / 2})
    if on_graph and is_auto(params["k"]):
        settings = settings.model_copy(update={"k": graph_neighbours(n, settings.n_clusters)})
    if on_graph and settings.backbone in FITTED and settings.pretext != "none":
        raise InputError(f"backbone {settings.backbone!r} is fitted, not trained: leave out pretext")
    if not on_graph and settings.backbone in FITTED:
        raise InputError(f"backbone {settings.backbone!r} works only with neighbours='graph'")
    most = n if on_graph else min(n, settings.plan.batch_size)
    k = None if on_graph and is_auto(params["k"]) else settings.k  # then the graph has as many as there are
    if k is not None and k >= most and not callable(params["similarity"]):
        where = "the" if on_graph else "the batch of"
        raise InputError(f"k={k} must be smaller than {where} {most} samples")
    return settings
