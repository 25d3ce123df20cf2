"""LSD-C with pairs from a neighbour graph of all samples: many linear classifiers on features that stay as they are."""

import warnings
from typing import Any

import torch
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor, nn

from lsdc import parallel
from lsdc.data.sampler import Batch, draw
from lsdc.data.sources import Data
from lsdc.functional import graph_information, nearest, walk
from lsdc.methods.deep import CHUNK, assigned
from lsdc.nn.classifiers import FORMS, IMAGE_FORMS, Classifiers
from lsdc.nn.network import Network
from lsdc.training.health import Record, examine
from lsdc.training.loop import Context, train
from lsdc.training.plan import Plan
from lsdc.training.rng import derive, generator

EPOCH = 10_240  # pairs at least, so that small data has no epochs of one step
SAMPLES = 20_000  # among which a graph is made: classifiers need no more, and any data takes the same time
MOMENTUM = 0.9  # of the mean prediction
KMEANS_SAMPLES = 5_000
ENTROPY = 0.8  # its weight when classifiers are compared: with 1 halves of a large cluster beat a small one of its own
CLASSIFIERS = Plan(epochs=20, batch_size=512, optimizer="adam", lr=3e-2, weight_decay=0.0, schedule="cosine")
LATER = 10**9  # nothing is warned of in the first half: what starts lack is still to come
REMEDIES = {"collapsed": "a larger n_init, or neighbours='batch'", "dead": "a larger n_init, or another random_state"}


@torch.no_grad()
def choose(classifiers: Classifiers, f: Tensor, neighbours: Tensor) -> Record:
    """Keep the classifier whose clusters explain the graph best; no label has a part in it."""
    clusters = torch.cat([classifiers(part).argmax(2) for part in torch.split(f, CHUNK)], 1)
    explained = [graph_information(neighbours, one, classifiers.mean.shape[2], ENTROPY) for one in clusters]
    classifiers.best.copy_(torch.stack(explained).argmax())
    best = int(classifiers.best)
    p = torch.cat([classifiers(part)[best] for part in torch.split(f, CHUNK)])
    found: Record = {name: value.tolist() for name, value in assigned(p).items()}
    return {**found, "information": float(explained[best])}


def starts(f: Tensor, n_init: int, n_clusters: int, seed: int) -> Tensor:
    """Where classifiers begin (n_init, D, K): four at random, four at the centres of a K-means, and so on."""
    result = torch.randn(n_init, f.shape[1], n_clusters, generator=generator(seed, "classifiers"))
    result *= 0.5 / f.shape[1] ** 0.5
    some = f[torch.randperm(len(f), generator=generator(seed, "kmeans sample"))[:KMEANS_SAMPLES]].cpu().numpy()
    for i in range(n_init):
        if i // 4 % 2:  # each form of likelihood has both kinds of start
            with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):  # copies of few samples
                found = KMeans(n_clusters, n_init=1, random_state=derive(seed, "kmeans", i) % 2**32).fit(some)
            centres = torch.from_numpy(found.cluster_centers_.T.copy()).to(f.dtype)
            centres = centres - centres.mean(1, keepdim=True)
            result[i] = centres / centres.norm(dim=0).mean().clamp(min=1e-6)
    return result


def sample(n: int, seed: int, *place: str | int) -> Tensor:
    """Some of ``n`` samples, as many as a graph is made of, in order."""
    return torch.randperm(n, generator=generator(seed, *place))[:SAMPLES].sort().values


def pairs_of_an_epoch(n: int) -> int:
    """How many samples an epoch begins walks at: all that the graph holds, small sets several times."""
    return max(EPOCH, min(n, SAMPLES))


class Pairs:
    """What the epoch loop asks of data, where a step draws its samples itself and only their number counts."""

    def __init__(self, n: int) -> None:
        self.n = n

    def __len__(self) -> int:
        return self.n

    def batch(self, indices: Tensor) -> Tensor:
        """A place holder for each pair."""
        return torch.empty(len(indices))


class ClassifierTraining:
    """Classifiers on features (n, D) that stay as they are: what short walks on their graph join becomes likely.

    With ``views`` (V, n, D), features of augmented samples, both ends of a walk are seen in one of them.
    """

    def __init__(
        self, name: str, f: Tensor, neighbours: Tensor, settings: Any, seed: int, views: Tensor | None = None
    ) -> None:
        self.name, self.settings, self.plan = name, settings, settings.plan if views is None else CLASSIFIERS
        start = starts(f, settings.n_init, settings.n_clusters, seed)
        self.classifiers = Classifiers(start, forms=FORMS if views is None else IMAGE_FORMS)
        self.kept: Any = nn.Module()  # made again where a run goes on, so not in its checkpoints
        self.kept.register_buffer("features", f, persistent=False)
        self.kept.register_buffer("views", views, persistent=False)
        self.kept.register_buffer("neighbours", neighbours, persistent=False)
        self.module: nn.Module = nn.ModuleDict({"classifiers": self.classifiers, "kept": self.kept})
        self.data = Pairs(pairs_of_an_epoch(len(f)))

    def seen(self, i: Tensor, rng: torch.Generator) -> Tensor:
        """Features of samples, each in a view of its own if there are views."""
        f: Tensor = self.kept.features[i]
        if self.kept.views is not None:
            u = draw(torch.rand, (len(i),), rng).to(i.device)
            f = self.kept.views[(u * len(self.kept.views)).long(), i]
        return f

    def losses(self, batch: Batch) -> dict[str, Tensor]:
        most, n, f = self.settings.walk, len(batch.indices), self.kept.features
        i = (parallel.own(batch.indices, n) % len(f)).to(f.device)
        j = walk(self.kept.neighbours, i, draw(torch.rand, (len(i), 1 + most), batch.rng).to(f.device))
        p, q = (self.classifiers(self.seen(ends, batch.rng)) for ends in (i, j))
        mean = parallel.mean(((p + q) / 2).mean(1, keepdim=True).detach(), len(i), n)
        self.classifiers.mean.lerp_(mean, 1 - MOMENTUM)
        losses = parallel.mean(-self.classifiers.likelihood(p, q, self.classifiers.mean.clone()).mean(1), len(i), n)
        return {"loss": losses.mean()}

    def summary(self, record: Record, history: list[Record]) -> Record:
        found = choose(self.classifiers, self.kept.features, self.kept.neighbours)
        epochs = LATER if self.name == "starts" else self.plan.epochs
        return found | examine({**record, **found}, history, epochs, REMEDIES)


def fit_vectors(network: Network, data: Data, settings: Any, context: Context) -> list[Record]:
    """Cluster vectors that are good features already: their leading directions, and classifiers on them."""
    x = data.batch(sample(len(data), context.seed, "graph sample"))
    directions: Any = network.backbone.stages[0]
    directions.fit(x, -data.spec.offset / data.spec.scale, derive(context.seed, "directions"))
    parallel.spread(list(directions.buffers()))  # rounding must not part the processes
    with torch.no_grad():
        f = network.backbone(x)
        neighbours = nearest(directions.compared(x), min(settings.k, len(f) - 1), "l2").indices
    stage = ClassifierTraining("clustering", f, neighbours, settings, context.seed)
    history = train(stage, stage.data, settings.plan, context)
    head: Any = network.head
    weight, bias = stage.classifiers.linear()
    with torch.no_grad():
        head.weight.copy_(weight.T)
        head.bias.copy_(bias)
    return history
