"""A card for each cluster: its size and confidence, what sets it apart, and samples from typical to doubtful."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lsdc.data.reading import Dataset
from lsdc.data.seen import Seen, seen
from lsdc.metrics import CONFIDENT
from lsdc.report.apart import Feature, excerpt, set_apart, words_of
from lsdc.report.facts import Facts
from lsdc.report.figures import Histogram, histogram
from lsdc.report.outputs import Outputs
from lsdc.report.pictures import Pictures

MOST = 100  # cards; beyond that, the smallest clusters go into a table
IMAGES = 300  # on all cards together: each is a few thousand bytes of the page
EACH = 6  # samples of a kind at most
TEXTS = 3
FEW = 32  # numbers of a sample that people may know by their places; those of an embedding nobody does
GROUPS = ("Typical", "In between", "Least sure")

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Sample:
    """One sample: its id, confidence and runner-up cluster, and what is shown of it."""

    id: str
    confidence: float
    other: int | None
    image: str = ""
    text: list[tuple[str, bool]] = field(default_factory=list)


@dataclass(frozen=True)
class Card:
    """One cluster."""

    number: int
    name: str
    terms: list[str]
    size: int
    share: float
    mean: float
    confident: float
    bars: Histogram | None
    groups: list[tuple[str, list[Sample]]]
    apart: list[Feature]
    named: bool  # whether these features say something to people
    mostly: tuple[str, float] | None


def each_of(facts: Facts, dataset: Dataset | None) -> int:
    """How many samples per group fit on a card."""
    if dataset is not None and seen(dataset).texts:
        return TEXTS
    return max(1, min(EACH, IMAGES // (len(GROUPS) * min(facts.n_clusters, MOST))))


def shown(mine: Rows, confidence: NDArray[np.float64], distance: NDArray[np.float64], each: int) -> list[Rows]:
    """Typical, middling and doubtful samples of a cluster, none of them twice.

    Among equally confident samples those near the centre are typical; a small cluster is shown in full.
    """
    order = mine[np.lexsort((distance[mine], -confidence[mine].round(2)))]
    if len(order) <= each:
        return [order, order[:0], order[:0]]
    least = mine[np.argsort(confidence[mine], kind="stable")][: min(each, len(mine) - each)]
    rest = order[~np.isin(order, least)]
    typical, rest = rest[:each], rest[each:]
    middle = max(len(rest) // 2 - each // 2, 0)
    return [typical, rest[middle : middle + each], least]


def distances(labels: Rows, out: Outputs | None, n: int) -> NDArray[np.float64]:
    """The distance of each sample from its cluster's centre; infinite for samples the model was not run on."""
    result = np.full(n, np.inf)
    if out is not None:
        mine = labels[out.rows]
        sums = np.zeros((int(labels.max()) + 1, out.f.shape[1]))
        np.add.at(sums, mine, out.f)
        centres = sums / np.maximum(np.bincount(mine, minlength=len(sums)), 1)[:, None]
        result[out.rows] = np.linalg.norm(out.f - centres[mine], axis=1)
    return result


class Cards:
    """Builds the cards of a run, with its data and the model's outputs where available."""

    def __init__(self, facts: Facts, dataset: Dataset | None, inputs: Any, out: Outputs | None) -> None:
        self.facts, self.dataset = facts, dataset
        self.seen = seen(dataset) if dataset is not None else Seen()
        self.each = each_of(facts, dataset)
        self.distance = distances(facts.labels, out, len(facts.labels))
        self.other = _runners_up(facts.labels, out)
        self.named = False
        self.terms, self.apart = self._set_apart(inputs)
        rows = out.rows if out else np.arange(1)
        self.pictures = Pictures(self.seen, rows) if self.seen.kind == "images" else None

    def _set_apart(self, inputs: Any) -> tuple[list[list[str]], list[list[Feature]]]:
        """Words for texts, features for vectors; neither for images or for what an encoder made of the samples."""
        facts, dataset = self.facts, self.dataset
        labels, n_clusters = facts.labels, facts.n_clusters
        terms = [facts.terms(k) for k in range(n_clusters)]
        nothing: list[list[Feature]] = [[] for _ in range(n_clusters)]
        if dataset is None or inputs is None or dataset.samples is not None or inputs.X.ndim > 2:
            return terms, nothing
        if isinstance(dataset.X, list):
            return (terms if any(terms) else words_of(inputs.X, labels, n_clusters, inputs.words)), nothing
        given = list(dataset.columns.made or dataset.columns.features) if dataset.columns else []
        n_features = inputs.X.shape[1]
        self.named = len(given) == n_features or n_features < FEW
        names = given if len(given) == n_features else [f"feature {j}" for j in range(n_features)]
        return terms, set_apart(inputs.X, labels, n_clusters, names)

    def all(self, mostly: dict[int, tuple[str, float]]) -> tuple[list[Card], list[Card]]:
        """Full cards and, if there are too many clusters, cards without samples for the smallest."""
        facts = self.facts
        large = set(np.argsort(-facts.sizes, kind="stable")[:MOST].tolist())
        cards = [self._card(k, mostly.get(k), k in large) for k in range(facts.n_clusters)]
        return [c for c in cards if c.number in large], [c for c in cards if c.number not in large]

    def _card(self, k: int, mostly: tuple[str, float] | None, full: bool) -> Card:
        facts = self.facts
        mine = np.flatnonzero(facts.labels == k)
        sure = facts.confidence[mine]
        groups = shown(mine, facts.confidence, self.distance, self.each) if full and self.dataset is not None else []
        return Card(
            k,
            facts.name(k),
            self.terms[k],
            len(mine),
            len(mine) / len(facts.labels),
            float(sure.mean()) if len(mine) else 0.0,
            float((sure > CONFIDENT).mean()) if len(mine) else 0.0,
            histogram(sure) if len(mine) else None,
            [(name, self._samples(rows, k)) for name, rows in zip(GROUPS, groups, strict=False) if len(rows)],
            self.apart[k],
            self.named,
            mostly,
        )

    def _samples(self, rows: Rows, k: int) -> list[Sample]:
        images = self.pictures.addresses(rows) if self.pictures else [""] * len(rows)
        texts = self.seen.texts
        return [
            Sample(
                self.facts.ids[i],
                float(self.facts.confidence[i]),
                self.other.get(int(i)),
                image,
                excerpt(texts[i], self.terms[k]) if texts else [],
            )
            for i, image in zip(rows, images, strict=True)
        ]


def _runners_up(labels: Rows, out: Outputs | None) -> dict[int, int]:
    """The second-best cluster of each sample the model was run on and is not confident about."""
    if out is None:
        return {}
    p, rows = out.p.copy(), out.rows.tolist()
    p[np.arange(len(p)), labels[out.rows]] = 0
    doubt = p.sum(1) > 1 - CONFIDENT
    return {row: int(k) for row, k, wanted in zip(rows, p.argmax(1), doubt, strict=True) if wanted}
