"""LSD-C on features that stay as they are: pairs from a graph of all samples, many linear classifiers at once."""

import warnings
from typing import Any

import torch
from pydantic import Field, PositiveInt
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor, nn

from lsdc import parallel
from lsdc.data.sampler import Batch, draw
from lsdc.data.sources import Data
from lsdc.functional import graph_information, nearest, pair_likelihood, walk
from lsdc.methods.deep import assigned
from lsdc.nn.network import Network
from lsdc.training.health import Record, examine
from lsdc.training.loop import Context
from lsdc.training.plan import Frozen
from lsdc.training.rng import derive, generator

EPOCH = 10_240  # pairs at least, so that small data has no epochs of one step
SAMPLES = 20_000  # among which the graph is made: linear classifiers need no more, and any data takes the same time
GAIN = 10.0  # of logits, as features have length one
MOMENTUM = 0.9  # of the mean prediction
POWERS = (0.6, 1.0)  # in turn: a doubtful classifier finds its way, a sure one splits no large cluster
KMEANS_SAMPLES = 5_000
REMEDIES = {"collapsed": "a larger n_init, or neighbours='batch'", "dead": "a larger n_init, or another random_state"}


class Graph(Frozen):
    """The neighbour graph, the walks on it, and how many classifiers are trained on them."""

    k: PositiveInt
    walk: PositiveInt = Field(3, le=1000)
    n_init: int = Field(ge=1, le=10_000)


class Classifiers(nn.Module):
    """Linear classifiers from different starts (n_init, D, K), side by side; ``best`` is the one to keep."""

    mean: Tensor
    best: Tensor
    power: Tensor

    def __init__(self, start: Tensor) -> None:
        super().__init__()
        n_init, _, n_clusters = start.shape
        self.weight = nn.Parameter(start)
        self.bias = nn.Parameter(torch.zeros(n_init, 1, n_clusters))
        self.register_buffer("mean", torch.full((n_init, 1, n_clusters), 1 / n_clusters))
        self.register_buffer("best", torch.zeros((), dtype=torch.long))
        power = torch.tensor(POWERS)[torch.arange(n_init) % len(POWERS)]
        self.register_buffer("power", power[:, None, None], persistent=False)

    def forward(self, f: Tensor) -> Tensor:
        """Probabilities (n_init, N, K)."""
        return (GAIN * (f @ self.weight) + self.bias).softmax(2)

    def linear(self) -> tuple[Tensor, Tensor]:
        """Weight (K, D) and bias (K,) of the best one."""
        return GAIN * self.weight[self.best].T, self.bias[self.best, 0]


def starts(f: Tensor, n_init: int, n_clusters: int, seed: int) -> Tensor:
    """Where classifiers begin (n_init, D, K): two at random, two at the centres of a K-means, and so on."""
    result = torch.randn(n_init, f.shape[1], n_clusters, generator=generator(seed, "classifiers"))
    result *= 0.5 / f.shape[1] ** 0.5
    some = f[torch.randperm(len(f), generator=generator(seed, "kmeans sample"))[:KMEANS_SAMPLES]].numpy()
    for i in range(n_init):
        if i % 4 >= 2:
            with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):  # copies of few samples
                found = KMeans(n_clusters, n_init=1, random_state=derive(seed, "kmeans", i) % 2**32).fit(some)
            centres = torch.from_numpy(found.cluster_centers_.T.copy()).to(f.dtype)
            centres = centres - centres.mean(1, keepdim=True)
            result[i] = centres / centres.norm(dim=0).mean().clamp(min=1e-6)
    return result


def pairs_of_an_epoch(n: int) -> int:
    """How many samples an epoch begins walks at: all that the graph holds, small sets several times."""
    return max(EPOCH, min(n, SAMPLES))


class Rows:
    """What the epoch loop asks of data, where all that a step needs is which samples it is about."""

    def __init__(self, n: int) -> None:
        self.n = n

    def __len__(self) -> int:
        return self.n

    def batch(self, indices: Tensor) -> Tensor:
        """A place holder for each sample."""
        return torch.empty(len(indices))


class GraphClustering:
    """Pairs that short walks on the neighbour graph join are made likely by every classifier; the best is kept."""

    name = "clustering"

    def __init__(self, network: Network, data: Data, settings: Any, context: Context) -> None:
        self.settings, self.network = settings, network
        graph: Graph = settings.graph
        seed = context.seed
        order = torch.randperm(len(data), generator=generator(seed, "graph sample"))
        x = data.batch(order[:SAMPLES].sort().values)
        directions: Any = network.backbone.stages[0]
        directions.fit(x, -data.spec.offset / data.spec.scale, derive(seed, "directions"))
        with torch.no_grad():
            f = network.backbone(x)
        self.classifiers = Classifiers(starts(f, graph.n_init, settings.n_clusters, seed))
        self.kept: Any = nn.Module()  # made again where a run goes on, so not in its checkpoints
        self.kept.register_buffer("features", f, persistent=False)
        links = nearest(f, min(graph.k, len(f) - 1), "l2").indices
        self.kept.register_buffer("neighbours", links, persistent=False)
        modules = {"network": network, "classifiers": self.classifiers, "kept": self.kept}
        self.module: nn.Module = nn.ModuleDict(modules)
        self.data = Rows(pairs_of_an_epoch(len(data)))

    def losses(self, batch: Batch) -> dict[str, Tensor]:
        graph, n, f = self.settings.graph, len(batch.indices), self.kept.features
        i = (parallel.own(batch.indices, n) % len(f)).to(f.device)
        u = draw(torch.rand, (len(i), 1 + graph.walk), batch.rng).to(f.device)
        j = walk(self.kept.neighbours, i, u)
        p, q = self.classifiers(f[i]), self.classifiers(f[j])
        mean = parallel.mean(((p + q) / 2).mean(1, keepdim=True).detach(), len(i), n)
        self.classifiers.mean.lerp_(mean, 1 - MOMENTUM)
        likelihood = pair_likelihood(p, q, self.classifiers.mean.clone(), self.classifiers.power)
        losses = parallel.mean(-likelihood.mean(1), len(i), n)
        return {"loss": losses.mean()}

    @torch.no_grad()
    def summary(self, record: Record, history: list[Record]) -> Record:
        """Choose the classifier whose clusters explain the graph best; no label has a part in it."""
        p, links = self.classifiers(self.kept.features), self.kept.neighbours
        explained = [graph_information(links, one.argmax(1), one.shape[1]) for one in p]
        self.classifiers.best.copy_(torch.stack(explained).argmax())
        best = int(self.classifiers.best)
        found: Record = {name: value.tolist() for name, value in assigned(p[best]).items()}
        found["information"] = float(explained[best])
        return found | examine({**record, **found}, history, self.settings.plan.epochs, REMEDIES)

    @torch.no_grad()
    def finish(self) -> None:
        """Give the network the best classifier."""
        head: Any = self.network.head
        for mine, kept in zip((head.weight, head.bias), self.classifiers.linear(), strict=True):
            mine.copy_(kept)
