"""Where the time of a training step goes, and how close it comes to this machine's matrix product.

Processor time of one thread: what runs beside it is left out, and two threads that wait for each other are slowed by
anything beside them, and differently by shape.
"""

import time
from collections import defaultdict
from contextlib import contextmanager

import numpy as np
import torch
from measuring import Row, cpu_seconds, sgemm
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from lsdc import LSDC, allocator
from lsdc.data.sources import Data, spec_of
from lsdc.experiments.recipes import PAPER
from lsdc.functional import nearest
from lsdc.methods.graph import CLASSIFIERS, ClassifierTraining, Fixed, starts
from lsdc.methods.graph_network import Encoder, NetworkTraining
from lsdc.nn.classifiers import Classifiers
from lsdc.training.context import Context
from lsdc.training.loop import Stage

CASES = {
    "ResNet-18, paper": ((3, 32, 32), PAPER["cifar10"], 2),
    "VGG-4, quarter": ((1, 28, 28), {"neighbours": "batch", "backbone": "vgg4", "batch_size": 256}, 10),
    "MLP, paper": ((2000,), PAPER["reuters10k"], 10),
    "MLP, 384 values": ((384,), {"neighbours": "batch", "backbone": "mlp", "batch_size": 256}, 20),
}
OUTSIDE = ("data", "augmentation", "labels", "composition", "rest")  # of the network and its optimiser


def timed(function, spent, name):
    def run(*arguments, **options):
        started = time.process_time()
        try:
            return function(*arguments, **options)
        finally:
            spent[name] += time.process_time() - started

    return run


class Watched:
    """An object one of whose methods is timed."""

    def __init__(self, inner, spent, name, method):
        self.inner, self.spent, self.name, self.method = inner, spent, name, method

    def __getattr__(self, attribute):
        found = getattr(self.inner, attribute)
        return timed(found, self.spent, self.name) if attribute == self.method else found

    def __len__(self):
        return len(self.inner)


def prepared(shape, parameters, n):
    """A model of LSD-C on random samples, as a fit would begin it."""
    X = np.random.default_rng(0).random((n, *shape)).astype(np.float32)
    model = LSDC(10, **parameters)
    model.spec_ = spec_of(X)
    settings = model._resolve(model.spec_.shape, len(X))
    network, views = model._build(settings, 0)
    network.backbone.freeze(settings.n_frozen)
    return model, settings, network, views, Data(X, model.spec_), Context(0, torch.device("cpu"))


def stage_of(shape, parameters, n=512):
    """The clustering stage with labels made within batches."""
    model, settings, network, views, data, context = prepared(shape, parameters, n)
    parts = {part: model._part(part, settings) for part in model.objective.parts}
    return Stage(model.objective(network, views, settings, data, context, **parts), data, settings.plan, context)


def stage_of_graph(n=2048):
    """The default's stage of network and classifiers on a graph of images."""
    _, settings, network, views, data, context = prepared((1, 28, 28), {}, n)
    start = torch.randn(settings.n_init, network.backbone.n_features, 10)
    encoder = Encoder(network, views, data, settings, context)
    stage = NetworkTraining(encoder, start, torch.zeros(()), torch.tensor(0), settings)
    stage.prepare([])
    return Stage(stage, stage.data, settings.plan, context)


def stage_of_classifiers(n=4096, d=128, k=20):
    """The default's stage of linear classifiers on embeddings."""
    _, settings, *_, context = prepared((d,), {}, 512)
    f = torch.nn.functional.normalize(torch.randn(n, d, generator=torch.Generator().manual_seed(0)))
    classifiers = Classifiers(starts(f, settings.n_init, k, 0))
    stage = ClassifierTraining("starts", classifiers, Fixed(f, nearest(f, 10).indices), settings, CLASSIFIERS)
    return Stage(stage, stage.data, stage.plan, context)


