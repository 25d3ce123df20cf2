"""The one epoch loop, for the pretexts and for every deep method."""

import logging
import math
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import torch
from torch import Tensor

from lsdc import parallel
from lsdc.data.sampler import Batch, batches
from lsdc.errors import Diverged, HealthWarning, InputError
from lsdc.interrupt import Interrupt
from lsdc.nn.norm import synchronised
from lsdc.runs.checkpoint import Checkpoint, has_collapsed, optimizer_tensors
from lsdc.training import device as devices
from lsdc.training.context import Batches, Context, Objective, Prepare, Progress
from lsdc.training.health import Record, thinned
from lsdc.training.plan import Plan
from lsdc.training.rng import generator, rows_generator

__all__ = ["Stage", "train"]
log = logging.getLogger("lsdc")

RETRIES = 3  # after a loss that is not finite, or a collapse
LR_FACTOR = 0.3  # each retry multiplies the learning rate by this
READ_EVERY = 16  # steps after which losses are read: a GPU stands still meanwhile
MIN_SAVE_INTERVAL = 1.0  # seconds between ends of epochs that are stored: repeating less than that costs less


def _fetch(data: Batches, order: list[Tensor], n_workers: int) -> Iterator[Tensor]:
    """The batches in order; with workers, threads prefetch a few of them."""
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


def train(
    objective: Objective, data: Batches, plan: Plan, context: Context, prepare: Prepare | None = None
) -> list[Record]:
    """Train one stage, from its last checkpoint if there is one, and return its records, one per epoch.

    ``prepare`` is called at the start of an epoch with the records so far, for what needs all samples at once; if it
    returns True, the stage is done. It may depend only on these records and the module, and must leave its results in
    the module's buffers: they are checkpointed, so it is not called again when an epoch resumes in its middle.
    """
    stage = Stage(objective, data, plan, context)
    stage.resume()
    with Interrupt(wanted=context.keeper is not None or parallel.is_member()) as interrupt:
        while len(stage.history) < plan.epochs:
            if stage.is_done(prepare):
                collapsed = has_collapsed(stage.history)  # then labels never change, which must not count as done
                if collapsed and stage.retry(f"done, but collapsed in epoch {len(stage.history)}"):
                    continue
                if stage.sound_is_unsaved:
                    stage.keep()
                break
            try:
                stage.epoch(interrupt)
            except Diverged as error:
                if not stage.retry(str(error)):
                    raise Diverged(
                        f"{objective.name}: {error}, and {RETRIES} retries with smaller steps did not help; "
                        f"try a smaller lr than {plan.lr}, and look for extreme values in the data"
                    ) from None
                continue
            last = stage.history[-1]
            if not ("collapsed" in last.get("warned", ()) and stage.retry(f"collapsed in epoch {last['epoch']}")):
                stage.finish_epoch()
        if parallel.any_of(interrupt.asked is not None):  # after the last step, whose epoch is already stored
            interrupt.finish()
    stage.module.eval()
    return stage.history


