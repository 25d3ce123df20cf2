"""Health checks: the known ways deep clustering fails, watched every epoch without labels."""

import math
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lsdc.errors import HealthWarning

Record = dict[str, Any]

ALIVE = 0.05  # a cluster lives if it holds at least this part of the even share 1/K
PATIENCE = 3  # epochs a symptom must last before it earns a warning
SHARES = 2**18  # in the records of a stage before its last epoch, so that files stay readable
# what to try, in parameters that every deep method has; methods with more parameters suggest more
REMEDIES = {"collapsed": "a smaller lr, or another random_state", "dead": "more epochs, or another random_state"}


def thinned(history: list[Record], most: int = SHARES) -> list[Record]:
    """A history of bounded size: with many clusters, early epochs drop their shares."""
    result = list(history)
    for i, record in reversed(list(enumerate(history[:-1]))):
        most -= len(record.get("shares", ()))
        if most < 0:
            result[i] = {name: value for name, value in record.items() if name != "shares"}
    return result


def clusters_alive(shares: list[float]) -> int:
    """How many clusters hold at least a twentieth of an even share."""
    return sum(share * len(shares) >= ALIVE - 1e-6 for share in shares)  # 1 % of five clusters is one


def assignment_entropy(shares: list[float]) -> float:
    """Entropy of the cluster sizes over log K: 1 for equal sizes, 0 for a single cluster."""
    entropy = -sum(share * math.log(share) for share in shares if share > 0)
    return entropy / math.log(len(shares)) if len(shares) > 1 else 1.0


def symptoms(record: dict[str, Any], remedies: dict[str, str] = REMEDIES) -> dict[str, str]:
    """What looks bad in an epoch's record, in plain words, with what to try."""
    shares, found = record["shares"], {}
    n = len(shares)
    alive = clusters_alive(shares)
    if max(shares) > 0.95 and n > 1:
        found["collapsed"] = f"{max(shares):.0%} of the samples fall into one cluster; try {remedies['collapsed']}"
    elif alive < n:
        found["dead"] = (
            f"{_empty(n - alive, n)}; if you expect {n}, try {remedies['dead']}; otherwise a smaller n_clusters"
        )
    density = record.get("density")
    if density is not None and not 0.25 / n < density < 4 / n and n > 1:
        low = density < 1 / n
        fate, many, tau = ("die", "more", "looser") if low else ("merge", "fewer", "stricter")
        found["density"] = (
            f"the pairwise labels connect {density:.1%} of the pairs, but 1/K is {1 / n:.1%}, so clusters tend to "
            f"{fate}; try {many} neighbours (the setting k, not the number of clusters), or a {tau} tau"
        )
    if record.get("spread", 1.0) < 1e-3:
        found["shrunk"] = (
            "the features are shrinking to a point; try a smaller weight_decay or lr, or freeze more stages"
        )
    return found


def examine(record: Record, history: list[Record], epochs: int, remedies: dict[str, str] = REMEDIES) -> Record:
    """An epoch's health: clusters alive, entropy, symptoms, and which of them were warned about.

    In the first half of a run clusters come alive one by one, so warnings start in its middle; a lasting symptom is
    reported once.
    """
    first = history[0] if history else record
    shrunk = "scale" in record and record["scale"] < 1e-3 * first.get("scale", 0.0)
    found = symptoms({**record, "spread": 0.0} if shrunk else record, remedies)
    reported = {kind for earlier in history for kind in earlier.get("warned", ())}
    warned = [kind for kind in found if kind not in reported and _is_due(kind, record["epoch"], history, epochs)]
    for kind in warned:
        warnings.warn(f"epoch {record['epoch']}: {found[kind]}", HealthWarning, stacklevel=1)
    shares = record["shares"]
    health = {"alive": clusters_alive(shares), "entropy": assignment_entropy(shares), "health": sorted(found)}
    return {**health, "warned": warned} if warned else health


def warn_of_empty_clusters(labels: NDArray[np.int64], n_clusters: int, history: list[Record]) -> None:
    """Warn if some clusters of a finished fit are empty, unless its last epoch said so."""
    shares = np.bincount(labels, minlength=n_clusters) / len(labels)
    empty = n_clusters - clusters_alive(shares.tolist())
    if empty and not (history and "dead" in history[-1].get("health", ())):
        message = f"{_empty(empty, n_clusters)}; try a smaller n_clusters"
        warnings.warn(message, HealthWarning, stacklevel=4)


def _empty(empty: int, n: int) -> str:
    return f"{empty} of {n} clusters {'is' if empty == 1 else 'are'} (nearly) empty"


def _is_due(kind: str, epoch: int, history: list[Record], epochs: int) -> bool:
    lately = history[-PATIENCE + 1 :]
    lasts = len(lately) == PATIENCE - 1 and all(kind in earlier.get("health", ()) for earlier in lately)
    return epoch > epochs // 2 and (lasts or epoch == epochs)
