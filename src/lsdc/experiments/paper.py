"""The paper's tables: their data sets and variants, and the published figures."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lsdc.errors import InputError, unknown
from lsdc.experiments.published import ABLATION, ABLATION_EXTRA, MORE, REUTERS, TABLE1
from lsdc.experiments.recipes import ROTNET_EPOCHS, labelling
from lsdc.methods import METHODS


@dataclass(frozen=True)
class Variant:
    """A column of a table: a method, and for LSD-C what differs from the data set's recipe."""

    title: str
    method: str = "lsdc"
    similarity: str | None = None  # with the parameters for the scale
    changes: Mapping[str, Any] = field(default_factory=dict)
    on: str = "inputs"  # what the method runs on: inputs, features that LSD-C's pretext leaves, leading directions
    images_only: bool = False


def _ablated(title: str, similarity: str = "knn", **changes: Any) -> Variant:
    """A variant of the ablation, whose base is the paper's: kNN in feature space, RICAP."""
    return Variant(
        title, similarity=similarity, changes={"composition": "ricap", "space": "features", **changes}, images_only=True
    )


VARIANTS: dict[str, Variant] = {
    "kmeans": Variant("K-means", "kmeans"),
    "kmeans-pretext": Variant("K-means on the pretext", "kmeans", on="pretext"),
    "kmeans-lsa": Variant("K-means on 20 directions (LSA)", "kmeans", on="directions"),
    "umap": Variant("UMAP + mixture", "umap"),
    "finch": Variant("FINCH", "finch"),
    "finch-pretext": Variant("FINCH on the pretext", "finch", on="pretext"),
    "jule": Variant("JULE", "jule"),
    "dec": Variant("DEC", "dec"),
    "idec": Variant("IDEC", "idec"),
    "dac": Variant("DAC", "dac"),
    "iic": Variant("IIC", "iic"),
    "imsat": Variant("IMSAT", "imsat"),
    "vade": Variant("VaDE", "vade"),
    "deepcluster": Variant("DeepCluster", "deepcluster"),
    "lsdc": Variant("LSD-C"),
    "l2": _ablated("L2", "l2"),
    "cosine": _ablated("cosine", "cosine"),
    "knn": _ablated("kNN + RICAP (base)"),
    "sne": _ablated("SNE", "sne"),
    "cosine-predictions": _ablated("cosine, prediction space", "cosine", space="predictions"),
    "knn-predictions": _ablated("kNN, prediction space", space="predictions"),
    "sne-predictions": _ablated("SNE, prediction space", "sne", space="predictions"),
    "mixup": _ablated("MixUp", composition="mixup"),
    "none": _ablated("no composition", composition="none"),
    "no-mse": _ablated("without the MSE term", consistency=0.0),
    "two-layer": _ablated("non-linear classifier", head="two-layer"),
    "no-balance": _ablated("without the entropy term (ours)", balance=0.0),
    "restarts": _ablated("most confident of three starts (ours)", n_init=3),
    "graph": Variant(
        "pairs from the graph of all samples (ours)",
        changes={"neighbours": "graph", "epochs": "auto", "lr": "auto"},
        images_only=True,
    ),
    "kmeans-rotnet": Variant(
        "K-means on RotNet", "kmeans", changes={"pretext": "rotnet"}, on="pretext", images_only=True
    ),
}


@dataclass(frozen=True)
class Table:
    """Variants over data sets, and the accuracies (%) the paper gives for them."""

    title: str
    datasets: tuple[str, ...]
    variants: tuple[str, ...]
    published: Mapping[str, Mapping[str, str]]
    only: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # variants that only some of its data sets have


