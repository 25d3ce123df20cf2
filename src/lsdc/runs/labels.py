"""labels.csv: id or path, cluster, confidence; harmless in a spreadsheet, and read back to the letter."""

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lsdc.data.names import Names
from lsdc.data.spreadsheet import cell, text_of
from lsdc.errors import InputError
from lsdc.runs.untrusted import LONGEST_LINE, lines, plain_file

COLUMNS = ("id", "cluster", "confidence")


def labels_csv(
    ids: Sequence[object], labels: Iterable[int], confidence: Iterable[float], named: Names | None = None
) -> str:
    """The text of a labels file; clusters that have terms are named in a fourth column."""
    names = {c: f",{cell(name)}" for c, name in enumerate(named.names)} if named and any(named.terms) else {}
    rows = (
        f"{cell(i)},{int(c)},{p:.6f}{names.get(int(c), ',') if names else ''}\n"
        for i, c, p in zip(ids, labels, confidence, strict=True)
    )
    return ",".join((*COLUMNS, "name") if names else COLUMNS) + "\n" + "".join(rows)


def read_labels(path: Path, config: dict[str, Any]) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Ids, clusters and confidences of a labels file, if they can be those of the run with this config."""
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
        raise InputError(f"{path}: not there; the run has not finished (lsdc fit ... --resume)") from None
    except (KeyError, ValueError, TypeError, OverflowError, csv.Error):
        raise InputError(f"{path}: not a labels file (it should have the columns {', '.join(COLUMNS)})") from None
    n = config["data"].get("n", len(rows)) if isinstance(config.get("data"), dict) else len(rows)
    if not rows or len(rows) != n:
        raise InputError(f"{path}: has {len(rows)} rows, but the run has {n} samples")
    if clusters.min() < 0 or clusters.max() >= len(rows) or not ((confidence >= 0) & (confidence <= 1)).all():
        raise InputError(f"{path}: holds clusters or confidences that cannot be")
    return ids, clusters, confidence
