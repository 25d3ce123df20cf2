"""The one epoch loop, for the pretexts and for every deep method."""

import logging
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from lsdc.data.sampler import Batch, batches
from lsdc.training import device as devices
from lsdc.training.checkpoint import Checkpoint
from lsdc.training.plan import Plan
from lsdc.training.rng import generator

log = logging.getLogger("lsdc")

Record = dict[str, Any]


class Diverged(RuntimeError):
    """The loss is no longer a finite number."""


class Batches(Protocol):
    """What the loop needs of data: how many samples, and the float tensor of some of them. No labels."""

    def __len__(self) -> int: ...
    def batch(self, indices: Tensor) -> Tensor: ...


class Objective(Protocol):
    """What a stage minimises. ``module`` holds all that is trained; labels have no way in."""

    name: str
    module: nn.Module

    def losses(self, batch: Batch) -> dict[str, Tensor]:
        """``loss``, which is minimised, and whatever else is worth a mean over the epoch."""

    def summary(self, record: Record) -> Record:
        """What the epoch's means say beyond themselves, e.g. how many clusters live; warns if it looks bad."""


@dataclass(frozen=True)
class Progress:
    """Where a stage is: after ``step`` of ``steps`` in ``epoch`` (from 1); ``record`` is there at an epoch's end."""

    stage: str
    epoch: int
    epochs: int
    step: int
    steps: int
    record: Record | None = None


class Keeper(Protocol):
    """Where a stage keeps its state and its metrics; the run folder is one, nothing at all is another."""

    def restore(self, stage: str) -> Checkpoint | None: ...
    def keep(self, stage: str, checkpoint: Checkpoint) -> None: ...


@dataclass
class Context:
    """What surrounds a stage: seed, device, workers, where to keep state and whom to tell.

    ``pretext_data`` are the samples of a pretext, where it has more than the clustering.
    """

    seed: int
    device: torch.device
    n_workers: int = 0
    keeper: Keeper | None = None
    monitor: Callable[[Progress], None] = field(default=lambda progress: None)
    pretext_data: Batches | None = None


def _gather(data: Batches, order: list[Tensor], n_workers: int) -> Iterator[Tensor]:
    """The batches in order; with workers, threads fetch a few of them ahead."""
    if not n_workers:
        yield from map(data.batch, order)
        return
    with ThreadPoolExecutor(n_workers) as pool:
        ahead = [pool.submit(data.batch, indices) for indices in order[: 2 * n_workers]]
        for i in range(len(order)):
            x = ahead.pop(0).result()
            if i + 2 * n_workers < len(order):
                ahead.append(pool.submit(data.batch, order[i + 2 * n_workers]))
            yield x


def train(objective: Objective, data: Batches, plan: Plan, context: Context) -> list[Record]:
    """Train one stage, from its last checkpoint if there is one, and return its records, one an epoch."""
    stage, module = objective.name, devices.place(objective.module, context.device)
    optimizer = plan.build_optimizer(module)
    history: list[Record] = []
    if context.keeper and (kept := context.keeper.restore(stage)):
        kept.load_into(module, optimizer)
        history = kept.history
        with warnings.catch_warnings():  # what was said before is not said again
            warnings.simplefilter("ignore")
            for earlier in history:
                objective.summary(earlier)
    for epoch in range(len(history), plan.epochs):
        started = time.perf_counter()
        module.train()
        means = _epoch(objective, data, plan, context, optimizer, epoch)
        record: Record = {"stage": stage, "epoch": epoch + 1, "lr": plan.lr_at(epoch), **means}
        record |= objective.summary(record)
        record["seconds"] = round(time.perf_counter() - started, 3)
        history.append(record)
        log.info("%s epoch %d/%d: loss %.4f", stage, epoch + 1, plan.epochs, record["loss"])
        if context.keeper:
            context.keeper.keep(stage, Checkpoint.of(module, optimizer, history))
        context.monitor(Progress(stage, epoch + 1, plan.epochs, 0, 0, record))
    module.eval()
    return history


def _epoch(
    objective: Objective, data: Batches, plan: Plan, context: Context, optimizer: torch.optim.Optimizer, epoch: int
) -> Record:
    """One pass over the data; returns the means of everything the objective reports."""
    order = batches(len(data), plan.batch_size, generator(context.seed, objective.name, "order", epoch))
    sums: dict[str, Tensor] = {}
    for step, (indices, x) in enumerate(zip(order, _gather(data, order, context.n_workers), strict=True)):
        t = epoch + step / len(order)
        for group in optimizer.param_groups:
            group["lr"] = plan.lr_at(t)
        rng = generator(context.seed, objective.name, epoch, step)
        losses = objective.losses(Batch(devices.move(x, context.device), indices, rng, t))
        if not torch.isfinite(losses["loss"]):
            raise Diverged(
                f"{objective.name}: the loss became {losses['loss'].item()} in epoch {epoch + 1}, step {step + 1}; "
                f"try a smaller lr than {plan.lr}, and look for extreme values in the data"
            )
        optimizer.zero_grad(set_to_none=True)
        losses["loss"].backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        for key, value in losses.items():
            sums[key] = sums.get(key, torch.zeros_like(value)) + value.detach()
        context.monitor(Progress(objective.name, epoch + 1, plan.epochs, step + 1, len(order)))
    return {key: (value / len(order)).tolist() for key, value in sums.items()}
