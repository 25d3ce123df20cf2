"""How long a fit will take: the work of every stage from its settings, the speed from what is done so far."""

import time
from typing import Any

from lsdc.methods.graph import CLASSIFIERS, pairs_of_an_epoch
from lsdc.methods.graph_network import NETWORK_STEPS
from lsdc.nn.network import FITTED
from lsdc.training.context import Progress

CLASSIFIER_STEP = 0.3  # a step of classifiers on features, relative to a step of a network on a batch
VIEWS = 3.0  # a step of LSD-C within batches, which sees each sample three times


def planned(settings: dict[str, Any], n: int) -> dict[str, float]:
    """The work of each stage, in units of one pretext step; empty if the method has no stages."""
    if "plan" not in settings:
        return {}
    plan, before, graph = settings["plan"], settings.get("pretext_plan"), settings.get("neighbours") == "graph"
    work = {"pretext": before["epochs"] * max(1, n // before["batch_size"])} if before else {}
    if settings.get("pretext") == "none":
        work = {}
    if graph and settings["backbone"] in FITTED:
        return {"starts": CLASSIFIER_STEP * plan["epochs"], "clustering": CLASSIFIER_STEP / 2 * plan["epochs"]}
    if graph:
        steps = CLASSIFIER_STEP * CLASSIFIERS.epochs * pairs_of_an_epoch(n) // CLASSIFIERS.batch_size
        return {
            **work,
            "starts": steps,
            "clustering": NETWORK_STEPS * plan["epochs"],
            "choice": steps,
            "agreement": steps / 2,
        }
    each = VIEWS if "similarity" in settings else 1.0
    return {**work, "clustering": each * plan["epochs"] * max(1, n // plan["batch_size"])}


class Clock:
    """Estimates the time left for all stages; a resumed run counts only its own work.

    The pace is that since the first report: what comes before it (a graph of all samples, K-means) happens once.
    """

    def __init__(self, work: dict[str, float]) -> None:
        self.planned = bool(work)
        self.work, self.seen = dict(work), dict[str, tuple[float, float]]()
        self.started: tuple[float, float] | None = None  # when the first report came, and the work done by then

    def update(self, step: Progress) -> None:
        """Record where a stage is."""
        done = (step.epoch if step.record else step.epoch - 1 + step.step / max(step.steps, 1)) / max(step.epochs, 1)
        self.work.setdefault(step.stage, self.work.get(step.stage.rpartition("-")[0], float(step.epochs)))
        first, _ = self.seen.get(step.stage, (done if step.epoch > 1 else 0.0, 0.0))
        self.seen[step.stage] = first, done
        if self.started is None:
            self.started = time.monotonic(), self._own()

    def _own(self) -> float:
        return sum(self.work[stage] * (done - first) for stage, (first, done) in self.seen.items())

    def left(self) -> float | None:
        """Seconds left, once there is something to estimate them from."""
        if self.started is None or (own := self._own() - self.started[1]) <= 0:
            return None
        reached = max(list(self.work).index(stage) for stage in self.seen)
        shares = [
            self.seen[stage][1] if stage in self.seen else float(i < reached) for i, stage in enumerate(self.work)
        ]
        ahead = sum(work * (1 - share) for work, share in zip(self.work.values(), shares, strict=True))
        return ahead * (time.monotonic() - self.started[0]) / own

    def in_words(self) -> str:
        """The time left, for people; nothing where later stages are not known."""
        left = self.left() if self.planned else None
        if left is None or left < 1:
            return ""
        if left < 90:
            return f"about {round(left / 5) * 5 or 1:.0f} s left in all"
        return f"about {left / 60:.0f} min left in all" if left < 5400 else f"about {left / 3600:.1f} h left in all"
