"""What the epoch loop works with: data, an objective, a place for checkpoints, and who is told about progress."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import torch
from torch import Tensor, nn

from lsdc.data.sampler import Batch
from lsdc.runs.checkpoint import Checkpoint
from lsdc.training.health import Record


class Batches(Protocol):
    """What the loop needs from data: the number of samples, and batches as float tensors. No labels."""

    def __len__(self) -> int: ...
    def batch(self, indices: Tensor) -> Tensor: ...


Prepare = Callable[[list[Record]], bool]  # before an epoch, from the records so far; True ends the stage


class Objective(Protocol):
    """What a stage minimises. ``module`` holds everything that is trained; labels have no way in."""

    name: str
    module: nn.Module

    def losses(self, batch: Batch) -> dict[str, Tensor]:
        """``loss``, which is minimised, and whatever else is worth a mean over the epoch."""

    def summary(self, record: Record, history: list[Record]) -> Record:
        """Further facts from the epoch's means, e.g. how many clusters are alive; warns if they look bad.

        It may remember nothing but the earlier records, so that a resumed run continues as if it had not stopped.
        """


@dataclass(frozen=True)
class Progress:
    """The progress of a stage: after ``step`` of ``steps`` in ``epoch`` (from 1), with a ``record`` at its end."""

    stage: str
    epoch: int
    epochs: int
    step: int
    steps: int
    record: Record | None = None


class Keeper(Protocol):
    """Where a stage stores its state and metrics: a run folder, or nowhere."""

    interval: float

    def restore(self, stage: str) -> list[Checkpoint]: ...
    def keep(self, stage: str, checkpoint: Checkpoint) -> None: ...


@dataclass
class Context:
    """The context of a stage: seed, device, workers, where to store state, and who to notify.

    ``pretext_data`` are the samples of a pretext that learns from more than the clustered ones.
    """

    seed: int
    device: torch.device
    n_workers: int = 0
    keeper: Keeper | None = None
    monitor: Callable[[Progress], None] = field(default=lambda progress: None)
    pretext_data: Batches | None = None
