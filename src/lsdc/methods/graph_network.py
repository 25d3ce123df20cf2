"""LSD-C on images with pairs from a neighbour graph: a network and many classifiers learn from walks on it."""

import math
from typing import Any

import torch
from torch import Tensor, nn

from lsdc import parallel
from lsdc.data.augment import Views
from lsdc.data.sampler import Batch, draw
from lsdc.data.sources import Data
from lsdc.functional import nearest, pair_likelihood, walk
from lsdc.methods.deep import CHUNK, assigned
from lsdc.methods.graph import (
    CLASSIFIERS,
    LATER,
    REMEDIES,
    SAMPLES,
    ClassifierTraining,
    Fixed,
    Pairs,
    agreed,
    clusters,
    means,
    rearrange,
    sample,
    starts,
    towards,
)
from lsdc.nn.classifiers import FORMS, GAIN, IMAGE_FORMS, WRONG, Axes, Classifiers, Forms, principal_axes
from lsdc.nn.network import Network
from lsdc.training import device as devices
from lsdc.training.context import Context
from lsdc.training.health import Record, examine
from lsdc.training.loop import train
from lsdc.training.rng import derive, rows_generator

N_VIEWS = 4  # of an image, for classifiers on features that stay as they are
NETWORK_STEPS = 150  # of the network on one graph, which is then made anew
LEAST_EPOCHS = 8
TEACHERS = 8  # of the network, whose clusters are starts too when it has learned
PASSES = 6  # how often each sample of large data begins a walk, on average


def network_epochs(n: int, batch_size: int) -> int:
    """Epochs of the network, each of ``NETWORK_STEPS`` on a graph of its own."""
    return max(LEAST_EPOCHS, math.ceil(PASSES * n / (NETWORK_STEPS * batch_size)))


class Encoder:
    """What classifiers ask of a network under training: features of some samples, plainly and in views, their graph."""

    def __init__(self, network: Network, views: Views, data: Data, settings: Any, context: Context) -> None:
        self.network, self.views, self.data = network, views, data
        self.settings, self.context = settings, context

    def seen(self, indices: Tensor, rng: torch.Generator) -> Tensor:
        """Samples on the device, each augmented."""
        x = devices.move(self.data.batch(indices.cpu()), self.context.device)
        return self.views.augment(x, rng)

    @torch.no_grad()
    def features(self, indices: Tensor, *place: str | int, augmented: bool = False) -> Tensor:
        """Features of some samples in evaluation mode; processes share the work."""
        network: Any = devices.place(self.network, self.context.device).eval()
        parts = []
        for number, block in enumerate(torch.split(indices, CHUNK)):
            mine = parallel.own(block, len(block))
            if augmented:
                x = self.seen(mine, rows_generator(len(block), self.context.seed, *place, number))
            else:
                x = self.views.plain(devices.move(self.data.batch(mine), self.context.device))
            parts.append(parallel.gather(network.backbone(x), len(block)))
        return torch.cat(parts)

    def sampled(self, *place: str | int) -> tuple[Tensor, Tensor]:
        """Features of a random sample, and which samples these are."""
        indices = sample(len(self.data), self.context.seed, "graph sample", *place)
        return self.features(indices), indices

    def graph(self, f: Tensor) -> tuple[Axes, Tensor]:
        """The axes of features and, by the angle along them, the neighbours of each."""
        head: Any = self.network.head
        axes = principal_axes(f, head[0].eps, derive(self.context.seed, "axes"))
        parallel.spread(axes)
        k = min(self.settings.k, len(f) - 1)
        return axes, nearest(nn.functional.normalize(axes.of(f)), k, "l2").indices

    def classify(
        self, name: str, forms: Forms = FORMS, taught: "NetworkTraining | None" = None
    ) -> tuple[Classifiers, Fixed, Axes, list[Record]]:
        """Train classifiers on the features as they are now.

        Once the network has been ``taught``, many of them start from merged clusters, and some from what its best
        teachers found.
        """
        f, indices = self.sampled(name)
        axes, neighbours = self.graph(f)
        views = [axes.of(self.features(indices, name, v, augmented=True)) for v in range(N_VIEWS)]
        fixed = Fixed(axes.of(f), neighbours, torch.stack(views))
        seed = derive(self.context.seed, name)
        n_clusters, graph = self.settings.n_clusters, neighbours if taught else None
        start = starts(fixed.features, self.settings.n_init, n_clusters, seed, graph=graph)
        if taught:
            found = taught.partitions(f, fixed)[: min(TEACHERS, len(start))]
            start = torch.cat([start, torch.stack([towards(means(fixed.features, one, n_clusters)) for one in found])])
            parallel.spread([start])  # rounding must not part the processes
        classifiers, history = self.trained(name, Classifiers(start, forms=forms), fixed)
        return classifiers, fixed, axes, history

    def trained(self, name: str, classifiers: Classifiers, fixed: Fixed) -> tuple[Classifiers, list[Record]]:
        """Classifiers after a stage on fixed features."""
        stage = ClassifierTraining(name, classifiers, fixed, self.settings, CLASSIFIERS)
        return classifiers, train(stage, stage.data, stage.plan, self.context)

    @torch.no_grad()
    def fold(self, classifiers: Classifiers, axes: Axes) -> None:
        """Give the network's head the best classifier."""
        head: Any = self.network.head
        norm, linear = head
        norm.running_mean.copy_(axes.centre)
        norm.running_var.copy_(axes.spread.square() - norm.eps)
        weight, bias = classifiers.linear()
        linear.weight.copy_((axes.directions @ weight).T)
        linear.bias.copy_(bias)


