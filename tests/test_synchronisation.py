"""A step leaves a GPU to its work: nothing is read back but every few steps (``training.loop.READ_EVERY``)."""

from copy import deepcopy

import numpy as np
import pytest
import torch

from lsdc import METHODS
from lsdc.data.sampler import Batch
from lsdc.data.sources import Data, spec_of
from lsdc.interrupt import Interrupt
from lsdc.nn.heads import ManyHeads
from lsdc.nn.memory import Memory
from lsdc.training.context import Context
from lsdc.training.loop import READ_EVERY, Stage
from lsdc.training.rng import generator
from pretending import Copies, Operations, mark

CPU = torch.device("cpu")
BATCH = 16


def stage_of(name, **parameters):
    """The clustering stage of a method on small images, its weights marked as if on a GPU."""
    X = np.random.default_rng(0).random((40 * BATCH, 8, 8)).astype(np.float32)
    model = METHODS[name](4, batch_size=BATCH, **parameters)
    model.spec_ = spec_of(X)
    data = Data(X, model.spec_)
    settings = model._resolve(model.spec_.shape, len(X))
    network, views = model._build(settings, 0)
    context = Context(0, CPU)
    parts = {part: model._part(part, settings) for part in model.objective.parts}
    objective = model.objective(network, views, settings, data, context, **parts)
    objective.start()
    objective.prepare([])
    stage = Stage(objective, data, settings.plan, context)
    follows = {name for name, x in deepcopy(stage.module).to("meta").state_dict().items() if x.is_meta}
    for key, tensor in stage.module.state_dict(keep_vars=True).items():
        if key in follows:
            mark(tensor)
    return stage


def halts_of(stage):
    """What waits for the device in the second step, when the optimiser has its state."""
    rng = torch.Generator().manual_seed(0)
    halts = []
    stage.module.train()
    for _ in range(2):
        indices = torch.randperm(len(stage.data), generator=rng)[:BATCH]
        halts.clear()
        with Copies(halts), Operations(halts):
            stage._train_step(indices, stage.data.batch(indices), 0, 40)
    return halts


LSDC = {
    "default": {"neighbours": "batch"},
    "knn": {"similarity": "knn", "k": 3, "pool": 0, "composition": "ricap"},
    "thresholds": {"similarity": "sne", "tau": 0.01, "composition": "mixup", "optimizer": "sgd"},
    "predictions": {"space": "predictions"},
}


@pytest.mark.parametrize("parameters", LSDC.values(), ids=LSDC)
def test_a_step_of_lsdc_never_waits(parameters):
    assert halts_of(stage_of("lsdc", **parameters)) == []


@pytest.mark.parametrize("name", ["dac", "dec", "idec", "iic", "imsat", "vade"])
def test_a_step_of_other_methods_never_waits(name):
    assert halts_of(stage_of(name)) == []


@pytest.mark.parametrize(
    "read",
    [
        lambda x: x.item(),
        lambda x: bool(x > 0),
        lambda x: x.cpu(),
        lambda x: x.expand(3)[x.expand(3) > 0],
        lambda x: torch.arange(3).to(x.device),
        lambda x: x[None].nonzero(),
    ],
)
def test_what_waits_is_counted(read):
    stage = stage_of("imsat")
    losses = stage.objective.losses

    def reading(batch):
        found = losses(batch)
        read(found["loss"].detach())
        return found

    stage.objective.losses = reading
    assert halts_of(stage) != []


def test_losses_are_read_every_few_steps():
    """40 steps: after 16, after 32, and at the end, then the means of the epoch."""
    stage = stage_of("imsat", epochs=1)
    means = stage.objective.losses(Batch(stage.data.batch(torch.arange(BATCH)), torch.arange(BATCH), generator(0), 0.0))
    halts = []
    with Interrupt(wanted=False) as interrupt, Copies(halts), Operations(halts):
        stage.epoch(interrupt)
    reads = [what for what, _ in halts if what == "tolist"]
    assert len(stage.data) == 40 * BATCH
    assert READ_EVERY == 16
    assert len(reads) == 3 + len(means)


@pytest.mark.parametrize(("module", "stays"), [(Memory(4, 2), {"ids", "position"}), (ManyHeads(2, 2), {"best"})])
def test_what_decides_shapes_stays_in_main_memory(module, stays):
    assert {name for name, x in module.to("meta").state_dict().items() if not x.is_meta} == stays
