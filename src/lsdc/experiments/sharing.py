"""A pretext that is trained once for all cells that have the same one."""

import hashlib
import json
from pathlib import Path
from typing import Any

from lsdc.training.checkpoint import Checkpoint, write_atomic
from lsdc.training.run import Run


class CellRun(Run):
    """A run that takes its pretext from another cell that had the same one, and leaves its own for others."""

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
        """Whether what decides its pretext is known: that of LSD-C."""
        return bool(self._config()["method"] == "lsdc")

    def _epochs(self) -> int:
        return int(self._config()["settings"]["pretext_plan"]["epochs"])

    def _config(self) -> dict[str, Any]:
        return self.read_json("config.json")

    def _shared(self) -> Path:
        return self.path.parent / "pretexts" / f"{pretext_key(self._config())}.safetensors"


def pretext_key(config: dict[str, Any]) -> str:
    """A name for everything that decides how a pretext ends."""
    settings, data = config["settings"], config["data"]
    network = {name: settings["architecture"][name] for name in ("backbone", "width", "augment")}
    parts = [
        config["seed"],
        [data.get(name) for name in ("n", "shape", "digest", "pretext_n", "pretext_digest")],
        network,
    ]
    text = json.dumps([*parts, settings["pretext"], settings["pretext_plan"]], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
