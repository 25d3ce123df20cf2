"""labels-edited.csv: the corrected labels, in the format of labels.csv with the clusters' names."""

from collections.abc import Sequence

import numpy as np

from lsdc.data.spreadsheet import cell
from lsdc.explore.edits import OUTLIER, State

NAME = "labels-edited.csv"
COLUMNS = ("id", "cluster", "name", "confidence")


def edited_csv(ids: Sequence[object], state: State, confidence: np.ndarray) -> str:
    """One line per sample; outliers are in cluster -1, and the confidence is the model's in its own choice."""
    names = {cluster: cell(name) for cluster, name in state.names.items()} | {OUTLIER: "outlier"}
    rows = zip(ids, state.labels.tolist(), confidence.tolist(), strict=True)
    lines = (f"{cell(name)},{cluster},{names.get(cluster, '')},{p:.6f}\n" for name, cluster, p in rows)
    return ",".join(COLUMNS) + "\n" + "".join(lines)
