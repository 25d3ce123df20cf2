"""The map: a part of the samples on a plane, as the page's script draws it."""

from dataclasses import dataclass
from typing import Any

from lsdc.data.seen import Seen
from lsdc.methods.layout import plane
from lsdc.report.apart import excerpt
from lsdc.report.facts import Facts
from lsdc.report.outputs import Outputs
from lsdc.report.pictures import Pictures

NAME = 80  # characters of an id that are shown beside a point


@dataclass(frozen=True)
class Map:
    """Points for the script, and the sheet of their images."""

    data: dict[str, Any]
    sheet: str
    count: int


def draw_map(facts: Facts, seen: Seen, out: Outputs, pictures: Pictures | None) -> Map:
    """All points in the order of their rows."""
    rows = out.rows[: out.mapped]
    place = (plane(out.f[: out.mapped]) * 1000).round().astype(int)
    sheet = pictures.sheet(rows) if pictures else None
    data = {
        "x": place[:, 0].tolist(),
        "y": place[:, 1].tolist(),
        "cluster": facts.labels[rows].tolist(),
        "confidence": facts.confidence[rows].round(2).tolist(),
        "id": [facts.ids[i][:NAME] for i in rows],
        "text": _texts(seen, rows.tolist()),
        "names": [facts.name(k) for k in range(facts.n_clusters)],
        "sheet": sheet._asdict() | {"address": ""} if sheet else None,
    }
    return Map(data, sheet.address if sheet else "", len(rows))


def _texts(seen: Seen, rows: list[int]) -> list[str]:
    """The beginnings of texts; nothing for other data."""
    return ["".join(part for part, _ in excerpt(seen.texts[i], [], 120)) for i in rows] if seen.texts else []
