"""LSD-C with pairs from a neighbour graph of all samples: many linear classifiers, their starts, and the choice."""

import warnings
from typing import Any

import torch
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import normalize
from torch import Tensor, nn

from lsdc import parallel
from lsdc.data.sampler import Batch, draw
from lsdc.data.sources import Data, flat
from lsdc.functional import graph_information, merged, nearest, rearranged, views_joint, walk, walk_joint
from lsdc.functional.graph import joint_information
from lsdc.methods.deep import CHUNK, assigned
from lsdc.methods.documents import decide_by_words
from lsdc.nn.backbone import Backbone
from lsdc.nn.classifiers import FORMS, Classifiers
from lsdc.nn.network import Network
from lsdc.nn.patches import N_FITTED
from lsdc.nn.projection import Topics, Waves, Words
from lsdc.training.context import Context
from lsdc.training.health import Record, examine
from lsdc.training.loop import train
from lsdc.training.plan import Plan
from lsdc.training.rng import derive, generator

EPOCH = 10_240  # pairs at least, so that small data has no epochs of one step
NEIGHBOURS = 10  # of a sample in the graph, if clusters are large enough
SAMPLES = 20_000  # among which a graph is made: classifiers need no more, and any data takes the same time
MOMENTUM = 0.9  # of the mean prediction
KMEANS_SAMPLES = 5_000
MOST_SMALL = 200  # clusters to merge: the time grows with the cube
# per nat of entropy when classifiers are compared: at 0, splitting a large cluster would beat finding a small one
PRICE = 0.2
CLASSIFIERS = Plan(epochs=20, batch_size=512, optimizer="adam", lr=3e-2, weight_decay=0.0, schedule="cosine")
# steps over which classifiers are compared; with few features per sample, a cut through a group crosses few links
SHORT_WALK, LONG_WALK = 3, 50
NEARLY = 0.95  # of the best explanation: sizes are taken to be even where the data does not object
LATER = 10**9  # no warnings in the first half: clusters that starts lack may still appear
REMEDIES = {"collapsed": "a larger n_init, or neighbours='batch'", "dead": "a larger n_init, or another random_state"}


class Fixed(nn.Module):
    """Features (n, D) that stay as they are, their graph, and views (V, n, D) of them if there are any.

    Recomputed when a run is resumed, so it is not in a checkpoint.
    """

    features: Tensor
    neighbours: Tensor
    views: Tensor | None

    def __init__(self, f: Tensor, neighbours: Tensor, views: Tensor | None = None, few: bool = False) -> None:
        super().__init__()
        self.register_buffer("features", f, persistent=False)
        self.register_buffer("neighbours", neighbours, persistent=False)
        self.register_buffer("views", views, persistent=False)
        self.few, self.steps = few, LONG_WALK if few else SHORT_WALK

    @torch.no_grad()
    def explained(self, classifiers: Classifiers, steps: int) -> Tensor:
        """How well the clusters of each classifier explain the data (n_init,); no label has a part in it.

        Where there are views, good clusters tell from one view of a sample in which another one will be (decision 93);
        else, from one end of a walk where it leads.
        """
        n_clusters = classifiers.n_clusters
        if self.views is None:
            return torch.stack([self.worth(one, n_clusters, steps) for one in clusters(classifiers, self.features)])
        seen = torch.stack([clusters(classifiers, view) for view in self.views], 1)
        return torch.stack([joint_information(views_joint(one, n_clusters), PRICE) for one in seen])

    def worth(self, labels: Tensor, n_clusters: int, steps: int) -> Tensor:
        """How well clusters explain the graph: the mutual information of a walk's ends, minus the price of clusters."""
        shares = torch.bincount(labels, minlength=n_clusters).double() / len(labels)
        entropy: Tensor = torch.special.entr(shares).sum()
        return graph_information(self.neighbours, labels, n_clusters, steps) - PRICE * entropy

    @torch.no_grad()
    def choose(self, classifiers: Classifiers, steps: int) -> float:
        """Keep the classifier whose clusters explain the data best, or one that expects even sizes and nearly does."""
        found = self.explained(classifiers, steps)
        best = int(found.argmax())
        even = found.clone()
        even[torch.arange(len(found), device=found.device) % len(classifiers.forms) > 0] = -torch.inf
        if not self.few and even.max() >= NEARLY * found[best] > 0:
            best = int(even.argmax())
        classifiers.best.fill_(best)
        return float(found[best])


