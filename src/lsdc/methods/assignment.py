"""Which cluster each sample belongs to, and which comes second, from its probabilities."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Assigned(NamedTuple):
    """The cluster and runner-up of each sample with their probabilities, and the number of clusters."""

    labels: NDArray[np.int64]
    confidence: NDArray[np.float32]
    second: NDArray[np.int64]
    second_confidence: NDArray[np.float32]
    n_clusters: int

    def runner_up(self) -> dict[str, list[Any]]:
        """Further columns of labels.csv."""
        if self.n_clusters < 2:
            return {}
        return {"second": self.second.tolist(), "second_confidence": self.second_confidence.tolist()}


def best_two(p: NDArray[np.float32], sound: Any = True) -> Assigned:
    """The two likeliest clusters from probabilities (n, K); samples that are not ``sound`` get a probability of NaN."""
    labels, rows = p.argmax(1), np.arange(len(p))
    rest = p.copy()
    rest[rows, labels] = -1
    second = rest.argmax(1)
    confidence, runner_up = (np.where(sound, p[rows, best], np.float32(np.nan)) for best in (labels, second))
    return Assigned(labels.astype(np.int64), confidence, second.astype(np.int64), runner_up, p.shape[1])


def joined(parts: Sequence[Assigned]) -> Assigned:
    """The assignments of consecutive chunks as one."""
    labels, confidence, second, runner_up, n_clusters = zip(*parts, strict=True)
    first = np.concatenate(labels), np.concatenate(confidence)
    return Assigned(*first, np.concatenate(second), np.concatenate(runner_up), n_clusters[0])
