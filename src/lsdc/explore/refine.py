"""Teaches corrections to a fitted model: pairs that belong together or apart, for a few epochs.

For corrected samples and the cores of the clusters it is known which belong together. All samples are tied to their
neighbours by short walks on the graph of the fitted features, as in the fit, so that samples similar to a corrected
one follow it. Only the head is trained: with fixed features, 20 corrections take a second.
"""

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lsdc.data.names import numbered
from lsdc.data.sampler import Batch, draw
from lsdc.errors import InputError
from lsdc.explore.edits import OUTLIER, History, Move
from lsdc.functional import nearest, pair_likelihood, pair_loss, positive_weight, walk
from lsdc.methods.base import Estimator
from lsdc.methods.deep import assigned
from lsdc.methods.graph import Pairs, sample
from lsdc.methods.lsdc import LSDC
from lsdc.training.context import Context
from lsdc.training.health import Record, examine
from lsdc.training.loop import train
from lsdc.training.plan import Plan

EPOCHS = 4
STEPS = 25  # of an epoch
WALKS = 256  # pairs from the graph in a step
TAUGHT, CORE = 256, 128  # corrected samples in a step, and samples that stand for their clusters
SURE = 0.9  # how sure the model must be of a sample that stands for its cluster
NEIGHBOURS, LONGEST_WALK = 10, 3
NEAR = 2  # links from a moved sample to others that may be wrong in the same way
STRENGTH = 4.0  # weight of the corrections against the graph
LR = 1e-2


@dataclass(frozen=True)
class Corrections:
    """All corrections; clusters that have samples are numbered from 0.

    ``before`` is what the model said; ``labels`` are -1 for outliers, ``moved`` says which samples were placed by hand,
    ``sources`` which clusters of the model each one is made of, ``names`` what they are called.
    """

    before: Tensor
    labels: Tensor
    moved: Tensor
    sources: tuple[tuple[int, ...], ...]
    names: dict[int, str]


def corrections(history: History) -> Corrections:
    """What the edits of a run say."""
    state = history.state
    kept = [cluster for cluster in state.clusters if (state.labels == cluster).any()]
    if not history.done:
        raise InputError("nothing has been corrected yet; correct some samples in the explorer")
    if np.count_nonzero(state.labels != OUTLIER) < 2:
        raise InputError("all samples, or all but one, are outliers; move some into clusters in the explorer")
    place = {cluster: i for i, cluster in enumerate(kept)}
    labels = np.array([place.get(cluster, OUTLIER) for cluster in state.labels.tolist()])
    moved = np.zeros(len(labels), bool)
    for step in history.done:
        if isinstance(step.edit, Move):
            moved[step.edit.samples] = True
    moved &= labels != OUTLIER
    before = history.base.labels
    stayed = [before[(labels == i) & ~moved] for i in range(len(kept))]
    sources = tuple(tuple(np.unique(rows).tolist()) for rows in stayed)  # empty if all were moved there by hand
    names = {place[cluster]: name for cluster, name in state.names.items() if cluster in place}
    was, is_, by_hand = (torch.from_numpy(part) for part in (before, labels, moved))
    return Corrections(was, is_, by_hand, sources, names)


def refined(model: Estimator, X: Any, given: Corrections, epochs: int, context: Context) -> Estimator:
    """A copy of a fitted model that has learnt corrections of its samples X."""
    if not isinstance(model, LSDC):
        raise InputError(f"refine works with models of the method lsdc, not {model.method}")
    model = copy.deepcopy(model)
    data = model._data(X, reset=False)
    f, p = (torch.from_numpy(np.concatenate(part)) for part in zip(*model._outputs(data), strict=True))
    rows, neighbours = _graph(given, f, context.seed)
    core = _core(given, rows, neighbours, p.amax(1))
    if given.sources != tuple((cluster,) for cluster in range(p.shape[1])):
        known = torch.cat([core, given.moved.nonzero()[:, 0]])
        _change_clusters(model, f[known], _expected(p, given)[known])
    context = Context(context.seed, torch.device("cpu"), 0, context.keeper, context.monitor)  # small enough for any
    stage = Refinement(model.network_.head.cpu(), f, given, core, rows, neighbours)
    stage.epochs = epochs
    plan = Plan(epochs=epochs, batch_size=WALKS, optimizer="adam", lr=LR, weight_decay=0.0, schedule="cosine")
    model.history_ = [*model.history_, *train(stage, stage.data, plan, context)]
    model.network_.eval()
    found = model._assigned(data)
    model.labels_, model.n_clusters_ = found.labels, found.n_clusters
    model._names = numbered(found.n_clusters)
    return model


def _expected(p: Tensor, given: Corrections) -> Tensor:
    """What the model would have said about the corrected clusters (n, K).

    Probabilities of merged clusters add up. Where clusters share a source, its probability goes to the sample's own.
    """
    k, labels = len(given.sources), given.labels
    target = torch.stack([p[:, list(source)].sum(1) for source in given.sources], 1)
    shared = torch.tensor([[bool(set(a) & set(b)) for b in given.sources] for a in given.sources])
    own = labels.clamp(min=0)
    elsewhere = shared[own] & (torch.arange(k) != own[:, None]) & (labels >= 0)[:, None]
    target = target.masked_fill(elsewhere, 0)
    target[given.moved] = F.one_hot(labels[given.moved], k).to(target)
    return target / target.sum(1, keepdim=True).clamp(min=1e-9)


