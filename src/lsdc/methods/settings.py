"""The settings of LSD-C as small frozen objects, and how what is left at ``auto`` follows from the data."""

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any, Literal

from pydantic import Field, NonNegativeInt, PositiveInt
from torch import Tensor

from lsdc.data.augment import AUGMENTATIONS
from lsdc.errors import InputError
from lsdc.functional import COMPOSITIONS, SCORES, SIMILARITIES, closest, knn
from lsdc.methods.deep import UNFIT, check_kind, epochs_for, is_auto, part, validated, validated_plan
from lsdc.methods.graph import Graph, pairs_of_an_epoch
from lsdc.methods.graph_network import network_epochs
from lsdc.methods.persist import plain
from lsdc.nn.network import BACKBONES, HEADS, auto_backbone
from lsdc.nn.projection import FEW_FEATURES
from lsdc.pretext import PRETEXTS
from lsdc.training.plan import Frozen, Plan

SHARES = (0.2, 0.8)  # an automatic k, as a share of N/K, for young and for mature clusters (decision 3)
INPUT_SHARE = 1.2  # the same where the inputs are compared, which do not mature (decision 32)
STEPS = {"image": 500, "vector": 200}  # enough for small data; large data gets ten epochs at least
PRETEXT_STEPS = {"image": 700, "vector": 300}
GRAPH_STEPS = 600
NEIGHBOURS = 10  # of a sample in the graph of all samples
BATCH_SIZE = {("batch", "vector"): 256, ("batch", "image"): 256, ("graph", "vector"): 512, ("graph", "image"): 128}
LR = {("batch", "vector"): 1e-3, ("batch", "image"): 1e-3, ("graph", "vector"): 3e-2, ("graph", "image"): 1e-3}
N_INIT = 20  # classifiers side by side, fewer for more than a hundred clusters
# whoever changes one of these asks for labels made within a batch, as in the paper ...
IN_BATCH: dict[str, Any] = {
    **dict.fromkeys(("similarity", "space", "composition", "rampup", "balance", "head"), "auto"),
    **{"tau": None, "temperature": 1.0, "pool": 1024, "consistency": 5.0, "weighted": True},
}
# ... and where samples are vectors, one of these asks for the network of the paper
OF_NETWORK: dict[str, Any] = {
    **dict.fromkeys(("backbone", "width", "n_frozen", "pretext", "augment"), "auto"),
    "pretext_plan": None,
}

PARTS: dict[str, dict[str, Any]] = {
    "similarity": SIMILARITIES,
    "composition": COMPOSITIONS,
    "backbone": BACKBONES,
    "head": HEADS,
    "augment": AUGMENTATIONS,
    "pretext": PRETEXTS,
}


LSDC_UNFIT = {**UNFIT, "image": ("mlp", "mlp-norm", "coder", "projection")}  # it flattens no images


class Labelling(Frozen):
    """Who belongs together: the similarity and its parameters, the space, and how many samples are compared."""

    similarity: str
    k: PositiveInt | None
    tau: float | None
    temperature: float = Field(gt=0, le=1e6)
    space: Literal["features", "predictions", "inputs"]
    pool: int = Field(ge=0, le=2**20)


class Architecture(Frozen):
    """The network, and how samples are shown to it."""

    backbone: str
    width: float = Field(gt=0, le=16)
    head: str
    n_frozen: NonNegativeInt
    augment: str


class Settings(Frozen):
    """Everything that decides a fit of LSD-C. Parts given as functions appear by their names."""

    n_clusters: PositiveInt
    labelling: Labelling
    composition: str
    consistency: float = Field(ge=0, le=1e6)
    rampup: float = Field(ge=0, le=1e9)
    weighted: bool
    balance: float = Field(ge=0, le=1e6)
    architecture: Architecture
    pretext: str
    pretext_plan: Plan
    plan: Plan
    graph: Graph | None = None  # where pairs come from a graph of all samples