def clusters(classifiers: Classifiers, f: Tensor) -> Tensor:
    """The cluster of each sample by each classifier (n_init, n)."""
    return torch.cat([classifiers(part).argmax(2) for part in torch.split(f, CHUNK)], 1)


def starts(
    f: Tensor, n_init: int, n_clusters: int, seed: int, few: bool = False, graph: Tensor | None = None
) -> Tensor:
    """Where classifiers begin (n_init, D, K): each at the centres of a K-means of its own, on some of the samples.

    Random weights end in worse clusters (documents and embeddings: 4 to 15 points of ACC on average), but where samples
    have few numbers, the first four of every eight starts are random: K-means cuts two moons in the same wrong way each
    time. With a graph, these are merged from small clusters instead.
    """
    result = torch.randn(n_init, f.shape[1], n_clusters, generator=generator(seed, "classifiers"))
    result *= 0.5 / f.shape[1] ** 0.5
    for i in range(n_init):
        is_special = i // len(FORMS) % 2 == 0  # each form of the loss has both kinds of start
        if few and is_special:
            continue
        some = f[torch.randperm(len(f), generator=generator(seed, "kmeans sample", i))[:KMEANS_SAMPLES]].cpu()
        n = small_clusters(len(some), n_clusters) if graph is not None and is_special else n_clusters
        with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):  # copies of few samples
            found = KMeans(n, n_init=1, random_state=derive(seed, "kmeans", i) % 2**32).fit(some.numpy())
        centres = torch.from_numpy(found.cluster_centers_).to(f)
        if graph is not None and n > n_clusters:
            centres = merged_centres(f, centres, n_clusters, graph)
        result[i] = towards(centres)
    return result.to(f.device)


