"""What a data set is: samples, and what is known about them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Dataset:
    """Samples ``X``; ``y`` is there for evaluation only, if at all; ``ids`` name the samples.

    ``title`` is the name shown to people; ``unlabelled`` are further samples for the pretext alone.
    """

    name: str
    X: Any
    y: np.ndarray | None = None
    class_names: tuple[str, ...] = ()
    ids: Sequence[object] | None = None
    title: str = ""
    unlabelled: Any = None

    @property
    def n_clusters(self) -> int | None:
        """The number of classes, if it is known."""
        return len(self.class_names) or None