def defaults(shape: tuple[int, ...], sparse: bool = False) -> dict[str, Any]:
    """What ``auto`` means for samples of a shape (measured: see docs/decisions.md)."""
    is_image = len(shape) == 3
    easy = not is_image and shape[0] < FEW_FEATURES
    documents = sparse and not easy
    return {
        "similarity": "knn" if documents else "diffusion",
        "space": "inputs" if documents else "features",
        "balance": 0.0 if documents else 2.0,
        "backbone": auto_backbone(shape),
        "width": 0.25,
        "head": "linear" if is_image else "normed",
        "n_frozen": 0,
        "augment": ("crop-flip" if shape[0] > 1 else "affine") if is_image else "noise",
        "pretext": "none" if easy else "autoencoder",
        "composition": "none" if easy else "mixup",
    }


def source_of_pairs(params: dict[str, Any], shape: tuple[int, ...], sparse: bool) -> str:
    """Whether "graph" or "batch": dense vectors that are good features already need no network (decision 70)."""
    given = params["neighbours"]
    if not (isinstance(given, str) and given in ("auto", "graph", "batch")):
        raise InputError(f"neighbours must be 'auto', 'graph' or 'batch', got {given!r}")
    is_image = len(shape) == 3
    excluded = IN_BATCH if is_image else {**IN_BATCH, **OF_NETWORK}
    changed = [name for name, default in excluded.items() if params[name] is not default and params[name] != default]
    if given == "graph":
        if changed:
            raise InputError(f"{changed[0]} has no part in neighbours='graph'; leave one of them out")
        return "graph"
    suits = is_image or not sparse
    return "graph" if given == "auto" and suits and not changed else "batch"


FROM_GRAPH: dict[str, dict[str, Any]] = {
    "vector": {"backbone": "projection", "head": "linear", "n_frozen": 1, "augment": "none", "pretext": "none"},
    "image": {"head": "normed"},
}