class Stage:
    """A running stage: the module, its optimiser, and the position in the plan."""

    def __init__(self, objective: Objective, data: Batches, plan: Plan, context: Context) -> None:
        self.objective, self.data, self.plan, self.context = objective, data, plan, context
        if min(plan.batch_size, len(data)) < parallel.size():
            raise InputError(f"batch_size={plan.batch_size} is too small for {parallel.size()} processes")
        self.module = devices.place(synchronised(objective.module), context.device)
        parallel.spread([*self.module.parameters(), *self.module.buffers()])
        self.optimizer = plan.build_optimizer(self.module)
        self._set_place(Checkpoint({}, {}, []))
        self.sound = self.checkpoint().copy()
        self.saved_at, self.sound_is_unsaved = time.monotonic(), False

    def _set_place(self, kept: Checkpoint) -> None:
        self.history, self.step, self.sums = list(kept.history), kept.step, dict(kept.sums)
        self.seconds, self.retries = kept.seconds, list(kept.retries)
        self.unread: list[Tensor] = []  # losses of the latest steps

    def checkpoint(self) -> Checkpoint:
        """The current state."""
        tensors = optimizer_tensors(self.optimizer)
        place = (self.history, self.step, self.sums, self.seconds, self.retries)
        return Checkpoint(self.module.state_dict(), tensors, *place)

    def load(self, kept: Checkpoint) -> None:
        """Go to another state."""
        kept.load_into(self.module, self.optimizer)
        self._set_place(replace(kept, sums={name: x.to(self.context.device) for name, x in kept.sums.items()}))

    def resume(self) -> None:
        """Go to the last stored state; all processes go to that of the first."""
        keeper, name = self.context.keeper, self.objective.name
        kept = keeper.restore(name) if keeper else []
        if parallel.is_member():
            kept = [Checkpoint.from_bytes(c)[0] for c in parallel.broadcast_all([c.to_bytes({}) for c in kept])]
        for checkpoint in reversed(kept):
            self.load(checkpoint)
            self.sound = checkpoint.copy() if checkpoint.sound else self.sound

    def _unsaved(self) -> list[Checkpoint]:
        """What to store: the last sound state, for retries, unless it is on disk already; then the current one."""
        if not self.sound_is_unsaved:
            return [self.checkpoint()]
        is_current = self.step == 0 and len(self.history) == len(self.sound.history)
        return [self.sound] if is_current else [self.sound, self.checkpoint()]

    def keep(self) -> None:
        """Store the state; a full disk is a warning and does not stop the training."""
        if not self.context.keeper:
            return
        try:
            for checkpoint in self._unsaved():
                self.context.keeper.keep(self.objective.name, checkpoint)
            self.sound_is_unsaved = False
        except OSError as error:
            place = error.filename or "disk"
            warnings.warn(
                f"{place}: the checkpoint could not be written ({error.strerror}); training continues, and "
                "the previous checkpoint is kept",
                HealthWarning,
                stacklevel=1,
            )
        self.saved_at = time.monotonic()

    def keep_if_time(self) -> None:
        """Write the state if the last time was long ago. Only the first process does, so it must not fail here alone.

        A loss that is not finite stays unread, for all processes to find.
        """
        keeper = self.context.keeper
        if keeper and time.monotonic() - self.saved_at > keeper.interval and self.first_infinite() is None:
            self.keep()

    def first_infinite(self) -> tuple[int, float] | None:
        """The first step since losses were last read whose loss is not finite, and that loss."""
        values: list[float] = torch.stack(self.unread).tolist() if self.unread else []
        first = self.step - len(values) + 1
        return next(((first + i, loss) for i, loss in enumerate(values) if not math.isfinite(loss)), None)

    def check_losses(self) -> None:
        """Read the losses of the latest steps, and stop if one is not finite."""
        found = self.first_infinite()
        self.unread = []
        if found:
            raise Diverged(f"the loss became {found[1]} in epoch {len(self.history) + 1}, step {found[0]}")

    def retry(self, reason: str) -> bool:
        """Continue from the last sound state with smaller steps; False if that was tried often enough."""
        if len(self.retries) >= RETRIES:
            return False
        retries = [*self.retries, reason]
        self.load(self.sound)
        self.retries = retries
        place = f"epoch {len(self.history)}" if self.history else "the beginning"
        warnings.warn(
            f"{self.objective.name}: {reason}; continuing from {place} with {self.lr_scale:.2g} of the learning rate "
            f"(retry {len(retries)} of {RETRIES})",
            HealthWarning,
            stacklevel=1,
        )
        return True

    @property
    def lr_scale(self) -> float:
        """The factor on the plan's learning rate."""
        return LR_FACTOR ** len(self.retries)

    def is_done(self, prepare: Prepare | None) -> bool:
        """Whether there is nothing left to learn, after preparing an epoch that has not begun."""
        if prepare is None or self.step:
            return False
        started = time.perf_counter()
        done = prepare(self.history)
        parallel.spread([*self.module.parameters(), *self.module.buffers()])  # rounding must not part them
        self.seconds = time.perf_counter() - started
        return parallel.any_of(done)

    def epoch(self, interrupt: Interrupt) -> None:
        """One pass over the data, or the rest of one, with its record."""
        objective, epoch = self.objective, len(self.history)
        started = time.perf_counter() - self.seconds
        order = batches(
            len(self.data), self.plan.batch_size, generator(self.context.seed, objective.name, "order", epoch)
        )
        mine = [parallel.own(indices, len(indices)) for indices in order[self.step :]]
        self.module.train()
        for indices, x in zip(order[self.step :], _fetch(self.data, mine, self.context.n_workers), strict=True):
            self._train_step(indices, x, epoch, len(order))
            self.seconds = time.perf_counter() - started
            self.context.monitor(Progress(objective.name, epoch + 1, self.plan.epochs, self.step, len(order)))
            due = self.step % READ_EVERY == 0 or self.step == len(order)
            if due:
                self.check_losses()
            if (due or parallel.is_free_to_ask()) and parallel.any_of(interrupt.asked is not None):
                self.check_losses()
                self.keep()
                interrupt.finish()
            self.keep_if_time()
        self.history = thinned([*self.history, self._record(epoch, len(order))])
        self.step, self.sums, self.seconds = 0, {}, 0.0

    def _record(self, epoch: int, steps: int) -> Record:
        """The record of a finished epoch: means over its steps, and what the objective makes of them."""
        record: Record = {"stage": self.objective.name, "epoch": epoch + 1}
        record["lr"] = self.plan.lr_at(epoch) * self.lr_scale
        record |= {key: (value / steps).tolist() for key, value in self.sums.items()}
        record |= self.objective.summary(record, self.history)
        record |= {"retries": list(self.retries)} if self.retries else {}
        return record | {"seconds": round(self.seconds, 3)}

    def _train_step(self, indices: Tensor, x: Tensor, epoch: int, steps: int) -> None:
        """One step."""
        t = epoch + self.step / steps
        for group in self.optimizer.param_groups:
            group["lr"] = self.plan.lr_at(t) * self.lr_scale
        rng = rows_generator(len(indices), self.context.seed, self.objective.name, epoch, self.step)
        batch = Batch(devices.move(x, self.context.device), indices, rng, t, t / self.plan.epochs)
        try:
            losses = self.objective.losses(batch)
        except Exception:
            self.check_losses()  # weights that are not finite end in other errors too
            raise
        self.step += 1
        self.unread.append(losses["loss"].detach())
        self.optimizer.zero_grad(set_to_none=True)
        losses["loss"].backward()  # type: ignore[no-untyped-call]
        parallel.add_gradients([p for group in self.optimizer.param_groups for p in group["params"]])
        self.optimizer.step()
        for key, value in losses.items():
            self.sums[key] = self.sums.get(key, torch.zeros_like(value)) + value.detach()

    def finish_epoch(self) -> None:
        """Store the state at the end of an epoch, unless that was done a moment ago, and report it."""
        record = self.history[-1]
        log.info("%s epoch %d/%d: loss %.4f", record["stage"], record["epoch"], self.plan.epochs, record["loss"])
        checkpoint = self.checkpoint()
        self.sound = checkpoint.copy() if checkpoint.sound else self.sound
        self.sound_is_unsaved = self.sound_is_unsaved or checkpoint.sound
        keeper, is_inner = self.context.keeper, 1 < record["epoch"] < self.plan.epochs
        interval = min(MIN_SAVE_INTERVAL, keeper.interval) if keeper and checkpoint.sound and is_inner else 0.0
        if time.monotonic() - self.saved_at >= interval:
            self.keep()
        self.context.monitor(Progress(self.objective.name, record["epoch"], self.plan.epochs, 0, 0, record))
