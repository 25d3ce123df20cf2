"""LSD-C: linearly separable deep clusters. The training step is the paper's sections 3.2 to 3.4 on one screen."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from lsdc.data.augment import Views
from lsdc.data.sampler import Batch
from lsdc.data.sources import Data
from lsdc.functional import (
    COMPOSITIONS,
    SCORES,
    SIMILARITIES,
    balance_loss,
    closest,
    consistency_loss,
    knn,
    mix_targets,
    none,
    pair_loss,
    positive_weight,
    rampup,
)
from lsdc.methods.deep import UNFIT, DeepEstimator, DeepObjective, assigned
from lsdc.methods.graph import fit_fixed, pairs_of_an_epoch
from lsdc.methods.graph_network import fit_images, network_epochs
from lsdc.methods.lsdc_settings import Settings, completed, defaults
from lsdc.nn.backbone import Backbone
from lsdc.nn.heads import HEADS
from lsdc.nn.memory import Memory
from lsdc.nn.network import BACKBONES, FITTED, Network
from lsdc.nn.norm import frozen_statistics
from lsdc.nn.projection import Words
from lsdc.parallel import gather, own
from lsdc.training.context import Context
from lsdc.training.health import Record, examine

SHARES = (0.2, 0.8)  # an automatic k, as a share of N/K, for young and for mature clusters (decision 3)
IMAGES_BEHAVIOUR = 6  # classifiers are compared by views; what the network was taught with is a start, too
REMEDIES = {
    "collapsed": "a smaller lr or weight_decay, a larger balance, or another pretext",
    "dead": "a larger balance, neighbours (the setting k) nearer to pool / n_clusters, or another random_state",
}


class LSDCLoss(DeepObjective):
    """The pair loss with labels made within a batch, and the consistency of two composed views (section 3.4)."""

    network: Network
    parts = ("similarity", "composition")

    def __init__(
        self,
        network: Network,
        views: Views,
        settings: Settings,
        data: Data,
        context: Context,
        similarity: Any,
        composition: Any,
    ) -> None:
        super().__init__(network, views, settings, data, context)
        self.similarity = bind_similarity(similarity, settings)
        self.compose = composition if callable(composition) else COMPOSITIONS[composition]
        n_values = network.backbone.n_features if settings.space == "features" else settings.n_clusters
        self.memory = self.kept.memory = Memory(max(0, settings.pool - settings.plan.batch_size), n_values)

    def losses(self, batch: Batch) -> dict[str, Tensor]:
        net, rng, n = self.network, batch.rng, len(batch.indices)
        x, x1, x2 = self.views.plain(batch.x), self.views.augment(batch.x, rng), self.views.augment(batch.x, rng)
        f, logits, p = net(x)
        f = gather(f.detach(), n)
        A = self.label(f if self.settings.space == "features" else gather(logits.detach(), n), batch)
        (x1, x2), sigma, w = self.composed((x1, x2), batch)
        with frozen_statistics(net):  # evaluation will see plain samples only (decision 85)
            p1 = net(x1).p
            p2 = net(x2).p if self.settings.consistency else p1
        p, p1, p2 = gather(p, n), gather(p1, n), gather(p2, n)
        Y = mix_targets(A, sigma, w)
        pair = pair_loss(p, p1, Y, positive_weight(Y, self.settings.n_clusters) if self.settings.weighted else 1.0)
        consistency = consistency_loss(p1, p2)
        omega = rampup(batch.t, self.settings.rampup, self.settings.consistency)
        balance = self.settings.balance * (1 - maturity(batch.t / self.settings.plan.epochs))
        loss = pair + omega * consistency + balance * balance_loss(p)
        return {"loss": loss, "pair": pair, "consistency": consistency, **watched(f, p, A)}

    def composed(self, views: tuple[Tensor, ...], batch: Batch) -> tuple[tuple[Tensor, ...], Tensor, Tensor]:
        """The rows of the composed batch that belong to this process."""
        n = len(batch.indices)
        if self.compose is none:  # nothing of the others is needed
            return views, *none((batch.x.new_empty(n),), batch.rng)[1:]
        views, sigma, w = self.compose(tuple(gather(x, n) for x in views), batch.rng)
        return tuple(own(x, n) for x in views), sigma, w

    def label(self, f: Tensor, batch: Batch) -> Tensor:
        """A of the batch, its neighbours chosen among the batch and the samples remembered from before."""
        A = self.similarity(self.memory.pooled(f, batch.indices), len(f), batch.t / self.settings.plan.epochs)
        self.memory.store(f, batch.indices)
        return A

    def summary(self, record: Record, history: list[Record]) -> Record:
        return examine(record, history, self.settings.plan.epochs, REMEDIES)


def maturity(progress: float) -> float:
    """How far clusters have formed: 0 until 20 % of the training, then rising to 1 at 70 %."""
    return min(max((progress - 0.2) / 0.5, 0.0), 1.0)


def bind_similarity(similarity: Any, settings: Settings) -> Callable[[Tensor, int, float], Tensor]:
    """The similarity as ``label(f, rows, progress)``: A of the first ``rows`` of ``f``, with an automatic k."""
    if callable(similarity):
        return lambda f, rows, progress: similarity(f)[:rows, :rows]
    free = similarity in SCORES and settings.tau is None  # as many pairs as kNN connects, wherever they are
    function = SCORES[similarity] if free else SIMILARITIES[similarity]
    parameters = inspect.signature(function).parameters

    def label(f: Tensor, rows: int, progress: float) -> Tensor:
        share = SHARES[0] + maturity(progress) * (SHARES[1] - SHARES[0])
        k = settings.k or max(1, min(len(f) - 1, round(share * len(f) / settings.n_clusters)))
        options = {"tau": settings.tau, "temperature": settings.temperature, "k": k, "rows": rows}
        result = function(f, **{name: options[name] for name in parameters if name in options})
        if free:
            result = closest(result, int(knn(f, k).triu(1).sum()))
        return result[:rows, :rows]

    return label


@torch.no_grad()
def watched(f: Tensor, p: Tensor, A: Tensor) -> dict[str, Tensor]:
    """What the health checks look at: cluster shares, confidence, density of A, spread of the features."""
    variance = (f - f.mean(0)).square().mean(0).sum()  # f.var(0) takes ten times as long
    spread = variance / f.square().sum(1).mean().clamp(min=1e-30)
    return {**assigned(p), "density": A.mean(), "spread": spread.sqrt(), "scale": variance.sqrt()}


class LSDC(DeepEstimator):
    """Group samples into linearly separable clusters of learned features.

    Parameters
    ----------
    n_clusters : int or "auto"
        The number of clusters K; "auto" counts them first (``lsdc.suggest_k``).
    neighbours : {"auto", "graph", "batch"}
        Where pairs come from: short walks on a neighbour graph of all samples, or labels made within each batch, as in
        the paper. "auto" means the graph, unless you change a parameter that only matters within batches; for vectors
        and documents, that includes those of the network. (For colour images, these ask for a trained network.)
    n_init : int or "auto"
        With the graph: how many classifiers are trained side by side from different starts ("auto": 20); the one whose
        clusters explain the graph best is kept. Within batches: how often the clustering is trained, each time from a
        different start after the same pretext ("auto": 1); the one with the most confident samples is kept.
    similarity : {"auto", "knn", "sne", "cosine", "l2"} or callable ``f -> A``
        How the pairwise labels are made.
    k : int or "auto"
        How many neighbours a sample has: in the graph ("auto": 10, fewer if clusters are small), or in the pool, where
        "auto" grows from a few pure ones to most of N/K.
    tau, temperature : float
        The threshold of "sne", "cosine" and "l2", and the temperature of "sne". Without a threshold, as many pairs are
        connected as kNN would connect.
    space : {"auto", "features", "predictions"}
        Where samples are compared; "predictions" is the paper's ablation.
    pool : int
        How many samples neighbours are chosen from: the batch and the latest ones before it. 0 means the batch alone.
    composition : {"auto", "ricap", "mixup", "cutmix", "none"} or callable ``(views, rng) -> (views, sigma, w)``
        How composed samples are made.
    consistency, rampup : float
        The weight of the consistency term (0 is the paper's ablation without it), and how many epochs it takes to reach
        that weight.
    weighted : bool
        Whether connected pairs are weighted as if every pair of a cluster were known; False is what the paper does.
    balance : float or "auto"
        The weight of an entropy term that favours clusters of equal size until they have formed; 0 is what the paper
        does.
    backbone : {"auto", "patches", "resnet18", "vgg4", "vgg6", "mlp", "mlp-norm", "coder"} or callable
        The network that makes features; a function ``(shape, width) -> Backbone``. "patches", which is fitted and not
        trained, is the default for colour images.
    width : float or "auto"
        Multiplies the network's channels.
    head : {"auto", "normed", "normed-logits", "linear", "two-layer"} or callable ``(n_features, n_clusters) -> Module``
        The classifier; all but the last are linear in the features.
    n_frozen : int or "auto"
        How many stages of the network are frozen after the pretext.
    pretext : {"auto", "rotnet", "autoencoder", "stacked", "contrastive", "none"} or callable
        Self-supervised pretraining; a function ``(backbone, views) -> objective``.
    pretext_plan : dict or None
        Changes to the pretext's training, e.g. ``{"epochs": 20, "lr": 0.01}``.
    augment : {"auto", "affine", "crop", "crop-flip", "colour", "window", "noise", "dropout", "none"} or callable
        How views of a sample are made; a function ``(x, rng) -> x`` of a whole batch.
    epochs : int or "auto"
        Passes over the data; for images with the graph, rounds of 150 steps, each on a new graph.
    batch_size, optimizer, lr, weight_decay, schedule, milestones, warmup
        How the clustering stage is trained; milestones and warmup count epochs. With the graph, a batch counts pairs.
    random_state : int, RandomState or None
        The same number gives the same labels, to the bit, on the same machine with the same number of threads.
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
        How it was found, if ``n_clusters`` is "auto".
    history_ : list of dict
        One record per epoch: losses, clusters alive, density of A, confidence.
    n_features_in_ : int
        Values per sample.
    network_ : Network
        The trained network.
    settings_ : dict
        Every setting of the fit, with nothing left at "auto".
    """

    method = "lsdc"
    behaviour = 5  # with a graph of images: IMAGES_BEHAVIOUR
    settings = Settings
    objective = LSDCLoss
    parts: ClassVar = {
        **DeepEstimator.parts,
        "backbone": BACKBONES,
        "head": HEADS,
        "similarity": SIMILARITIES,
        "composition": COMPOSITIONS,
    }
    unfit: ClassVar = {**UNFIT, "images": ("mlp", "mlp-norm", "coder", *UNFIT["images"])}  # it flattens no images

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

    # ---- settings -----------------------------------------------------------------------------------------

    @classmethod
    def behaviour_with(cls, settings: Mapping[str, Any]) -> int:
        is_network = settings["neighbours"] == "graph" and settings["backbone"] not in FITTED
        return IMAGES_BEHAVIOUR if is_network else cls.behaviour

    def _defaults(self, shape: tuple[int, ...], sparse: bool) -> dict[str, Any]:
        return defaults(self.get_params(), shape, sparse)

    def _epochs(self, n: int, batch_size: int, values: dict[str, Any]) -> int:
        if values["steps"] is None:
            return network_epochs(n, batch_size)
        return super()._epochs(pairs_of_an_epoch(n) if values["neighbours"] == "graph" else n, batch_size, values)

    def _resolve(self, shape: tuple[int, ...], n: int, sparse: bool = False) -> Settings:
        return completed(super()._resolve(shape, n, sparse), self.get_params(), n)

    # ---- stages -------------------------------------------------------------------------------------------

    def _before(self, f: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        stage = self.network_.backbone.stages[-1]
        decided = isinstance(stage, Words) and bool(stage.evidence.any())
        return stage.before_words(f, self.n_clusters_) if decided else (f, labels)

    def _network(self, backbone: Backbone, settings: Settings) -> nn.Module:
        part = self._part("head", settings)
        head = part if callable(part) else HEADS[part]
        return Network(backbone, head(backbone.n_features, settings.n_clusters))

    def _cluster(
        self, network: Any, views: Views, settings: Any, data: Data, context: Context
    ) -> tuple[Any, list[Record]]:
        if settings.neighbours == "batch":
            return super()._cluster(network, views, settings, data, context)
        if settings.backbone not in FITTED:
            return network, fit_images(network, views, data, settings, context)
        return network, fit_fixed(network, data, settings, context)
