"""Curves by epoch, stage by stage."""

from dataclasses import dataclass
from typing import Any

from lsdc.report.figures import Curve, curve

STAGES = {
    "pretext": "Pretext: learning features without labels",
    "starts": "First classifiers, from many starts",
    "clustering": "Clustering",
    "choice": "New classifiers on what the network has become",
    "agreement": "What the better half of the classifiers agrees on",
}
SHARES = {"confident": "Confident samples", "accuracy": "Accuracy of the pretext"}


@dataclass(frozen=True)
class Course:
    """One stage: its curves, and what a sentence says better."""

    title: str
    epochs: int
    curves: list[Curve]
    sentence: str


def courses(history: list[dict[str, Any]], n_clusters: int) -> list[Course]:
    """The stages in order; a stage of a single epoch has no curve."""
    stages: dict[str, list[dict[str, Any]]] = {}
    for record in history:
        stages.setdefault(str(record.get("stage", "")), []).append(record)
    return [_course(name, records, n_clusters) for name, records in stages.items() if len(records) > 1]


def _course(name: str, records: list[dict[str, Any]], n_clusters: int) -> Course:
    ends = ("epoch 1", f"epoch {len(records)}")
    curves = [_drawn("Loss", records, "loss", ends, None)]
    curves += [_drawn(title, records, key, ends, (0.0, 1.0)) for key, title in SHARES.items()]
    alive, sentence = _values(records, "alive"), ""
    if len(set(alive)) == 1:
        sentence = f"{alive[0]:.0f} of {n_clusters} clusters are alive in every epoch."
    elif alive:
        curves.append(curve("Clusters alive", range(len(alive)), alive, ends))
    return Course(_title(name), len(records), [c for c in curves if c], sentence)


def _title(name: str) -> str:
    """The title of a stage; one that is done again has a number after its name."""
    stem, _, number = name.rpartition("-")
    return f"{STAGES[stem]}, attempt {number}" if stem in STAGES else STAGES.get(name, name)


def _values(records: list[dict[str, Any]], key: str) -> list[float]:
    found = [record.get(key) for record in records]
    return [float(v) for v in found if isinstance(v, (int, float)) and abs(v) < 1e300]


def _drawn(
    title: str, records: list[dict[str, Any]], key: str, ends: tuple[str, str], span: tuple[float, float] | None
) -> Curve | None:
    values = _values(records, key)
    return curve(title, range(len(values)), values, ends, span) if len(values) > 1 else None
