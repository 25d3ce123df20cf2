"""A pretext trained once for all jobs that need the same one."""

import hashlib
import json
from pathlib import Path
from typing import Any

from lsdc.methods import METHODS
from lsdc.runs.atomic import write_atomic
from lsdc.runs.checkpoint import Checkpoint
from lsdc.runs.folder import Run


class SharingRun(Run):
    """A run that reuses another job's pretext if it is the same, and leaves its own for others."""

    def restore(self, stage: str) -> list[Checkpoint]:
        kept = super().restore(stage)
        if stage == "pretext" and not kept and self._shares() and self._shared().exists():
            kept = [Checkpoint.read(self._shared())[0]]
            super().keep(stage, kept[0])
        return kept

    def keep(self, stage: str, checkpoint: Checkpoint) -> None:
        super().keep(stage, checkpoint)
        if stage == "pretext" and self._shares() and len(checkpoint.history) == self._epochs():
            write_atomic(self._shared(), checkpoint.to_bytes({"stage": stage}))

    def _shares(self) -> bool:
        return has_pretext(self._config()["settings"])

    def _epochs(self) -> int:
        return int(self._config()["settings"]["pretext_plan"]["epochs"])

    def _config(self) -> dict[str, Any]:
        return self.read_json("config.json")

    def _shared(self) -> Path:
        return self.path.parent / "pretexts" / f"{pretext_key(self._config())}.safetensors"


def has_pretext(settings: dict[str, Any]) -> bool:
    """Whether something is trained before the clustering."""
    return bool(settings.get("pretext", "none") != "none")


def pretext_key(config: dict[str, Any]) -> str:
    """A name for everything that decides how a pretext ends."""
    method, data = METHODS[config["method"]], config["data"]
    content = [data.get(name) for name in ("n", "shape", "digest", "pretext_n", "pretext_digest")]
    text = json.dumps([config["seed"], content, method.pretext_settings(config["settings"])], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