TABLES: dict[str, Table] = {
    "table1": Table(
        "Comparison with other methods (the paper's table 2)",
        ("cifar10", "cifar100-20", "stl10", "mnist"),
        (
            "lsdc",
            "kmeans",
            "kmeans-pretext",
            "umap",
            "finch",
            "finch-pretext",
            "jule",
            "dec",
            "dac",
            "iic",
            "deepcluster",
            "idec",
            "imsat",
            "vade",
        ),
        TABLE1,
        MORE,
    ),
    "reuters": Table(
        "Results on Reuters-10K (the paper's table 3)",
        ("reuters10k",),
        (
            "lsdc",
            "kmeans",
            "kmeans-lsa",
            "umap",
            "finch",
            "imsat",
            "dec",
            "idec",
            "vade",
        ),
        REUTERS,
    ),
    "ablation": Table(
        "Ablation study (the paper's table 4)",
        ("cifar10", "cifar100-20"),
        (
            "knn",
            "sne",
            "cosine",
            "l2",
            "knn-predictions",
            "sne-predictions",
            "cosine-predictions",
            "mixup",
            "none",
        ),
        ABLATION,
    ),
    "ablation-extra": Table(
        "Additional ablation studies (the paper's supplementary, table 2)",
        ("cifar10", "cifar100-20"),
        ("kmeans-rotnet", "knn", "no-mse", "two-layer", "no-balance", "restarts", "graph"),
        ABLATION_EXTRA,
    ),
}


def table(name: str) -> Table:
    """A table by its name."""
    if name not in TABLES:
        raise unknown("table", name, [*TABLES, "figures"])
    return TABLES[name]


def columns(name: str, dataset: str = "", methods: Iterable[str] = ()) -> list[str]:
    """The variants of a table that can be run: their method exists, was asked for, and applies to the data set."""
    chosen = [v for v in table(name).variants if VARIANTS[v].method in (list(methods) or METHODS)]
    here = TABLES[name].datasets
    return [v for v in chosen if VARIANTS[v].method in METHODS and (dataset not in here or _has(name, dataset, v))]


def _has(name: str, dataset: str, variant: str) -> bool:
    return dataset in TABLES[name].only.get(variant, TABLES[name].datasets)


def default_methods(name: str) -> list[str]:
    """The methods that run by default: LSD-C and K-means, which take minutes where all of them take hours."""
    return [method for method in ("lsdc", "kmeans") if any(VARIANTS[v].method == method for v in table(name).variants)]


def check_methods(name: str, methods: Iterable[str]) -> None:
    """Refuse methods that are not in a table."""
    for method in methods:
        if method not in (there := {VARIANTS[v].method for v in TABLES[name].variants}):
            raise InputError(f"method {method}: not in table {name}, which has {', '.join(sorted(there))}")


def belongs(name: str, dataset: str) -> bool:
    """Whether results on a data set appear in a table by default, as LSD-C's own do in the tables that compare it."""
    homes = [t for t, other in TABLES.items() if "lsdc" in other.variants and dataset in other.datasets] or ["table1"]
    return "lsdc" not in TABLES[name].variants or name in homes


def changes(variant: str, dataset: str, scale: str) -> dict[str, Any]:
    """What a variant changes in the recipe of a data set."""
    v = VARIANTS[variant]
    found = {**(labelling(v.similarity, dataset, scale) if v.similarity else {}), **v.changes}
    if scale == "paper" and found.get("composition") == "mixup":
        found["weight_decay"] = 1e-4  # section 4.2: MixUp does not work with more
    if scale == "cpu" and v.changes.get("pretext") == "rotnet" and dataset in ROTNET_EPOCHS:
        found["pretext_plan"] = {"epochs": ROTNET_EPOCHS[dataset]}
    return found


def published(name: str, dataset: str, variant: str, title: str) -> str:
    """The published figure for a variant: none for a part of a data set, the original's for a rebuilt one."""
    figure = TABLES[name].published.get(dataset, {}).get(variant, "-")
    if " of " in title:
        return "-"
    return f"{figure} (original set)" if "(rebuilt)" in title and figure != "-" else figure


def check_datasets(name: str, is_image: Mapping[str, bool]) -> None:
    """Refuse data sets that a table cannot use."""
    for dataset, images in is_image.items():
        if not images and any(VARIANTS[v].images_only for v in TABLES[name].variants):
            raise InputError(f"data set {dataset}: table {name} needs images, but {dataset} has none")
