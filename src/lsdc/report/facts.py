"""What a report needs from the files of a run; every figure has one source, for clusters it is labels.csv."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ValidationError

from lsdc.data.reading import listed
from lsdc.errors import InputError
from lsdc.methods import load
from lsdc.methods.against_kmeans import is_better
from lsdc.metrics import CONFIDENT, UNASSIGNED, cluster_sizes
from lsdc.runs.folder import Run
from lsdc.runs.untrusted import first_problem
from lsdc.training.health import REMEDIES, clusters_alive, symptoms

UNTRAINED = dict.fromkeys(REMEDIES, "another random_state")  # methods without epochs have no learning rate


class Roles(BaseModel):
    """How the columns of a table are used."""

    features: list[str]
    id: str | None = None
    label: str | None = None
    unused: list[str] = []

    def lines(self) -> list[tuple[str, str]]:
        """One line per role that has a column."""
        named = [self.id] if self.id is not None else [], [self.label] if self.label is not None else []
        columns = dict(zip(("features", "id", "label", "not used"), (self.features, *named, self.unused), strict=True))
        return [(role, listed(names)) for role, names in columns.items() if names]


class ReadFile(BaseModel):
    """read.json: what was clustered."""

    kind: str
    n: int
    shape: list[int]
    range: tuple[float, float]
    zeros: float
    duplicates: int
    columns: Roles | None = None
    notes: list[str] = []
    skipped: list[Any] = []


class NamesFile(BaseModel):
    """names.json: the names of the clusters and their terms."""

    names: list[str | None] = []
    terms: list[list[str]] = []


class ComparisonFile(BaseModel):
    """comparison.json: how K-means compares with the run."""

    agreement: float
    information: dict[str, float]
    verdict: str

    @property
    def is_worse(self) -> bool:
        """Whether K-means explains the neighbours better."""
        kmeans = self.information.get("kmeans", -math.inf)
        return any(is_better(kmeans, own) for own in self.information.values())


Content = TypeVar("Content", bound=BaseModel)


def _optional(path: Path, kind: type[Content]) -> Content | None:
    """An optional file of a run; anything that is not one is refused."""
    if not path.exists():
        return None
    try:
        return kind.model_validate(Run(path.parent).read_json(path.name))
    except ValidationError as error:
        raise InputError(f"{path}: not written by lsdc ({first_problem(error)})") from None


@dataclass(frozen=True)
class Facts:
    """A finished run."""

    path: Path
    config: dict[str, Any]
    history: list[dict[str, Any]]
    ids: list[str]
    labels: NDArray[np.int64]
    confidence: NDArray[np.float64]
    read: ReadFile | None
    named: NamesFile
    kmeans: ComparisonFile | None
    unassigned: int = 0

    @classmethod
    def of(cls, run: Run, config: dict[str, Any]) -> "Facts":
        """Everything in the folder; ``config`` is its config.json, validated."""
        path = run.path
        named = _optional(path / "names.json", NamesFile) or NamesFile()
        read, kmeans = _optional(path / "read.json", ReadFile), _optional(path / "comparison.json", ComparisonFile)
        ids, labels, confidence = run.read_labels()
        left = labels == UNASSIGNED
        if left.any():  # shown in the cluster the model would have chosen, which the file no longer says
            labels = np.where(left, load(path).labels_, labels)
        history = run.read_metrics()
        return cls(path, config, history, ids, labels, confidence, read, named, kmeans, int(left.sum()))

    @property
    def title(self) -> str:
        """The data, by its own name."""
        return str(self.config["data"].get("source", self.path.resolve().name))

    @property
    def encoded(self) -> tuple[str, str] | None:
        """What an encoder made vectors of, and its name without the place of its file, if there was one."""
        how = self.config["data"]
        found = [(kind, str(how.get(key) or "")) for kind, key in (("images", "encoder"), ("texts", "text_encoder"))]
        names = [(kind, Path(name).name if Path(name).is_absolute() else name) for kind, name in found if name]
        return names[0] if names else None

    @property
    def n_clusters(self) -> int:
        """The number of clusters requested or found."""
        return max(self.asked or 0, int(self.labels.max()) + 1)

    @property
    def asked(self) -> int | None:
        """The number of clusters requested, if any."""
        wanted = self.config["params"]["n_clusters"]
        return wanted if isinstance(wanted, int) else None

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Samples in each cluster."""
        return cluster_sizes(self.labels, self.n_clusters)

    @property
    def confident(self) -> float:
        """The share of confident samples."""
        return float((self.confidence > CONFIDENT).mean())

    @property
    def alive(self) -> int:
        """Clusters that hold at least a twentieth of an even share."""
        return clusters_alive((self.sizes / len(self.labels)).tolist())

    @property
    def seconds(self) -> float:
        """The time all epochs took."""
        found = [record.get("seconds") for record in self.history]
        return float(sum(value for value in found if isinstance(value, (int, float))))

    def name(self, cluster: int) -> str:
        """What a cluster is called."""
        given = self.named.names[cluster] if cluster < len(self.named.names) else None
        return given or f"Cluster {cluster}"

    def terms(self, cluster: int) -> list[str]:
        """The terms that characterise a cluster."""
        return self.named.terms[cluster] if cluster < len(self.named.terms) else []


def warnings_of(facts: Facts) -> list[str]:
    """What the health checks say about the result, with what to try."""
    last: dict[str, Any] = next((record for record in reversed(facts.history) if "shares" in record), {})
    record = {**last, "shares": (facts.sizes / len(facts.labels)).tolist()}
    found = symptoms(record, REMEDIES if last else UNTRAINED)
    if facts.asked is None:  # without a requested number, no cluster can be missing
        found.pop("dead", None)
    if facts.confident < 0.5 and "collapsed" not in found:
        found["doubt"] = (
            "the model is confident about fewer than half of the samples; try another number of clusters, "
            "and look at the map and at clusters that are near each other"
        )
    return [message[0].upper() + message[1:] + "." for message in found.values()]


def retries_of(facts: Facts) -> list[str]:
    """Where the training went back to an earlier epoch."""
    stages = {str(record.get("stage")): record for record in facts.history}
    return [f"{stage}: {why}" for stage, record in stages.items() for why in record.get("retries", ())]


def settings_rows(config: dict[str, Any]) -> list[tuple[str, str]]:
    """Method, seed, parameters and resolved settings, one line each."""
    rows = [("method", str(config["method"])), ("seed", str(config["seed"]))]
    return rows + [(name, _shown(value)) for name, value in _flat(config["settings"])]


def _flat(settings: dict[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    rows = []
    for name, value in settings.items():
        rows += _flat(value, f"{prefix}{name}.") if isinstance(value, dict) else [(f"{prefix}{name}", value)]
    return rows


def _shown(value: Any) -> str:
    return "-" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
