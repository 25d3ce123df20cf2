"""A run being explored: its state, journal and samples, and what is computed in the background."""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lsdc.data.reading import Dataset
from lsdc.errors import InputError
from lsdc.explore import export, features
from lsdc.explore.edits import History, Split, State
from lsdc.explore.features import Places
from lsdc.explore.journal import corrected
from lsdc.explore.samples import Samples
from lsdc.methods import load
from lsdc.runs.atomic import write_atomic
from lsdc.runs.folder import Run

log = logging.getLogger("lsdc")


class Stale(InputError):
    """An edit of an outdated state."""


@dataclass(frozen=True)
class Status:
    """The progress of something slow: "working", "ready", or "missing" with the reason."""

    phase: str = "working"
    why: str = ""


class Now(NamedTuple):
    """The newest version and its history, always read together."""

    version: int
    history: History


class Session:
    """A run open in the explorer; changes are on disk before they count."""

    def __init__(self, run: Run, config: dict[str, Any], read: Callable[[], Dataset]) -> None:
        self.run, self.config, self._read = run, config, read
        ids, labels, self.confidence = run.read_labels()
        self.samples = Samples(ids)
        self.journal, history = corrected(run, labels, config["params"]["n_clusters"])
        self.now = Now(self.journal.version, history)
        for left in run.path.glob(f".{export.NAME}.????????.tmp"):
            left.unlink(missing_ok=True)  # left by an explorer that was killed while writing
        self.typical = np.lexsort((np.arange(len(ids)), -self.confidence))  # the most confident first
        self.data, self.map = Status(), Status()
        self.laid_out: Places | None = None
        self._lock = threading.Lock()

    @property
    def state(self) -> State:
        """The current clusters."""
        return self.now.history.state

    # ---- changing -----------------------------------------------------------------------------------------

    def edit(self, version: int, edit: Any) -> None:
        """Apply an edit of this version; any other version is refused."""
        with self._lock:
            if version != self.journal.version:
                raise Stale("the clusters were changed in another tab or window; look again before you decide")
            history = self.now.history.then(edit)
            self.journal.append(edit)
            self.now = Now(self.journal.version, history)

    def halved(self, cluster: int) -> Split:
        """The edit that splits a cluster along its neighbour graph."""
        rows = np.flatnonzero(self.state.labels == cluster)
        if not len(rows):
            raise InputError("an empty cluster cannot be split")
        if self.laid_out is None:
            raise InputError(self.map.why or "the features are not ready yet; try again in a moment")
        part = features.halves(self.laid_out.features[rows])
        return Split(do="split", cluster=cluster, samples=rows[part].tolist())

    def csv(self) -> bytes:
        """The corrected labels as a file."""
        text = export.edited_csv(self.samples.ids, self.state, self.confidence)
        return text.encode(errors="backslashreplace")

    def export(self) -> Path:
        """The corrected labels in the run folder."""
        write_atomic(self.run.path / export.NAME, self.csv())
        return self.run.path / export.NAME

    # ---- looking ------------------------------------------------------------------------------------------

    def chosen(self, cluster: int | None, low: float, high: float, wanted: str, doubtful: bool) -> np.ndarray:
        """Samples of a cluster (or all) within a range of confidence that match a search, in order."""
        rows = self.typical[::-1] if doubtful else self.typical
        keep = (self.confidence[rows] >= low) & (self.confidence[rows] <= high)
        if cluster is not None:
            keep &= self.state.labels[rows] == cluster
        return self.samples.found(rows[keep], wanted)

    def near(self, cluster: int) -> list[int]:
        """Other clusters that have samples, nearest first by their mean features."""
        labels, others = self.state.labels, [c for c in self.state.clusters if c != cluster]
        if self.laid_out is None or not (labels == cluster).any():
            return []
        mean = {c: self.laid_out.features[labels == c].mean(0) for c in [cluster, *others] if (labels == c).any()}
        mean = {c: f / max(float(np.linalg.norm(f)), 1e-9) for c, f in mean.items()}
        return sorted(mean.keys() - {cluster}, key=lambda c: (-float(mean[c] @ mean[cluster]), c))

    # ---- in the background ---------------------------------------------------------------------------------

    def work(self) -> None:
        """Read the data, then compute features and a map; failures are shown on the page."""
        self.laid_out = features.stored_layout(self.run.path, self.journal.header["labels"], len(self.samples.ids))
        if self.laid_out is not None:
            self.map = Status("ready")
        dataset = self._data()
        if self.laid_out is None:
            self._lay_out(dataset)

    def _data(self) -> Dataset | None:
        try:
            dataset = self._read()
            self.samples.show(dataset)
            self.data = Status("ready")
            return dataset
        except InputError as error:
            self.data = Status("missing", error.text)
        except Exception as error:  # whatever it is, the rest of the page works
            log.exception("reading the data")
            self.data = Status("missing", f"the data cannot be read ({error})")
        return None

    def _lay_out(self, dataset: Dataset | None) -> None:
        if dataset is None:
            self.map = Status("missing", "without the data there can be no map, neighbours or splits")
            return
        try:
            f = features.directions(load(self.run.path, device="cpu").transform(dataset))
            self.laid_out = Places(f, features.mapped(f))
            self.map = Status("ready")
            features.store_layout(self.run.path, self.journal.header["labels"], self.laid_out)
        except InputError as error:
            self.map = Status("missing", error.text)
        except Exception as error:
            log.exception("laying out the samples")
            self.map = Status("missing", f"the samples cannot be laid out ({error})")