@contextmanager
def watched(stage, spent):
    """Time the parts of a step."""
    objective, backward = stage.objective, torch.Tensor.backward
    stage.data = Watched(stage.data, spent, "data", "batch")
    for name, part in (("label", "labels"), ("composed", "composition")):
        if hasattr(objective, name):
            setattr(objective, name, timed(getattr(objective, name), spent, part))
    owner = objective if hasattr(objective, "views") else getattr(objective, "encoder", None)
    if owner:
        owner.views = Watched(owner.views, spent, "augmentation", "augment")
    for module in stage.module.modules():  # what holds weights that are trained or frozen
        if isinstance(module, nn.Module) and type(module).__name__ in ("Backbone", "Classifiers"):
            module.forward = timed(module.forward, spent, "network forward")
    stage.optimizer.step = timed(stage.optimizer.step, spent, "optimiser")
    torch.Tensor.backward = timed(backward, spent, "backward")
    try:
        yield
    finally:
        torch.Tensor.backward = backward


def one_step(stage, batch_size=256):
    indices = torch.arange(min(batch_size, len(stage.data)))
    stage.module.train()
    return lambda: stage._train_step(indices, stage.data.batch(indices), 0, 1000)


def measured(stage, repeats, batch_size=256):
    """Seconds of the best step by part, and its FLOP; the step that counts them warms up."""
    step = one_step(stage, batch_size)
    with FlopCounterMode(display=False) as counter:
        step()
    spent, found = defaultdict(float), []
    with watched(stage, spent):
        step = one_step(stage, batch_size)
        for _ in range(repeats):
            spent.clear()
            started = time.process_time()
            step()
            found.append((time.process_time() - started, dict(spent)))
    total, parts = min(found, key=lambda pair: pair[0])
    return total, {**parts, "rest": total - sum(parts.values())}, counter.get_total_flops()


def plain(stage, repeats):
    """Three passes of the network and one back, with nothing else: what a step cannot do without."""
    network = stage.objective.network.train()
    x = stage.objective.views.plain(stage.data.batch(torch.arange(256)))
    x = x.contiguous(memory_format=torch.channels_last) if x.ndim == 4 else x

    def run():
        stage.optimizer.zero_grad(set_to_none=True)
        sum(network(x).p.square().mean() for _ in range(3)).backward()

    return cpu_seconds(run, repeats)


def rows(small=False):
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    allocator.keep_freed_memory()
    try:
        return [row for name in [*CASES, *GRAPHS] for row in _rows(name, small)]
    finally:
        torch.set_num_threads(threads)


GRAPHS = {
    "VGG-4, quarter, graph": (stage_of_graph, 10, 128),
    "20 linear classifiers, graph": (stage_of_classifiers, 20, 512),
}


def _rows(name, small):
    machine, mkl = sgemm()
    if name in CASES:
        shape, parameters, repeats = CASES[name]
        parameters = {**parameters, "width": 0.1} if small else parameters
        stage, batch_size = stage_of(shape, parameters), 256
    else:
        build, repeats, batch_size = GRAPHS[name]
        stage = build()
    total, parts, flop = measured(stage, repeats, batch_size)
    against = f"{flop / 1e9:.3g} GFLOP; product {machine / 1e9:.0f} GFLOP/s, MKL's {mkl / 1e9:.0f}"
    result = [Row("step", f"{name}: share of the matrix product", f"{total:.4f} s", against, flop / total / machine)]
    outside = sum(parts.get(part, 0.0) for part in OUTSIDE)
    result.append(Row("step", f"{name}: outside the network", f"{outside:.4f} s", "the step", outside / total))
    for part, value in parts.items():
        result.append(Row("step", f"{name}: {part}", f"{value:.4f} s", "the step", value / total))
    if name in CASES:
        least = plain(stage_of(shape, parameters), 1 if repeats < 5 else 5)
        result.append(Row("step", f"{name}: the step", f"{total:.4f} s", f"its network, {least:.4f} s", total / least))
    return result