def _change_clusters(model: LSDC, f: Tensor, target: Tensor) -> None:
    """Give the network a new head for the corrected clusters, fitted to the expected probabilities."""
    k, old = target.shape[1], model.network_.head
    model.set_params(n_clusters=k)
    model.settings_, model._fitted_params = (
        {**model.settings_, "n_clusters": k},
        {**model._fitted_params, "n_clusters": k},
    )
    head = model._build(model.settings(**model.settings_), model.seed_)[0].head.eval()
    if isinstance(head, nn.Sequential) and isinstance(head[0], nn.BatchNorm1d):
        head[0].load_state_dict(old[0].state_dict())
    model.network_.head = head
    parameters = list(head.parameters())
    optimizer = torch.optim.LBFGS(parameters, max_iter=60, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        optimizer.zero_grad()
        decay = torch.stack([parameter.square().sum() for parameter in parameters]).sum()
        value = F.cross_entropy(head(f), target) + 1e-4 * decay
        value.backward()  # type: ignore[no-untyped-call]
        return value

    optimizer.step(loss)  # type: ignore[no-untyped-call]


class EvaluationHead(nn.Module):
    """A head whose batch norm keeps its statistics, which hand-picked samples would spoil."""

    def __init__(self, head: nn.Module) -> None:
        super().__init__()
        self.head = head

    def train(self, mode: bool = True) -> "EvaluationHead":
        """Stay in evaluation mode."""
        return super().train(False)

    def forward(self, f: Tensor) -> Tensor:
        """Probabilities."""
        p: Tensor = self.head(f).softmax(1)
        return p


class Refinement:
    """The objective: pairs joined by walks on the graph become likely, and corrections are enforced."""

    name = "refine"

    epochs = EPOCHS

    def __init__(
        self, head: nn.Module, f: Tensor, given: Corrections, core: Tensor, rows: Tensor, neighbours: Tensor
    ) -> None:
        self.module: nn.Module = EvaluationHead(head)
        self.f, self.labels = f, given.labels
        self.moved, self.core = given.moved.nonzero()[:, 0], core
        self.data = Pairs(STEPS * WALKS)
        self.rows, self.neighbours = rows, neighbours

    def losses(self, batch: Batch) -> dict[str, Tensor]:
        n, rng = len(batch.indices), batch.rng
        u = draw(torch.rand, (n, 2 + LONGEST_WALK), rng)
        start = (u[:, -1] * len(self.rows)).long()
        end = walk(self.neighbours, start, u[:, :-1])
        p, q = (self.module(self.f[self.rows[ends]]) for ends in (start, end))
        joined = -pair_likelihood(p, q, ((p + q) / 2).mean(0, keepdim=True).detach(), 0.6).mean()
        known = torch.cat([_some(self.moved, TAUGHT, rng), _some(self.core, CORE, rng)])
        Y = (self.labels[known][:, None] == self.labels[known][None, :]).float()
        p_known = self.module(self.f[known])
        corrected = pair_loss(p_known, p_known, Y, positive_weight(Y, p.shape[1]))
        loss = joined + STRENGTH * corrected
        return {"loss": loss, "joined": joined, "corrected": corrected, **assigned((p + q).detach() / 2)}

    def summary(self, record: Record, history: list[Record]) -> Record:
        return examine(record, history, self.epochs)


def _some(rows: Tensor, most: int, rng: torch.Generator) -> Tensor:
    return rows[torch.randperm(len(rows), generator=rng)[:most]]


def _graph(given: Corrections, f: Tensor, seed: int) -> tuple[Tensor, Tensor]:
    """Some samples, including all moved ones but no outliers, and the neighbours of each by angle."""
    inside, kept = given.moved.clone(), (given.labels != OUTLIER).nonzero()[:, 0]
    inside[kept[sample(len(kept), seed, "refine")]] = True
    rows = inside.nonzero()[:, 0]  # none that was moved is an outlier
    compared = F.normalize((f[rows] - f.mean(0)) / (f.std(0) + 1e-6))
    return rows, nearest(compared, min(NEIGHBOURS, len(rows) - 1)).indices


def _core(given: Corrections, rows: Tensor, neighbours: Tensor, sure: Tensor) -> Tensor:
    """Samples that stand for their clusters: the surest half of each, and all that the model is sure of.

    Samples close to one that was moved out of the same cluster may be just as wrong, and are left to the graph.
    """
    sure, labels, moved = sure[rows], given.labels[rows], given.moved[rows]
    doubted = _near(moved, neighbours, given.before[rows])
    core = torch.zeros(len(rows), dtype=torch.bool)
    for cluster in range(len(given.sources)):
        mine = ((labels == cluster) & ~moved).nonzero()[:, 0]
        some = mine[~doubted[mine]] if not doubted[mine].all() else mine
        surest = some[sure[some].argsort(descending=True)]
        core[surest[: (len(surest) + 1) // 2]] = True
        core[some[sure[some] > SURE]] = True
    return rows[core]


def _near(hot: Tensor, neighbours: Tensor, clusters: Tensor) -> Tensor:
    """Samples at most ``NEAR`` links within one cluster away from ``hot`` samples."""
    within = clusters[neighbours] == clusters[:, None]
    for _ in range(NEAR):
        reached = (hot[neighbours] & within).any(1)
        reached[neighbours[hot][within[hot]]] = True
        hot = hot | reached
    return hot
