"""LSD-C: linearly separable deep clusters. The training step is the paper's sections 3.2 to 3.4 on one screen."""

from functools import partial
from typing import Any

import numpy as np
import torch
from sklearn.decomposition import TruncatedSVD
from torch import Tensor, nn

from lsdc.data.augment import Views
from lsdc.data.sampler import Batch
from lsdc.data.sources import Data, flat
from lsdc.functional import (
    COMPOSITIONS,
    balance_loss,
    consistency_loss,
    mix_targets,
    none,
    pair_loss,
    positive_weight,
    rampup,
)
from lsdc.methods.deep import assigned, build_backbone, part, pretrain, views_of
from lsdc.methods.graph import fit_vectors
from lsdc.methods.graph_network import fit_images
from lsdc.methods.memory import Memory
from lsdc.methods.settings import Settings, bind_similarity, maturity, resolve, stored, with_functions
from lsdc.methods.trained import NetworkEstimator
from lsdc.nn.network import HEADS, Network, seeded
from lsdc.parallel import gather, own, spread
from lsdc.pretext import PRETEXTS
from lsdc.training.health import Record, examine
from lsdc.training.loop import Context, train
from lsdc.training.rng import derive

REMEDIES = {
    "collapsed": "a smaller lr or weight_decay, a larger balance, or another pretext",
    "dead": "a larger balance, neighbours (the setting k) nearer to pool / n_clusters, or another random_state",
}
N_DIRECTIONS = 20  # of the inputs, for space="inputs" (decision 32)


class Clustering:
    """The objective of the clustering stage (section 3.4)."""

    name = "clustering"

    def __init__(
        self,
        network: Network,
        views: Views,
        similarity: Any,
        composition: Any,
        settings: Settings,
        directions: Tensor | None = None,
    ) -> None:
        labelling = settings.labelling
        self.directions = directions
        self.settings, self.network, self.views = settings, network, views
        self.similarity = bind_similarity(similarity, labelling, settings.n_clusters)
        self.compose = part("composition", composition, COMPOSITIONS)
        n_values = network.backbone.n_features if labelling.space == "features" else settings.n_clusters
        n_values = n_values if directions is None else directions.shape[1]
        self.memory = Memory(max(0, labelling.pool - settings.plan.batch_size), n_values)
        self.module: nn.Module = nn.ModuleDict({"network": network, "memory": self.memory})

    def losses(self, batch: Batch) -> dict[str, Tensor]:
        net, rng, n = self.network, batch.rng, len(batch.indices)
        x, x1, x2 = self.views.plain(batch.x), self.views.augment(batch.x, rng), self.views.augment(batch.x, rng)
        f, logits, p = net(x)
        everyone = gather(f.detach(), n)
        A = self.label(self.compared(x, everyone, logits.detach(), n), batch)
        (x1, x2), sigma, w = self.composed((x1, x2), batch)
        p1 = net(x1).p
        p2 = net(x2).p if self.settings.consistency else p1
        p, p1, p2 = gather(p, n), gather(p1, n), gather(p2, n)
        Y = mix_targets(A, sigma, w)
        pair = pair_loss(p, p1, Y, positive_weight(Y, self.settings.n_clusters) if self.settings.weighted else 1.0)
        consistency = consistency_loss(p1, p2)
        omega = rampup(batch.t, self.settings.rampup, self.settings.consistency)
        balance = self.settings.balance * (1 - maturity(batch.t / self.settings.plan.epochs))
        loss = pair + omega * consistency + balance * balance_loss(p)
        return {"loss": loss, "pair": pair, "consistency": consistency, **watched(everyone, p, A)}

    def composed(self, views: tuple[Tensor, ...], batch: Batch) -> tuple[tuple[Tensor, ...], Tensor, Tensor]:
        """Composed samples of the whole batch, of which each process goes on with its rows."""
        n = len(batch.indices)
        if self.compose is none:  # nothing of the others is needed
            return views, *none((batch.x.new_empty(n),), batch.rng)[1:]
        views, sigma, w = self.compose(tuple(gather(x, n) for x in views), batch.rng)
        return tuple(own(x, n) for x in views), sigma, w

    def compared(self, x: Tensor, everyone: Tensor, logits: Tensor, n: int) -> Tensor:
        """Where neighbours are looked for: features, predictions, or the inputs' leading directions by angle."""
        if self.directions is not None:
            return gather(nn.functional.normalize(x @ self.directions.to(x.device), dim=1), n)
        return everyone if self.settings.labelling.space == "features" else gather(logits, n)

    def label(self, f: Tensor, batch: Batch) -> Tensor:
        """A of the batch, its neighbours chosen among the batch and the samples remembered from before."""
        ids = batch.indices.to(f.device)
        A = self.similarity(self.memory.pooled(f, ids), len(f), batch.t / self.settings.plan.epochs)
        self.memory.store(f, ids)
        return A

    def summary(self, record: Record, history: list[Record]) -> Record:
        return examine(record, history, self.settings.plan.epochs, REMEDIES)