def _graph(values: dict[str, Any]) -> Graph:
    k = NEIGHBOURS if is_auto(values["k"]) else values["k"]
    n_init = values["n_init"]
    if is_auto(n_init):
        n_init = max(1, min(N_INIT, 100 * N_INIT // max(values["n_clusters"], 1)))
    return validated(Graph, {"k": k, "n_init": n_init})


def resolve(params: dict[str, Any], shape: tuple[int, ...], n: int, sparse: bool = False) -> Settings:
    """The parameters of the estimator, with ``auto`` replaced by what suits ``n`` samples of ``shape``."""
    source = source_of_pairs(params, shape, sparse)
    kind = "image" if len(shape) == 3 else "vector"
    if source == "batch" and not (is_auto(params["n_init"]) or params["n_init"] == 1):
        raise InputError("n_init has a meaning with neighbours='graph' only; leave one of them out")
    auto = {**defaults(shape, sparse), **(FROM_GRAPH[kind] if source == "graph" else {})}
    auto |= {"composition": "none"} if source == "graph" else {}
    auto |= {"batch_size": BATCH_SIZE[source, kind], "lr": LR[source, kind]}
    values = {name: auto[name] if is_auto(value) and name in auto else value for name, value in params.items()}
    for name, table in PARTS.items():
        part(name, values[name], table)
        values[name] = plain(values[name])
    check_kind({name: values[name] for name in ("backbone", "composition")}, shape, LSDC_UNFIT)
    if source == "batch" and values["backbone"] == "projection":
        raise InputError("backbone 'projection' is that of neighbours='graph'; ask for that instead")
    graph = _graph(values) if source == "graph" else None
    if graph and kind == "image":
        plan = _plan(values, partial(network_epochs, n))
    else:
        pairs, steps = (pairs_of_an_epoch(n), GRAPH_STEPS) if graph else (n, STEPS[kind])
        plan = _plan(values, partial(epochs_for, steps, pairs))
    labelling = _pick(Labelling, {**values, "k": None if is_auto(values["k"]) else values["k"]})
    if kind == "image" and labelling.space == "inputs":
        raise InputError(f"space 'inputs' needs vectors, got {shape}")
    most = min(n, plan.batch_size)
    if labelling.k is not None and labelling.k >= (n if graph else most) and not callable(params["similarity"]):
        raise InputError(
            f"k={labelling.k} must be smaller than the {'' if graph else 'batch of '}{n if graph else most} samples"
        )
    pretext_batch = BATCH_SIZE["batch", kind] if graph else plan.batch_size
    pretext_plan = {
        "epochs": epochs_for(PRETEXT_STEPS[kind], n, pretext_batch, 1 if graph else 10),
        "batch_size": pretext_batch,
        "optimizer": "adam",
        "lr": 1e-3,
        "weight_decay": 0.0,
        "schedule": "cosine",
    }
    groups = {
        "labelling": labelling,
        "architecture": _pick(Architecture, values),
        "pretext_plan": validated_plan(pretext_plan, values["pretext_plan"]),
        "plan": plan,
        "graph": graph,
        "rampup": plan.epochs / 2 if is_auto(values["rampup"]) else values["rampup"],
    }
    settings: Settings = _pick(Settings, {**values, **groups})
    return settings


def stored(values: dict[str, Any], shape: tuple[int, ...]) -> Settings:
    """The settings of a file, if they can be those of a fit on samples of ``shape``."""
    settings = validated(Settings, values, "settings.")
    names = settings.model_dump(include={"composition", "pretext"}) | settings.architecture.model_dump()
    names["similarity"] = settings.labelling.similarity
    for name, table in PARTS.items():
        if ":" not in names[name]:  # a function that was given
            part(name, names[name], table)
    check_kind({name: names[name] for name in ("backbone", "composition")}, shape, LSDC_UNFIT)
    return settings


def with_functions(params: dict[str, Any]) -> dict[str, Any]:
    """Parameters of a file with something callable for each function, of which a file holds the name only."""
    return {k: stored if k in PARTS and isinstance(v, str) and ":" in v else v for k, v in params.items()}


def _pick(group: Any, values: dict[str, Any]) -> Any:
    """A group of settings from the values of its fields."""
    return validated(group, {name: values[name] for name in group.model_fields})


def _plan(values: dict[str, Any], epochs: Callable[[int], int]) -> Plan:
    """The plan of the clustering; automatic ``epochs`` follow from the batch size."""
    names = ("batch_size", "optimizer", "lr", "weight_decay", "schedule", "milestones", "warmup", "epochs")
    given = {name: plain(values[name]) for name in names}
    if is_auto(given["epochs"]):
        given["epochs"] = epochs(validated(Plan, {**given, "epochs": 1}).batch_size)
    return validated(Plan, given)


def maturity(progress: float) -> float:
    """How far clusters have formed: 0 until 20 % of the training, then rising to 1 at 70 %."""
    return min(max((progress - 0.2) / 0.5, 0.0), 1.0)


def bind_similarity(similarity: Any, labelling: Labelling, n_clusters: int) -> Callable[[Tensor, int, float], Tensor]:
    """The similarity as ``label(f, rows, progress)``: A of the first ``rows`` of ``f``, with an automatic k."""
    if callable(similarity):
        return lambda f, rows, progress: similarity(f)[:rows, :rows]
    free = similarity in SCORES and labelling.tau is None  # as many pairs as kNN connects, wherever they are
    function = SCORES[similarity] if free else SIMILARITIES[similarity]
    parameters = inspect.signature(function).parameters

    def label(f: Tensor, rows: int, progress: float) -> Tensor:
        share = SHARES[0] + maturity(progress) * (SHARES[1] - SHARES[0])
        share = INPUT_SHARE if labelling.space == "inputs" else share
        k = labelling.k or max(1, min(len(f) - 1, round(share * len(f) / n_clusters)))
        options = {"tau": labelling.tau, "temperature": labelling.temperature, "k": k, "rows": rows}
        result = function(f, **{name: options[name] for name in parameters if name in options})
        if free:
            result = closest(result, int(knn(f, k).triu(1).sum()))
        return result[:rows, :rows]

    return label
