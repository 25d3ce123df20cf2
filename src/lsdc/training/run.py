"""The run folder: everything a run was, is and found out, as files that appear whole or not at all."""

import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import torch

from lsdc.errors import InputError
from lsdc.training.checkpoint import Checkpoint, write_atomic
from lsdc.training.labels import labels_csv, read_labels
from lsdc.training.untrusted import contained, read_json, read_records

PACKAGES = ("lsd-clusters", "torch", "numpy", "scipy", "scikit-learn", "safetensors", "pydantic")


FILES = ("config.json", "environment.json", "metrics.jsonl", "labels.csv", "model.safetensors", "report.html")


class Run:
    """A folder with config.json, environment.json, metrics.jsonl, labels.csv, model.safetensors and checkpoint/."""

    def __init__(self, path: Path, overwrite: bool = False) -> None:
        self.path, self.overwrite = path, overwrite
        self.fingerprint = ""
        self.source: dict[str, Any] = {}  # where the data came from, for config.json
        self.ids: Sequence[object] | None = None  # the names of the samples, for labels.csv

    @classmethod
    def create(cls, path: str | os.PathLike[str], overwrite: bool = False) -> "Run":
        """A new run; one that is there is refused unless ``overwrite`` is set. Nothing is written before ``start``."""
        path = Path(path)
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            if not path.is_dir() or not is_run(path):
                raise InputError(f"{path}: exists and is not a run folder; choose another place with --out")
            if not overwrite:
                raise InputError(f"{path}: a run is there already; use --resume, --overwrite or another --out")
        return cls(path, overwrite)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> "Run":
        """An existing run."""
        path = Path(path)
        if not is_run(path):
            raise InputError(f"{path}: not a run folder (it has no config.json written by lsdc)")
        return cls(path)

    @classmethod
    def of(cls, run: "Run | str | os.PathLike[str] | None", exists: bool) -> "Run | None":
        """A run from whatever ``fit`` was given."""
        if run is None or isinstance(run, Run):
            return run
        return cls.open(run) if exists else cls.create(run)

    def stored_seed(self) -> int | None:
        """The seed the run was started with."""
        seed = self.read_json("config.json").get("seed")
        return seed if isinstance(seed, int) else None

    def start(self, settings: dict[str, Any], params: dict[str, Any], content: dict[str, Any], resume: bool) -> None:
        """Make the folder and write what the run is, or check that it is the run to go on with."""
        self.bind({**settings, "data": content})
        if resume:
            if self.read_json("config.json").get("fingerprint") != self.fingerprint:
                raise InputError(
                    f"{self.path}: was started with other settings or data; use --overwrite to start again"
                )
        else:
            self._clear()
            described = {**settings, "params": params, "data": {**self.source, **content}}
            self.write_json("config.json", {**described, "fingerprint": self.fingerprint})
        self.write_json("environment.json", environment())

    def _clear(self) -> None:
        """An empty place to write to: of a run that was there, only what a run consists of is removed."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            if self.overwrite:
                shutil.rmtree(self.path / "checkpoint", ignore_errors=True)
                for name in FILES:
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

    def write_labels(self, ids: Sequence[object], labels: Iterable[int], confidence: Iterable[float]) -> None:
        """labels.csv: one line a sample."""
        write_atomic(self.path / "labels.csv", labels_csv(ids, labels, confidence).encode())

    def read_labels(self) -> tuple[list[str], np.ndarray, np.ndarray]:
        """Ids, clusters and confidences of labels.csv."""
        return read_labels(self.path / "labels.csv", self.read_json("config.json"))

    def _checkpoint(self, stage: str) -> Path:
        return self.path / "checkpoint" / f"{stage}.safetensors"

    def read_checkpoint(self, stage: str) -> Checkpoint | None:
        """The last state of a stage, whatever the run is doing."""
        path = self._checkpoint(stage)
        return Checkpoint.read(path)[0] if path.exists() else None

    def restore(self, stage: str) -> Checkpoint | None:
        """The last state of a stage, if there is one; metrics.jsonl is cut back to it."""
        path = self._checkpoint(stage)
        if not path.exists():
            self._cut_metrics(stage, 0)
            return None
        checkpoint, header = Checkpoint.read(path)
        if header.get("fingerprint") != self.fingerprint or header.get("stage") != stage:
            raise InputError(f"{path}: belongs to a run with other settings or data; use --overwrite to start again")
        self._cut_metrics(stage, len(checkpoint.history))
        return checkpoint

    def keep(self, stage: str, checkpoint: Checkpoint) -> None:
        """Store the state of a stage and append its newest record to metrics.jsonl."""
        with (self.path / "metrics.jsonl").open("a") as file:
            file.write(json.dumps(checkpoint.history[-1]) + "\n")
        checkpoint.write(self._checkpoint(stage), {"fingerprint": self.fingerprint, "stage": stage})

    def read_metrics(self) -> list[dict[str, Any]]:
        """The records of metrics.jsonl; a line cut short when the run was stopped is left out."""
        return read_records(self.path / "metrics.jsonl")

    def _cut_metrics(self, stage: str, epochs: int) -> None:
        records = self.read_metrics()
        kept = [r for r in records if r.get("stage") != stage or r.get("epoch", 0) <= epochs]
        if (self.path / "metrics.jsonl").exists():
            text = "".join(json.dumps(record) + "\n" for record in kept)
            write_atomic(self.path / "metrics.jsonl", text.encode())


def is_run(path: Path) -> bool:
    """Whether a folder is one of ours; many others hold a config.json too. A run with links out of it is refused."""
    try:
        contained(path, ["config.json"])
        config = read_json(path / "config.json")
        known = {"method", "params", "settings", "fingerprint"} <= config.keys()
        ours = known and isinstance(config["params"]["n_clusters"], int) and isinstance(config["data"], dict)
    except (OSError, ValueError, TypeError, KeyError):
        return False
    if ours:
        contained(path, [str(file.relative_to(path)) for file in (*path.glob("*"), *path.glob("checkpoint/*"))])
    return ours


def environment() -> dict[str, Any]:
    """Versions, hardware and the commit of the code, as far as they can be told."""
    versions: dict[str, str | None] = {}
    for package in PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = None
    gpus = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    return {
        "python": sys.version.split()[0],
        "packages": versions,
        "platform": platform.platform(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "gpus": gpus,
        "commit": _commit(),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def _commit() -> str | None:
    """The git commit of the package's own sources, if it runs from a checkout; '+' if they were changed."""
    here = Path(__file__).parent

    def git(*words: str) -> str:
        done = subprocess.run(["git", "-C", str(here), *words], capture_output=True, text=True, timeout=5, check=True)
        return done.stdout.strip()

    try:
        git("ls-files", "--error-unmatch", Path(__file__).name)  # installed inside somebody else's checkout: not ours
        return git("describe", "--always", "--dirty=+", "--abbrev=40", "--exclude=*")
    except (OSError, subprocess.SubprocessError):
        return None