def leading_directions(data: Data, seed: int) -> Tensor:
    """The leading singular directions (d, 20) of the inputs: latent semantic analysis, if they are documents."""
    n = min(N_DIRECTIONS, data.spec.shape[0], len(data))
    svd = TruncatedSVD(n, random_state=derive(seed, "directions") % 2**32).fit(flat(data))
    return torch.from_numpy(svd.components_.T.astype(np.float32))


@torch.no_grad()
def watched(f: Tensor, p: Tensor, A: Tensor) -> dict[str, Tensor]:
    """What the health checks look at: cluster shares, confidence, density of A, spread of the features."""
    spread = f.var(0, correction=0).sum() / f.square().sum(1).mean().clamp(min=1e-30)
    return {
        **assigned(p),
        "density": A.mean(),
        "spread": spread.sqrt(),
        "scale": f.var(0, correction=0).sum().sqrt(),
    }


class LSDC(NetworkEstimator):
    """Group samples into linearly separable clusters of learned features.

    Parameters
    ----------
    n_clusters : int or "auto"
        The number of clusters K; "auto" counts them first (``lsdc.suggest_k``).
    neighbours : {"auto", "graph", "batch"}
        Where pairs come from: short walks on a neighbour graph of all samples, or labels made within each batch, as in
        the paper. "auto" is the graph for images and for dense vectors of 32 numbers or more, unless a parameter that
        only has a meaning in batches is changed; for vectors, the network's parameters are among these.
    n_init : int or "auto"
        With the graph: classifiers trained side by side from different starts ("auto": 20); the one whose clusters
        explain the graph best is kept.
    similarity : {"auto", "diffusion", "knn", "sne", "cosine", "l2"} or callable ``f -> A``
        How the pairwise labels are made.
    k : int or "auto"
        Neighbours of a sample: in the graph ("auto": 10), or in the pool, where "auto" grows from few and pure ones to
        most of N/K.
    tau, temperature : float
        Threshold of "sne", "cosine" and "l2", temperature of "sne". Without a threshold as many pairs are connected
        as kNN would connect.
    space : {"auto", "features", "predictions", "inputs"}
        Where samples are compared; "predictions" is the paper's ablation, "inputs" their 20 leading singular directions
        by angle, which suits sparse documents.
    pool : int
        Samples among which neighbours are chosen: the batch and the latest ones before it. 0 is the batch alone.
    composition : {"auto", "ricap", "mixup", "cutmix", "none"} or callable ``(views, rng) -> (views, sigma, w)``
        How composed samples are made.
    consistency, rampup : float
        Weight of the consistency term, and the epochs in which it grows to it; 0 is the ablation without it.
    weighted : bool
        Whether connected pairs are weighed as if every pair of a cluster were known; False is the paper.
    balance : float or "auto"
        Weight of an entropy term that favours clusters of equal size until they have formed; 0 is the paper.
    backbone : {"auto", "resnet18", "vgg4", "vgg6", "mlp", "mlp-norm", "coder"} or callable
        The network that makes features; a function ``(shape, width) -> Backbone``.
    width : float or "auto"
        Multiplies the network's channels.
    head : {"auto", "normed", "normed-logits", "linear", "two-layer"} or callable ``(n_features, n_clusters) -> Module``
        The classifier; all but the last are linear in the features.
    n_frozen : int or "auto"
        How many stages of the network stay as the pretext left them.
    pretext : {"auto", "rotnet", "autoencoder", "stacked", "contrastive", "none"} or callable
        Self-supervised pretraining; a function ``(backbone, views) -> objective``.
    pretext_plan : dict or None
        Changes to the pretext's training, e.g. ``{"epochs": 20, "lr": 0.01}``.
    augment : {"auto", "affine", "crop", "crop-flip", "colour", "window", "noise", "dropout", "none"} or callable
        How views of a sample are made; a function ``(x, rng) -> x`` of a whole batch.
    epochs : int or "auto"
        Passes over the data; with the graph of images, rounds of 150 steps, each on a graph of its own.
    batch_size, optimizer, lr, weight_decay, schedule, milestones, warmup
        The training of the clustering stage; milestones and warmup count epochs. With the graph, a batch counts pairs.
    random_state : int, RandomState or None
        The same number gives the same labels, to the bit, on the same machine (and threads).
    device : {"auto", "cpu", "cuda"}
        Where to compute.
    n_workers : int
        Threads that fetch batches ahead; any number gives the same result.

    Attributes
    ----------
    labels_ : array (n,)
        The cluster of each sample of X.
    n_clusters_ : int
        The number of clusters.
    suggestion_ : Suggestion
        How it was found, where ``n_clusters`` is "auto".
    history_ : list of dict
        One record an epoch: losses, clusters alive, density of A, confidence.
    n_features_in_ : int
        Values per sample.
    network_ : Network
        The trained network.
    settings_ : dict
        Every setting of the fit, with nothing left at "auto".
    """

    method = "lsdc"
    behaviour = 2
    settings = Settings

    def __init__(
        self,
        n_clusters: Any = 8,
        *,
        neighbours: str = "auto",
        n_init: Any = "auto",
        similarity: Any = "auto",
        k: Any = "auto",
        tau: float | None = None,
        temperature: float = 1.0,
        space: str = "auto",
        pool: int = 1024,
        composition: Any = "auto",
        consistency: float = 5.0,
        rampup: Any = "auto",
        weighted: bool = True,
        balance: Any = "auto",
        backbone: Any = "auto",
        width: Any = "auto",
        head: Any = "auto",
        n_frozen: Any = "auto",
        pretext: Any = "auto",
        pretext_plan: Any = None,
        augment: Any = "auto",
        epochs: Any = "auto",
        batch_size: Any = "auto",
        optimizer: str = "adam",
        lr: Any = "auto",
        weight_decay: float = 0.0,
        schedule: str = "cosine",
        milestones: Any = (),
        warmup: float = 0.0,
        random_state: Any = None,
        device: str = "auto",
        n_workers: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.neighbours = neighbours
        self.n_init = n_init
        self.similarity = similarity
        self.k = k
        self.tau = tau
        self.temperature = temperature
        self.space = space
        self.pool = pool
        self.composition = composition
        self.consistency = consistency
        self.rampup = rampup
        self.weighted = weighted
        self.balance = balance
        self.backbone = backbone
        self.width = width
        self.head = head
        self.n_frozen = n_frozen
        self.pretext = pretext
        self.pretext_plan = pretext_plan
        self.augment = augment
        self.epochs = epochs
        self.batch_size = batch_size
        self.optimizer = optimizer
        self.lr = lr
        self.weight_decay = weight_decay
        self.schedule = schedule
        self.milestones = milestones
        self.warmup = warmup
        self.random_state = random_state
        self.device = device
        self.n_workers = n_workers

    @classmethod
    def _checked_settings(cls, settings: dict[str, Any], shape: tuple[int, ...]) -> dict[str, Any]:
        return stored(settings, shape).model_dump(mode="json")

    def _check(self, shape: tuple[int, ...], n: int) -> None:
        super()._check(shape, n)
        resolve(with_functions(self.get_params()), shape, n)

    def resolved(self, shape: tuple[int, ...], n: int, sparse: bool = False) -> dict[str, Any]:
        return resolve(self.get_params(), shape, n, sparse).model_dump(mode="json")

    @classmethod
    def pretext_settings(cls, settings: dict[str, Any]) -> dict[str, Any]:
        return super().pretext_settings({**settings, **settings["architecture"]})

    def _settings(self, data: Data) -> dict[str, Any]:
        settings = Settings(**super()._settings(data))
        network, views = self._build(settings, seed=0)  # what cannot be built is refused before anything is written
        network.backbone.freeze(settings.architecture.n_frozen)
        pretext = part("pretext", self._part("pretext", settings.pretext), PRETEXTS)
        seeded(partial(pretext, network.backbone, views), seed=0)
        return settings.model_dump(mode="json")

    def _build(self, settings: Settings, seed: int) -> tuple[Network, Views]:
        architecture = settings.architecture
        views = views_of(self._part("augment", architecture.augment), self.spec_.shape)
        backbone = build_backbone(self._part("backbone", architecture.backbone), views, architecture.width, seed)
        head = part("head", self._part("head", architecture.head), HEADS)
        build = partial(head, backbone.n_features, settings.n_clusters)
        return Network(backbone, seeded(build, derive(seed, "head"))), views

    def _fit(self, data: Data, context: Context) -> None:
        settings = Settings(**self.settings_)
        network, views = self._build(settings, context.seed)
        pretext = self._part("pretext", settings.pretext)
        self.history_ = pretrain(network.backbone, pretext, settings.pretext_plan, views, data, context)
        network.backbone.freeze(settings.architecture.n_frozen)
        if settings.graph:
            if self.spec_.is_image:
                self.history_ += fit_images(network, views, data, settings, context)
            else:
                self.history_ += fit_vectors(network, data, settings, context)
            self.network_, self._views = network, views
            return
        composition = self._part("composition", settings.composition)
        similarity = self._part("similarity", settings.labelling.similarity)
        directions = leading_directions(data, context.seed) if settings.labelling.space == "inputs" else None
        spread([] if directions is None else [directions])
        objective = Clustering(network, views, similarity, composition, settings, directions)
        self.history_ += train(objective, data, settings.plan, context)
        self.network_, self._views = network, views
