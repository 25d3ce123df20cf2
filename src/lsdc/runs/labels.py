"""labels.csv: id or path, cluster, confidence and more; safe in a spreadsheet, and read back exactly."""

import csv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lsdc.data.names import Names
from lsdc.data.spreadsheet import cell, text_of
from lsdc.errors import InputError
from lsdc.metrics import UNASSIGNED
from lsdc.runs.untrusted import LONGEST_LINE, lines, plain_file

COLUMNS = ("id", "cluster", "confidence")


def labels_csv(
    ids: Sequence[object],
    labels: Sequence[int],
    confidence: Iterable[float],
    more: Mapping[str, Iterable[object]] | None = None,
    named: Names | None = None,
    beside: Mapping[str, Sequence[str]] | None = None,
) -> str:
    """The text of a labels file; ``more`` are further columns by name, in order, and ``beside`` those of the data.

    Where clusters have terms, the first further column has their names.
    """
    columns: dict[str, Iterable[object]] = {}
    if named and any(named.terms):
        columns["name"] = ["" if c == UNASSIGNED else named.names[c] for c in labels]
    columns |= more or {}
    for name, values in (beside or {}).items():
        columns[f"{name} (data)" if name in (*COLUMNS, *columns) else name] = values
    rows = zip(map(cell, ids), map(int, labels), map(float, confidence), *columns.values(), strict=True)
    text = (",".join([name, *map(_written, values)]) for name, *values in rows)
    return "\n".join([",".join((*COLUMNS, *map(cell, columns))), *text, ""])


def _written(value: object) -> str:
    return f"{value:.6f}" if isinstance(value, float) else cell(value)


def read_labels(path: Path, config: dict[str, Any]) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Ids, clusters and confidences from a labels file, checked against the run's config."""
    try:
        csv.field_size_limit(LONGEST_LINE)
        with plain_file(path).open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(lines(file), restval=""))
        clusters = np.array([int(row["cluster"]) for row in rows], np.int64)
        confidence = np.array([float(row["confidence"]) for row in rows])
        ids = [text_of(row["id"]) for row in rows]
    except InputError:
        raise
    except FileNotFoundError:
        raise InputError(f"{path}: does not exist; the run has not finished; resume it", "resume") from None
    except (KeyError, ValueError, TypeError, OverflowError, csv.Error):
        raise InputError(f"{path}: not a labels file (it should have the columns {', '.join(COLUMNS)})") from None
    n = config["data"].get("n", len(rows)) if isinstance(config.get("data"), dict) else len(rows)
    if not rows or len(rows) != n:
        raise InputError(f"{path}: has {len(rows)} rows, but the run has {n} samples")
    asked = config["params"].get("n_clusters") if isinstance(config.get("params"), dict) else None
    most = asked if isinstance(asked, int) else len(rows)
    if clusters.min() < UNASSIGNED or clusters.max() >= most or not ((confidence >= 0) & (confidence <= 1)).all():
        raise InputError(f"{path}: contains invalid clusters or confidences")
    return ids, clusters, confidence