def small_clusters(n: int, n_clusters: int) -> int:
    """How many small clusters are merged into ``n_clusters``: ten for each, if they have ten samples on average."""
    return max(n_clusters, min(10 * n_clusters, MOST_SMALL, n // 10))


def merged_centres(f: Tensor, centres: Tensor, n_clusters: int, graph: Tensor) -> Tensor:
    """Centres (K, D) of clusters that are merged from small ones (M, D), so that they explain the graph best.

    K-means puts its few centres where samples are dense and halves a large group; small clusters hardly ever cross a
    border, and the graph tells which of them belong together (decision 88).
    """
    small = torch.cat([torch.cdist(part, centres).argmin(1) for part in torch.split(f, CHUNK)])
    joint = walk_joint(graph.cpu(), small.cpu(), len(centres), SHORT_WALK)
    labels = merged(joint, n_clusters, PRICE).to(f.device)[small]
    return means(f, labels, n_clusters)


def means(f: Tensor, labels: Tensor, n_clusters: int) -> Tensor:
    """The mean of each cluster (K, D); that of an empty one is 0."""
    member = nn.functional.one_hot(labels, n_clusters).to(f.dtype)
    return member.T @ f / member.sum(0).clamp(min=1)[:, None]


def towards(centres: Tensor) -> Tensor:
    """Weights (D, K) of a classifier that begins at the centres of clusters (K, D)."""
    centres = centres - centres.mean(0)
    weights: Tensor = centres.T / centres.norm(dim=1).mean().clamp(min=1e-6)
    return weights


def graph_neighbours(n: int, n_clusters: int) -> int:
    """How many neighbours a sample has in the graph: at most a quarter of an even cluster.

    More would join samples of all clusters where these are small: 60 samples of six groups were half right with ten.
    """
    return max(1, min(NEIGHBOURS, n // (4 * n_clusters)))


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
    """Classifiers on fixed features: what short walks on their graph join becomes likely.

    Where there are views of the samples, both ends of a walk are seen in one of them.
    """

    def __init__(self, name: str, classifiers: Classifiers, fixed: Fixed, settings: Any, plan: Plan) -> None:
        self.name, self.settings, self.plan = name, settings, plan
        self.classifiers, self.fixed = classifiers, fixed
        self.module: nn.Module = nn.ModuleDict({"classifiers": classifiers, "fixed": fixed})
        self.data = Pairs(pairs_of_an_epoch(len(fixed.features)))

    def seen(self, i: Tensor, rng: torch.Generator) -> Tensor:
        """Features of samples, each in a view of its own if there are views."""
        if self.fixed.views is None:
            return self.fixed.features[i]
        u = draw(torch.rand, (len(i),), rng).to(i.device)
        return self.fixed.views[(u * len(self.fixed.views)).long(), i]

    def losses(self, batch: Batch) -> dict[str, Tensor]:
        most, n, f = self.settings.walk, len(batch.indices), self.fixed.features
        i = (parallel.own(batch.indices, n) % len(f)).to(f.device)
        j = walk(self.fixed.neighbours, i, draw(torch.rand, (len(i), 1 + most), batch.rng).to(f.device))
        p, q = (self.classifiers(self.seen(ends, batch.rng)) for ends in (i, j))
        mean = parallel.mean(((p + q) / 2).mean(1, keepdim=True).detach(), len(i), n)
        self.classifiers.mean.lerp_(mean, 1 - MOMENTUM)
        losses = parallel.mean(-self.classifiers.likelihood(p, q, self.classifiers.mean.clone()).mean(1), len(i), n)
        return {"loss": losses.mean()}

    def summary(self, record: Record, history: list[Record]) -> Record:
        is_last = record["epoch"] == self.plan.epochs
        chosen = {"information": self.fixed.choose(self.classifiers, self.fixed.steps)} if is_last else {}
        found = {**self.assigned(), **chosen}
        epochs = LATER if self.name.startswith(("starts", "choice")) else self.plan.epochs
        # before the end it is not known which to keep
        return found | examine({**record, **found}, [], epochs, REMEDIES)

    @torch.no_grad()
    def assigned(self) -> Record:
        """Shares and confidence of the classifier to keep: the first one, until all are compared in the end."""
        parts = torch.split(self.fixed.features, CHUNK)
        p = torch.cat([self.classifiers(part)[self.classifiers.best] for part in parts])
        return {name: value.tolist() for name, value in assigned(p).items()}


def agreed(classifiers: Classifiers, fixed: Fixed) -> Classifiers:
    """Classifiers that begin where most of the better half of others agree, one in each form of the loss.

    The agreement differs less from seed to seed than any of those it is made of: of digits it is 0.94 right where the
    best explanation of the graph among the starts is 0.89. Where samples have few numbers starts agree on little, and
    the best of them is taken along.
    """
    order = fixed.explained(classifiers, fixed.steps).argsort(descending=True, stable=True)
    better = classifiers.agreeing(fixed.features, order[: max(1, len(order) // 2)])
    found = [classifiers.agreement(fixed.features, some) for some in (better, *([order[:1]] if fixed.few else []))]
    weight, bias = (
        torch.stack(parts).repeat_interleave(len(classifiers.forms), 0) for parts in zip(*found, strict=True)
    )
    parallel.spread([weight, bias])  # rounding must not part the processes
    result = Classifiers(weight, forms=classifiers.forms, wrong=classifiers.wrong)
    result.bias.data.copy_(bias)
    return result


@torch.no_grad()
def rearrange(classifiers: Classifiers, fixed: Fixed) -> Classifiers:
    """The classifiers and, where joining two clusters and dividing a third explains the graph better, as many others.

    Training moves borders, never a whole cluster: images of digits whose 0 is halved while 4 and 9 share a cluster stay
    so from nearly every start, though the graph tells (decision 84). Nor does every move survive training, so both are
    trained (decision 93).
    """
    n_clusters, f, old = classifiers.n_clusters, fixed.features, classifiers.weight.detach()
    before = clusters(classifiers, f)[0]
    parallel.spread([before])  # processes must not disagree on whether to move
    labels = rearranged(fixed.neighbours, before, n_clusters, fixed.steps, PRICE).to(f.device)
    if labels.equal(before):
        return classifiers
    start = torch.cat([old, towards(means(f, labels, n_clusters)).expand_as(old)])
    parallel.spread([start])
    both = Classifiers(start, forms=classifiers.forms, wrong=classifiers.wrong)
    both.bias.data[: len(old)].copy_(classifiers.bias.data)
    return both


@torch.no_grad()
def fit_backbone(backbone: Backbone, data: Data, rows: Tensor, k: int, seed: int) -> tuple[Tensor, Tensor]:
    """Fit a backbone without gradients: the features of ``rows``, and ``k`` neighbours of each.

    Documents stay sparse, as they may have more words than memory has room for, and images are read a block at a time.
    """
    *patches, directions = list(backbone.stages)
    origin, blocks = -data.spec.offset / data.spec.scale, torch.split(rows, CHUNK)
    if patches:
        some = rows[torch.randperm(len(rows), generator=generator(seed, "images"))[:N_FITTED]].sort().values
        fit_stage(patches[0], data.batch(some), origin, seed)
        x = torch.cat([patches[0](data.batch(block)) for block in blocks])
        origin, shown = x.new_zeros(x.shape[1]), [x]
    elif isinstance(directions, Topics | Words):
        x, shown = flat(data)[rows.numpy()], [data.batch(block) for block in blocks]
    else:
        x = data.batch(rows)
        shown = [x]
    compared = fit_stage(directions, x, origin, seed)
    return torch.cat([directions(block) for block in shown]), nearest(compared, k, "l2").indices


def fit_stage(stage: Any, x: Any, origin: Tensor, seed: int) -> Any:
    """Fit a stage to some samples, in all processes alike: rounding must not part them."""
    compared = stage.fit(x, origin, seed)
    parallel.spread(list(stage.buffers()))
    return compared


def fit_fixed(network: Network, data: Data, settings: Any, context: Context) -> list[Record]:
    """Cluster by features that need no training: leading directions of what there is, and classifiers on them."""
    rows = sample(len(data), context.seed, "graph sample")
    k, few = min(settings.k, len(rows) - 1), isinstance(network.backbone.stages[-1], Waves)
    fixed = Fixed(*fit_backbone(network.backbone, data, rows, k, derive(context.seed, "directions")), few=few)
    start = starts(fixed.features, settings.n_init, settings.n_clusters, context.seed, few)
    # samples of few numbers have hardly a wrong neighbour, and split pairs are what a random start learns from
    first = Classifiers(start, wrong=0.0) if few else Classifiers(start)
    stage = ClassifierTraining("starts", first, fixed, settings, settings.plan)
    history = train(stage, stage.data, stage.plan, context)
    stage = ClassifierTraining("clustering", agreed(first, fixed), fixed, settings, settings.plan)
    history += train(stage, stage.data, stage.plan, context)
    head: Any = network.head
    weight, bias = stage.classifiers.linear()
    with torch.no_grad():
        head.weight.copy_(weight.T)
        head.bias.copy_(bias)
    if isinstance(network.backbone.stages[-1], Words):
        labels = clusters(stage.classifiers, fixed.features)[stage.classifiers.best]
        decide_by_words(network, labels.cpu(), normalize(flat(data)[rows.numpy()]))
    return history
