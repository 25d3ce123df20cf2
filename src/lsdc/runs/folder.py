"""The run folder: everything a run was, is and found out, as files that appear whole or not at all."""

import hashlib
import json
import os
import shutil
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import numpy as np

from lsdc.data.names import Names
from lsdc.errors import HealthWarning, InputError
from lsdc.metrics import unassigned
from lsdc.runs import lock
from lsdc.runs.atomic import make_folder, whole, write_atomic
from lsdc.runs.checkpoint import Checkpoint
from lsdc.runs.environment import environment
from lsdc.runs.labels import labels_csv, read_labels
from lsdc.runs.untrusted import contained, read_json, read_records

INTERVAL = 60.0
FILES = (
    *("environment.json", "read.json", "metrics.jsonl"),
    *("names.json", "labels.csv", "duplicates.csv", "model.safetensors"),
    *("comparison.json", "report.html", "comparison.html", "config.json"),
)
TEMPORARY = (*(f".{name}.????????.tmp" for name in FILES), "checkpoint/.*.safetensors.????????.tmp")


class Damaged(Exception):
    """A checkpoint that cannot be read."""


class Run:
    """A folder with config.json, environment.json, metrics.jsonl, labels.csv, model.safetensors and checkpoint/."""

    def __init__(self, path: Path, overwrite: bool = False, interval: float = INTERVAL) -> None:
        self.path, self.overwrite = path, overwrite
        self.interval = interval  # seconds between checkpoints within an epoch
        self.resuming = False
        self.fingerprint = ""
        self.source: dict[str, Any] = {}  # where the data came from, for config.json
        self.ids: Sequence[object] | None = None  # the names of the samples, for labels.csv
        self.outliers = 0.0  # the share of the samples that labels.csv leaves unassigned
        self.began: Callable[[], None] = lambda: None  # called once the run is known to be possible
        self._sound: set[str] = set()  # stages whose newest checkpoint is one to come back to
        self._owed: dict[str, list[dict[str, Any]]] = {}  # records of stages that the disk did not take

    @classmethod
    def create(cls, path: str | os.PathLike[str], overwrite: bool = False) -> "Run":
        """A new run; one that is there is refused unless ``overwrite`` is set. Nothing is written before ``start``."""
        run = cls(Path(path), overwrite)
        run._check_place()
        return run

    def _check_place(self) -> None:
        """Refuse a place where a new run must not begin: whatever is there, others have made."""
        if _is_vacant(self.path):
            return
        if not self.path.is_dir() or not is_run(self.path):
            raise InputError(f"{self.path}: exists and is not a run folder; choose another place with --out")
        if not self.overwrite:
            raise InputError(f"{self.path}: a run is there already; use --resume, --overwrite or another --out")

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> "Run":
        """An existing run."""
        path = Path(path)
        if not is_run(path):
            raise InputError(f"{path}: not a run folder (it has no config.json written by lsdc)")
        return cls(path)

    @classmethod
    def resume(cls, path: str | os.PathLike[str]) -> "Run":
        """An existing run to go on with, or a new one where none was begun yet: what a restarted job needs."""
        run = cls(Path(path)) if _is_vacant(Path(path)) else cls.open(path)
        run.resuming = is_run(run.path)
        return run

    @classmethod
    def of(
        cls, run: "Run | str | os.PathLike[str] | None", resume: "Run | str | os.PathLike[str] | None"
    ) -> "Run | None":
        """The run of whatever ``fit`` was given."""
        if isinstance(resume, Run):
            resume.resuming = is_run(resume.path)
            return resume
        if resume is not None:
            return cls.resume(resume)
        return run if run is None or isinstance(run, Run) else cls.create(run)

    def stored(self, name: str) -> Any:
        """What config.json has of that name: the ``seed`` the run was started with, its ``data``."""
        return self.read_json("config.json").get(name)

    def start(self, settings: dict[str, Any], params: dict[str, Any], content: dict[str, Any]) -> None:
        """Make the folder and write what the run is, or check that it is the run to go on with."""
        self.bind({**settings, "data": content})
        if self.resuming:
            if self.stored("fingerprint") != self.fingerprint:
                raise InputError(
                    f"{self.path}: was started with other settings or data; use --overwrite to start again"
                )
        else:
            self._check_place()  # again, as nobody held the lock when it was created
            self._clear()
            described = {**settings, "params": params, "data": {**self.source, **content}}
            self.write_json("config.json", {**described, "fingerprint": self.fingerprint})
        self.write_json("environment.json", environment())
        self.began()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Refuse a run that another process is at work on."""
        try:
            make_folder(self.path)
        except OSError as error:
            raise InputError(f"{self.path}: cannot write there ({error.strerror})") from None
        with lock.alone(self.path):
            for left in (file for pattern in TEMPORARY for file in self.path.glob(pattern)):
                left.unlink(missing_ok=True)  # by a process that was killed while it wrote
            yield

    def _clear(self) -> None:
        """Of a run that was there, remove what a run consists of but config.json: it stays a run until another is."""
        try:
            make_folder(self.path)
            if self.overwrite:
                if (self.path / "checkpoint").exists():
                    shutil.rmtree(self.path / "checkpoint")
                for name in FILES[:-1]:
                    (self.path / name).unlink(missing_ok=True)
        except OSError as error:
            raise InputError(f"{self.path}: cannot write there ({error.strerror})") from None

    def bind(self, settings: dict[str, Any]) -> None:
        """Tie checkpoints to the settings and the data they were made with."""
        self.fingerprint = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:16]

    def write_json(self, name: str, content: dict[str, Any]) -> None:
        """A JSON file of the run."""
        try:
            write_atomic(self.path / name, (json.dumps(content, indent=2) + "\n").encode())
        except OSError as error:
            raise InputError(f"{self.path}: cannot write there ({error.strerror})") from None

    def read_json(self, name: str) -> dict[str, Any]:
        """A JSON file of the run."""
        return read_json(self.path / name)

    def names(self) -> list[Any]:
        """What the clusters of the run are called in names.json, in their order; nothing where it has none."""
        found = self.read_json("names.json").get("names", []) if (self.path / "names.json").exists() else []
        return found if isinstance(found, list) else []

    def write_labels(
        self,
        ids: Sequence[object],
        labels: np.ndarray,
        confidence: np.ndarray,
        more: Mapping[str, Iterable[object]] | None = None,
        named: Names | None = None,
    ) -> None:
        """labels.csv, one line a sample, which ends a run: records that a full disk did not take come before it.

        ``more`` are further columns. Where the clusters have terms, names.json has these and their names.
        """
        for stage, history in self._owed.items():
            self._write_metrics(stage, history)
        if named and any(named.terms):
            self.write_json("names.json", {"names": named.names, "terms": named.terms})
        assigned = unassigned(labels, confidence, self.outliers)
        text = labels_csv(ids, assigned.tolist(), confidence.tolist(), more, named)
        write_atomic(self.path / "labels.csv", text.encode())

    def read_labels(self) -> tuple[list[str], np.ndarray, np.ndarray]:
        """Ids, clusters and confidences of labels.csv."""
        return read_labels(self.path / "labels.csv", self.read_json("config.json"))

    def _checkpoint(self, stage: str, previous: bool = False) -> Path:
        return self.path / "checkpoint" / f"{stage}{'.previous' if previous else ''}.safetensors"

    def read_checkpoint(self, stage: str) -> Checkpoint | None:
        """The last state of a stage, whatever the run is doing."""
        kept = [path for path in (self._checkpoint(stage), self._checkpoint(stage, previous=True)) if path.exists()]
        return Checkpoint.read(kept[0])[0] if kept else None

    def restore(self, stage: str) -> list[Checkpoint]:
        """The last states of a stage, the newest first; metrics.jsonl is brought back to it.

        One that cannot be read is said and left out; one of another run is refused.
        """
        found, damaged = [], []
        for path in (self._checkpoint(stage), self._checkpoint(stage, previous=True)):
            if path.exists() or path.is_symlink():
                try:
                    found.append(self._own(path, stage))
                except Damaged as error:
                    damaged.append(str(error))
        if damaged:
            where = (
                f"goes on from the one before it, epoch {len(found[0].history)}" if found else "starts the stage again"
            )
            warnings.warn(f"{damaged[0]}; {where}", HealthWarning, stacklevel=1)
        self._sound = self._sound - {stage} | ({stage} if found and found[0].sound and not damaged else set())
        self._write_metrics(stage, found[0].history if found else [])
        return found

    def _own(self, path: Path, stage: str) -> Checkpoint:
        try:
            checkpoint, header = Checkpoint.read(path)
        except InputError as error:
            raise Damaged(str(error)) from None
        if header.get("fingerprint") != self.fingerprint or header.get("stage") != stage:
            raise InputError(f"{path}: belongs to a run with other settings or data; use --overwrite to start again")
        return checkpoint

    def keep(self, stage: str, checkpoint: Checkpoint) -> None:
        """Store the state of a stage, beside the last one to come back to, and the records of metrics.jsonl."""
        path = self._checkpoint(stage)
        self._owed[stage] = checkpoint.history
        content = checkpoint.to_bytes({"fingerprint": self.fingerprint, "stage": stage})
        with whole(path, content) as place:
            if stage in self._sound and path.exists():
                os.replace(path, self._checkpoint(stage, previous=True))
            place()
        self._sound = self._sound - {stage} | ({stage} if checkpoint.sound else set())
        self._write_metrics(stage, checkpoint.history)
        del self._owed[stage]

    def read_metrics(self) -> list[dict[str, Any]]:
        """The records of metrics.jsonl; a line cut short when the run was stopped is left out."""
        return read_records(self.path / "metrics.jsonl")

    def _write_metrics(self, stage: str, history: list[dict[str, Any]]) -> None:
        """The records of a stage in metrics.jsonl, after those of the stages before."""
        before = [record for record in self.read_metrics() if record.get("stage") != stage]
        text = "".join(json.dumps(record) + "\n" for record in before + history)
        if text or (self.path / "metrics.jsonl").exists():
            write_atomic(self.path / "metrics.jsonl", text.encode())


def _is_vacant(path: Path) -> bool:
    """Whether a run can begin here: nothing is there, or what a process left that was killed before it had begun."""
    if not path.is_dir():
        return not path.exists()
    return all(file.name == lock.NAME or any(fnmatch(file.name, own) for own in TEMPORARY) for file in path.iterdir())


def is_run(path: Path) -> bool:
    """Whether a folder is one of ours; many others hold a config.json too. A run with links out of it is refused."""
    try:
        contained(path, ["config.json"])
        config = read_json(path / "config.json")
        known = {"method", "params", "settings", "fingerprint"} <= config.keys()
        ours = known and isinstance(config["params"]["n_clusters"], int | None) and isinstance(config["data"], dict)
    except (OSError, ValueError, TypeError, KeyError):
        return False
    if ours:
        contained(path, [str(file.relative_to(path)) for file in (*path.glob("*"), *path.glob("checkpoint/*"))])
    return ours
