"""Where the time of a training step goes, and how close it comes to this machine's matrix product."""

import time
from collections import defaultdict
from contextlib import contextmanager
from copy import deepcopy

import numpy as np
import torch
from measuring import Row, sgemm, versus
from torch import nn
from torch.nn.utils.fusion import fuse_conv_bn_eval
from torch.utils.flop_counter import FlopCounterMode

from lsdc import LSDC, allocator
from lsdc.data.sources import Data, spec_of
from lsdc.experiments.recipes import PAPER
from lsdc.nn.network import BACKBONES
from lsdc.training.loop import Context, Stage

CASES = {
    "ResNet-18, paper": ((3, 32, 32), PAPER["cifar10"], 2),
    "VGG-4, quarter": ((1, 28, 28), {"neighbours": "batch", "backbone": "vgg4", "batch_size": 256}, 20),
    "MLP, 384 values": ((384,), {"neighbours": "batch", "backbone": "mlp", "batch_size": 256}, 30),
}


class Watched:
    """An object whose methods are timed."""

    def __init__(self, inner, spent, name, methods):
        self.inner, self.spent, self.name, self.methods = inner, spent, name, methods

    def __getattr__(self, attribute):
        found = getattr(self.inner, attribute)
        return timed(found, self.spent, self.name) if attribute in self.methods else found


def timed(function, spent, name):
    def run(*arguments, **options):
        started = time.perf_counter()
        try:
            return function(*arguments, **options)
        finally:
            spent[name] += time.perf_counter() - started

    return run


def stage_of(shape, parameters, n=512):
    """The clustering stage of LSD-C on random samples, as a fit would begin it."""
    X = np.random.default_rng(0).random((n, *shape)).astype(np.float32)
    model = LSDC(10, **parameters)
    model.spec_ = spec_of(X)
    data, context = Data(X, model.spec_), Context(0, torch.device("cpu"))
    settings = model._resolve(model.spec_.shape, len(X))
    network, views = model._build(settings, 0)
    network.backbone.freeze(settings.n_frozen)
    parts = {part: model._part(part, settings) for part in model.objective.parts}
    return Stage(model.objective(network, views, settings, data, context, **parts), data, settings.plan, context)


@contextmanager
def watched(stage, spent):
    """Time the parts of a step."""
    objective, backward = stage.objective, torch.Tensor.backward
    objective.views = Watched(objective.views, spent, "augmentation", ("augment",))
    objective.label = timed(objective.label, spent, "labels")
    objective.composed = timed(objective.composed, spent, "composition")
    backbone = objective.network.backbone
    backbone.forward = timed(backbone.forward, spent, "trunk forward")
    stage.optimizer.step = timed(stage.optimizer.step, spent, "optimiser")
    torch.Tensor.backward = timed(backward, spent, "backward")
    try:
        yield
    finally:
        torch.Tensor.backward = backward


def measured(stage, repeats):
    """Seconds of the best step by part, and its FLOP."""
    indices = torch.arange(min(256, len(stage.data)))
    stage.module.train()

    def step():
        stage._train_step(indices, stage.data.batch(indices), 0, 1000)

    with FlopCounterMode(display=False) as counter:
        step()
    spent = defaultdict(float)
    with watched(stage, spent):
        step()
        found = []
        for _ in range(repeats):
            spent.clear()
            started = time.perf_counter()
            step()
            found.append((time.perf_counter() - started, dict(spent)))
    total, parts = min(found, key=lambda pair: pair[0])
    return total, {**parts, "rest": total - sum(parts.values())}, counter.get_total_flops()


def rows():
    """With one thread: two that wait for each other are slowed by anything beside them, and differently by shape."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return _rows()
    finally:
        torch.set_num_threads(threads)


def _rows():
    allocator.keep_freed_memory()
    result = []
    for name, (shape, parameters, repeats) in CASES.items():
        before = sgemm()
        total, parts, flop = measured(stage_of(shape, parameters), repeats)
        machine = max(before, sgemm())
        against = f"sgemm of one thread, {machine / 1e9:.0f} GFLOP/s; step {flop / 1e9:.1f} GFLOP"
        result.append(Row("step", f"{name}: share of sgemm", f"{total:.4f} s", against, flop / total / machine))
        for part, value in parts.items():
            result.append(Row("step", f"{name}: {part}", f"{value:.4f} s", "the step", value / total))
    return [*result, folded()]


def folded():
    """The frozen stages of ResNet-18 as they are, and with their batch norms folded into the convolutions."""
    backbone = BACKBONES["resnet18"]((3, 32, 32), 1.0)
    frozen = nn.Sequential(*backbone.stages[:3]).eval().to(memory_format=torch.channels_last)
    fused = deepcopy(frozen)
    for block in fused.modules():
        for conv, norm in (("conv1", "norm1"), ("conv2", "norm2")):
            if hasattr(block, conv):
                setattr(block, conv, fuse_conv_bn_eval(getattr(block, conv), getattr(block, norm)))
                setattr(block, norm, nn.Identity())
    fused[0][0], fused[0][1] = fuse_conv_bn_eval(fused[0][0], fused[0][1]), nn.Identity()
    x = torch.randn(64, 3, 32, 32).contiguous(memory_format=torch.channels_last)
    with torch.no_grad():
        assert torch.allclose(frozen(x), fused(x), atol=1e-3)
        plain, less = versus(lambda: frozen(x), lambda: fused(x))
    return Row(
        "step", "ResNet-18: frozen stages, batch norm folded", f"{less:.3f} s", f"as it is, {plain:.3f} s", less / plain
    )
