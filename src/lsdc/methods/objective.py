"""What a clustering stage minimises, and what the network says about all samples at once."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from lsdc import parallel
from lsdc.data.augment import Views
from lsdc.data.sampler import Batch
from lsdc.data.sources import Data
from lsdc.methods.base import Arrays
from lsdc.metrics import CONFIDENT
from lsdc.training import device as devices
from lsdc.training.context import Context
from lsdc.training.health import Record, examine

CHUNK = 1024  # samples encoded in one go by a process


class DeepObjective(ABC):
    """What a clustering stage minimises; what it stores about all samples are buffers, so that checkpoints hold it."""

    parts: ClassVar[tuple[str, ...]] = ()  # names of the estimator's parts that are passed to the constructor
    name = "clustering"

    def __init__(self, network: Any, views: Views, settings: Any, data: Data, context: Context) -> None:
        self.network, self.views, self.settings = network, views, settings
        self.data, self.context = data, context
        self.kept: Any = nn.Module()
        self.module: nn.Module = nn.ModuleDict({"network": network, "kept": self.kept})

    def keep(self, **tensors: Tensor) -> None:
        """Buffers, the same on all processes."""
        for name, tensor in tensors.items():
            self.kept.register_buffer(name, tensor)

    def rows(self, name: str, batch: Batch) -> Tensor:
        """The rows of a buffer that belong to the samples ``batch.x``."""
        buffer: Tensor = getattr(self.kept, name)
        return buffer[parallel.own(batch.indices, len(batch.indices)).to(buffer.device, non_blocking=True)]

    def encoded(self) -> tuple[Tensor, Tensor]:
        """Features and probabilities of all samples, with the network as it is now."""
        chunks = encode(self.network, self.views, self.data, self.context.device)
        f, p = (torch.from_numpy(np.concatenate(arrays)) for arrays in zip(*chunks, strict=True))
        return f.to(self.context.device), p.to(self.context.device)

    def inputs(self) -> Tensor:
        """The plain views of all samples, flattened."""
        return torch.cat([self.views.plain(x).flatten(1) for x in self.data.chunks()]).to(self.context.device)

    def start(self) -> None:  # noqa: B027, a hook
        """Initialise the clusters from the pretext's features; not called when a checkpoint is restored."""

    def prepare(self, history: list[Record]) -> bool:
        """Compute what an epoch needs from all samples (see ``training.loop.train``); True if the stage is done."""
        return False

    @abstractmethod
    def losses(self, batch: Batch) -> dict[str, Tensor]:
        """``loss``, ``shares`` of the clusters, and whatever else is worth a mean over the epoch."""

    def summary(self, record: Record, history: list[Record]) -> Record:
        return examine(record, history, self.settings.plan.epochs)

    def finish(self, history: list[Record]) -> None:  # noqa: B027, a hook
        """Whatever is left to do after the training."""


def confidence(objective: DeepObjective, history: list[Record]) -> list[float]:
    """Ranks starts without labels: by the share of confident samples, then by the loss."""
    _, p = objective.encoded()
    confident = assigned(p)["confident"].cpu()
    score = torch.stack([confident, torch.tensor(-history[-1]["loss"] if history else 0.0)])
    parallel.spread([score])  # rounding must not drive the processes apart
    found: list[float] = score.tolist()
    return found


@torch.no_grad()
def assigned(p: Tensor) -> dict[str, Tensor]:
    """Cluster shares and confidence from the probabilities of a whole batch, for the health checks."""
    best, cluster = p.max(1)
    sizes = p.new_zeros(p.shape[1]).index_add_(0, cluster, torch.ones_like(best))  # bincount would halt a GPU
    return {"shares": sizes / len(p), "confident": (best > CONFIDENT).float().mean()}


def encode(network: nn.Module, views: Views, data: Data, device: torch.device) -> Arrays:
    """Features and probabilities of all samples, chunk by chunk, in evaluation mode; processes divide the work."""
    devices.place(network, device).eval()
    for block in torch.split(torch.arange(len(data)), CHUNK * parallel.size()):
        x = data.batch(parallel.own(block, len(block)))
        with torch.no_grad():
            output = network(views.plain(devices.move(x, device)))
        f, p = (parallel.gather(values, len(block)) for values in (output.f, output.p))
        yield f.cpu().numpy(), p.cpu().numpy()
