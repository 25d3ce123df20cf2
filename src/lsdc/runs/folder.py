"""The run folder: all files of a run, written atomically."""

import hashlib
import json
import os
import shutil
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
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
CONFIG = "config.json"  # what makes a folder a run
FILES = (
    CONFIG,
    "environment.json",
    "read.json",
    "metrics.jsonl",
    "names.json",
    "labels.csv",
    "duplicates.csv",
    "model.safetensors",
    "comparison.json",
    "report.html",
    "comparison.html",
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
        self.source: dict[str, Any] = {}  # the data's origin, for config.json
        self.ids: Sequence[object] | None = None  # the names of the samples, for labels.csv
        self.beside: Mapping[str, Sequence[str]] = {}  # columns of the data that labels.csv keeps
        self.outliers = 0.0  # the share of the samples that labels.csv leaves unassigned
        self.began: Callable[[], None] = lambda: None  # called once the run is about to start
        self._sound: set[str] = set()  # stages whose newest checkpoint is sound
        self._unwritten: dict[str, list[dict[str, Any]]] = {}  # records of stages that could not be written to disk

    @classmethod
    def create(cls, path: str | os.PathLike[str], overwrite: bool = False) -> "Run":
        """A new run; an existing one is refused unless ``overwrite`` is set. Nothing is written before ``start``."""
        run = cls(Path(path), overwrite)
        run._check_place()
        return run

    def _check_place(self) -> None:
        """Refuse to start a new run in a folder that holds something else."""
        if _is_vacant(self.path):
            return
        if not self.path.is_dir() or not is_run(self.path):
            raise InputError(f"{self.path}: already exists and is not a run folder; choose another", "run")
        if not self.overwrite:
            text = f"{self.path}: a run already exists here; resume it, overwrite it, or choose another folder"
            raise InputError(text, "resume", "overwrite", "run")

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> "Run":
        """An existing run."""
        path = Path(path)
        if not is_run(path):
            raise InputError(f"{path}: not a run folder (it has no config.json written by lsdc)")
        return cls(path)

    @classmethod
    def resume(cls, path: str | os.PathLike[str]) -> "Run":
        """An existing run to resume, or a new one if none was started yet: what a restarted job needs."""
        run = cls(Path(path)) if _is_vacant(Path(path)) else cls.open(path)
        run.resuming = is_run(run.path)
        return run

    @classmethod
    def of(
        cls, run: "Run | str | os.PathLike[str] | None", resume: "Run | str | os.PathLike[str] | None"
    ) -> "Run | None":
        """The run for the arguments of ``fit``."""
        if isinstance(resume, Run):
            resume.resuming = is_run(resume.path)
            return resume
        if resume is not None:
            return cls.resume(resume)
        return run if run is None or isinstance(run, Run) else cls.create(run)

    def config(self, name: str) -> Any:
        """An entry of config.json, such as the ``seed`` the run was started with or its ``data``."""
        return self.read_json("config.json").get(name)

    def start(self, settings: dict[str, Any], params: dict[str, Any], content: dict[str, Any]) -> None:
        """Create the folder and write config.json, or check that this is the run to resume."""
        self.bind({**settings, "data": content})
        if self.resuming:
            if self.config("refines"):
                text = f"{self.path}: was refined from another run, and cannot be resumed; choose another folder"
                raise InputError(text, "run")
            if self.config("fingerprint") != self.fingerprint:
                text = f"{self.path}: started with other settings or data; overwrite it to start over"
                raise InputError(text, "overwrite")
        else:
            self._check_place()  # again, as the first check was made without the lock
            self._clear()
            config = {**settings, "params": params, "data": {**self.source, **content}}
            config |= {"outliers": self.outliers} if self.outliers else {}
            self.write_json("config.json", {**config, "fingerprint": self.fingerprint})
        self.write_json("environment.json", environment())
        self.began()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Lock the run; refuse one that another process is using."""
        with self._writing():
            make_folder(self.path)
        with lock.alone(self.path):
            for file in (file for pattern in TEMPORARY for file in self.path.glob(pattern)):
                file.unlink(missing_ok=True)  # left by a process that was killed while writing
            yield

    @contextmanager
    def again(self) -> Iterator[None]:
        """Lock the finished run again, to add to it; refuse if another process has replaced it since."""
        with ExitStack() as held:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", HealthWarning)  # what the file system lacks was said before the fit
                held.enter_context(self.alone())
            if self.config("fingerprint") != self.fingerprint:
                raise InputError(f"{self.path}: another process has replaced this run since it finished")
            yield

    def _clear(self) -> None:
        """Remove the files of an existing run except config.json, so that it stays a run until the new one is."""
        with self._writing():
            make_folder(self.path)
            if self.overwrite:
                if (self.path / "checkpoint").exists():
                    shutil.rmtree(self.path / "checkpoint")
                for name in FILES:
                    if name != CONFIG:
                        (self.path / name).unlink(missing_ok=True)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Name the folder if it cannot be written to."""
        try:
            yield
        except OSError as error:
            raise InputError(f"{self.path}: cannot write to this folder ({error.strerror})") from None

    def bind(self, settings: dict[str, Any]) -> None:
        """Tie checkpoints to these settings and data."""
        self.fingerprint = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:16]

    def write_json(self, name: str, content: dict[str, Any]) -> None:
        """A JSON file of the run."""
        with self._writing():
            write_atomic(self.path / name, (json.dumps(content, indent=2) + "\n").encode())

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
        """Write labels.csv, which ends a run, one line per sample; first any records that a full disk had refused.

        ``more`` are further columns. Where the clusters have terms, names.json has the terms and names.
        """
        self._write_unwritten()
        if named and any(named.terms):
            self.write_json("names.json", {"names": named.names, "terms": named.terms})
        assigned = unassigned(labels, confidence, self.outliers)
        text = labels_csv(ids, assigned.tolist(), confidence.tolist(), more, named, self.beside)
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
        """The last states of a stage, newest first; metrics.jsonl is rewound to match.

        An unreadable one is skipped with a warning; one of another run is refused.
        """
        found, damaged = [], []
        for path in (self._checkpoint(stage), self._checkpoint(stage, previous=True)):
            if path.exists() or path.is_symlink():
                try:
                    found.append(self._own(path, stage))
                except Damaged as error:
                    damaged.append(str(error))
        if damaged:
            where = f"using the one before it, epoch {len(found[0].history)}" if found else "starting the stage again"
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
            text = f"{path}: belongs to a run with other settings or data; overwrite that run to start over"
            raise InputError(text, "overwrite")
        return checkpoint

    def keep(self, stage: str, checkpoint: Checkpoint) -> None:
        """Store the state of a stage, next to the last sound one, and the records of metrics.jsonl."""
        path = self._checkpoint(stage)
        self._unwritten[stage] = checkpoint.history
        content = checkpoint.to_bytes({"fingerprint": self.fingerprint, "stage": stage})
        with whole(path, content) as place:
            if stage in self._sound and path.exists():
                os.replace(path, self._checkpoint(stage, previous=True))
            place()
        self._sound = self._sound - {stage} | ({stage} if checkpoint.sound else set())
        self._write_unwritten()

    def _write_unwritten(self) -> None:
        """Write the records that are not on disk yet, those of earlier stages first."""
        for stage in list(self._unwritten):
            self._write_metrics(stage, self._unwritten[stage])
            del self._unwritten[stage]

    def read_metrics(self) -> list[dict[str, Any]]:
        """The records of metrics.jsonl, without a last line truncated by a crash."""
        return read_records(self.path / "metrics.jsonl")

    def _write_metrics(self, stage: str, history: list[dict[str, Any]]) -> None:
        """Write the records of a stage to metrics.jsonl, after those of earlier stages."""
        before = [record for record in self.read_metrics() if record.get("stage") != stage]
        text = "".join(json.dumps(record) + "\n" for record in before + history)
        if text or (self.path / "metrics.jsonl").exists():
            write_atomic(self.path / "metrics.jsonl", text.encode())


def _is_vacant(path: Path) -> bool:
    """Whether a run can start here: the folder is empty, or a process was killed before its run began."""
    if not path.is_dir():
        return not path.exists()
    return all(file.name == lock.NAME or any(fnmatch(file.name, own) for own in TEMPORARY) for file in path.iterdir())


def is_run(path: Path) -> bool:
    """Whether a folder is one of our runs; others may hold a config.json too. Links out of the folder are refused."""
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