class NetworkTraining:
    """Network and classifiers together, on views of samples that walks join; the graph is renewed every epoch.

    All classifiers teach the network, so that none of them decides alone what its features become. Walks bring samples
    of a group together; as training goes on, more and more pairs are two views of one image, which are never wrong.
    """

    name = "clustering"

    def __init__(self, encoder: Encoder, start: Tensor, bias: Tensor, best: Tensor, settings: Any) -> None:
        self.encoder, self.settings = encoder, settings
        head: Any = encoder.network.head
        self.classifiers = Classifiers(start, gain=1.0)
        self.classifiers.bias.data.copy_(bias)
        self.classifiers.best.copy_(best)
        n = min(len(encoder.data), SAMPLES)
        self.kept: Any = nn.Module()
        self.kept.register_buffer("sample", torch.zeros(n, dtype=torch.long))
        self.kept.register_buffer("neighbours", torch.zeros(n, min(settings.k, n - 1), dtype=torch.long))
        parts = {"backbone": encoder.network.backbone, "norm": head[0], "classifiers": self.classifiers}
        self.module: Any = nn.ModuleDict({**parts, "kept": self.kept})
        self.data = Pairs(NETWORK_STEPS * settings.plan.batch_size)

    @torch.no_grad()
    def prepare(self, history: list[Record]) -> bool:
        """A graph of other samples, by what the network makes of them now."""
        f, indices = self.encoder.sampled(self.name, len(history))
        self.kept.sample.copy_(indices)
        self.kept.neighbours.copy_(self.encoder.graph(f)[1])
        return False

    def losses(self, batch: Batch) -> dict[str, Tensor]:
        most, n = self.settings.walk, len(batch.indices)
        rows, device = len(batch.x), self.kept.sample.device
        u = draw(torch.rand, (rows, 3 + most), batch.rng).to(device)
        i = (u[:, -1] * len(self.kept.sample)).long()
        j = walk(self.kept.neighbours, i, u[:, : 1 + most])
        j = torch.where(u[:, -2] < batch.done, i, j)  # two views of one image are always a right pair
        x = torch.cat([self.encoder.seen(self.kept.sample[ends], batch.rng) for ends in (i, j)])
        f = self.module["norm"](self.module["backbone"](x))
        p, q = torch.split(self.classifiers(f), rows, dim=1)
        mean = parallel.mean(((p + q) / 2).mean(1, keepdim=True).detach(), rows, n)
        loss = parallel.mean(-pair_likelihood(p, q, mean, wrong=WRONG).mean(), rows, n)
        both = parallel.gather(((p + q) / 2)[self.classifiers.best].detach(), n)
        return {"loss": loss, **assigned(both)}

    @torch.no_grad()
    def partitions(self, f: Tensor, fixed: Fixed) -> Tensor:
        """What the classifiers make of features (n_init, n), those first that explain the graph best."""
        found = clusters(self.classifiers, self.module["norm"].eval()(f))
        worth = torch.stack([fixed.worth(one, self.settings.n_clusters, fixed.steps) for one in found])
        return found[worth.argsort(descending=True, stable=True)]

    def summary(self, record: Record, history: list[Record]) -> Record:
        return examine(record, history, LATER, REMEDIES)  # clusters that classifiers lack here are found afterwards


def fit_images(network: Network, views: Views, data: Data, settings: Any, context: Context) -> list[Record]:
    """Cluster images after a pretext: classifiers on its features, network and classifiers, classifiers once more."""
    encoder = Encoder(network, views, data, settings, context)
    found, _, axes, history = encoder.classify("starts", IMAGE_FORMS)
    start = GAIN * torch.einsum("de,hek->hdk", axes.directions, found.weight.detach())
    stage = NetworkTraining(encoder, start, found.bias.detach(), found.best, settings)
    history += train(stage, stage.data, settings.plan, context, stage.prepare)
    last, fixed, axes, records = encoder.classify("choice", taught=stage)
    history += records
    last, records = encoder.trained("agreement", rearrange(agreed(last, fixed), fixed), fixed)
    encoder.fold(last, axes)
    return history + records
