"""What a deep method is: a network trained by the one loop, first on a pretext, then on the method's own objective.

A new one is an objective (``DeepObjective.losses``) and a class (``DeepEstimator``) with its defaults and its network.
"""

from abc import ABC, abstractmethod
from functools import partial
from typing import Any, ClassVar

import numpy as np
import torch
from pydantic import Field, PositiveInt
from torch import Tensor, nn

from lsdc import parallel
from lsdc.data.augment import AUGMENTATIONS, Views
from lsdc.data.sampler import Batch
from lsdc.data.sources import Data
from lsdc.methods.deep import (
    build_backbone,
    check_kind,
    encode,
    epochs_for,
    is_auto,
    part,
    pretrain,
    validated,
    validated_plan,
    views_of,
)
from lsdc.methods.persist import plain
from lsdc.methods.trained import NetworkEstimator
from lsdc.nn.backbone import Backbone
from lsdc.nn.network import BACKBONES, auto_backbone, seeded
from lsdc.pretext import PRETEXTS
from lsdc.training.health import Record, examine
from lsdc.training.loop import Context, train
from lsdc.training.plan import Frozen, Plan
from lsdc.training.rng import derive

# the projection is fitted by LSD-C's graph and nothing else
TRAINED = {name: build for name, build in BACKBONES.items() if name != "projection"}
PARTS: dict[str, Any] = {"backbone": TRAINED, "augment": AUGMENTATIONS, "pretext": PRETEXTS}


class Settings(Frozen):
    """Everything that decides a fit. Parts given as functions appear by their names."""

    n_clusters: PositiveInt
    backbone: str
    width: float = Field(gt=0, le=16)
    augment: str
    pretext: str
    pretext_plan: Plan
    plan: Plan


class DeepObjective(ABC):
    """What a clustering stage minimises; what it keeps of all samples are buffers, so that it is checkpointed."""

    name = "clustering"

    def __init__(self, network: nn.Module, views: Views, settings: Settings, data: Data, context: Context) -> None:
        self.network, self.views, self.settings = network, views, settings
        self.data, self.context = data, context
        self.kept: Any = nn.Module()
        self.module: nn.Module = nn.ModuleDict({"network": network, "kept": self.kept})

    def keep(self, **tensors: Tensor) -> None:
        """Buffers, the same on all processes."""
        for name, tensor in tensors.items():
            self.kept.register_buffer(name, tensor)

    def rows(self, name: str, batch: Batch) -> Tensor:
        """The rows of a buffer that belong to the samples ``batch.x``."""
        buffer: Tensor = getattr(self.kept, name)
        return buffer[parallel.own(batch.indices, len(batch.indices)).to(buffer.device)]

    def encoded(self) -> tuple[Tensor, Tensor]:
        """Features and probabilities of all samples, with the network as it is now."""
        parts = encode(self.network, self.views, self.data, self.context.device)
        f, p = (torch.from_numpy(np.concatenate(arrays)) for arrays in zip(*parts, strict=True))
        return f.to(self.context.device), p.to(self.context.device)

    def inputs(self) -> Tensor:
        """All samples as the network is shown them plainly, flattened."""
        return torch.cat([self.views.plain(x).flatten(1) for x in self.data.chunks()]).to(self.context.device)

    @abstractmethod
    def losses(self, batch: Batch) -> dict[str, Tensor]:
        """``loss``, ``shares`` of the clusters, and whatever else is worth a mean over the epoch."""

    def prepare(self, history: list[Record]) -> bool:
        """What an epoch needs of all samples (see ``training.loop.train``); True if the stage is done."""
        return False

    def summary(self, record: Record, history: list[Record]) -> Record:
        return examine(record, history, self.settings.plan.epochs)


class DeepEstimator(NetworkEstimator):
    """Parameters, settings and stages of a deep method; it adds ``_defaults``, ``_network`` and ``_objective``."""

    settings: ClassVar[type[Settings]] = Settings

    def __init__(
        self,
        n_clusters: Any = 8,
        *,
        backbone: Any = "auto",
        width: Any = "auto",
        augment: Any = "auto",
        pretext: Any = "auto",
        pretext_plan: Any = None,
        epochs: Any = "auto",
        batch_size: Any = "auto",
        lr: Any = "auto",
        random_state: Any = None,
        device: str = "auto",
        n_workers: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.backbone = backbone
        self.width = width
        self.augment = augment
        self.pretext = pretext
        self.pretext_plan = pretext_plan
        self.epochs = epochs
        self.batch_size = batch_size
        self.lr = lr
        self.random_state = random_state
        self.device = device
        self.n_workers = n_workers

    # ---- what a method provides ---------------------------------------------------------------------------

    @abstractmethod
    def _defaults(self, shape: tuple[int, ...]) -> dict[str, Any]:
        """What "auto" means for samples of a shape: settings, those of the plan, and ``steps`` and ``least`` epochs."""

    @abstractmethod
    def _network(self, backbone: Backbone, settings: Settings) -> nn.Module:
        """The network that predicts: ``network(x)`` has features ``f`` and probabilities ``p``."""

    @abstractmethod
    def _objective(self, network: Any, views: Views, settings: Any, data: Data, context: Context) -> DeepObjective:
        """What the clustering stage minimises; called after the pretext, which it may look at."""

    def _show(self, settings: Settings) -> Views:
        return views_of(self._part("augment", settings.augment), self.spec_.shape)

    def _pretext(self, network: Any, settings: Settings) -> Any:
        return self._part("pretext", settings.pretext)

    def _finish(self, objective: Any, history: list[Record]) -> None:
        """What is left to do after the training, if anything."""

    # ---- settings -----------------------------------------------------------------------------------------

    @classmethod
    def _checked_settings(cls, settings: dict[str, Any], shape: tuple[int, ...]) -> dict[str, Any]:
        checked = validated(cls.settings, settings, "settings.")
        check_kind({"backbone": checked.backbone}, shape)
        return checked.model_dump(mode="json")

    def _check(self, shape: tuple[int, ...], n: int) -> None:
        super()._check(shape, n)
        if not any(isinstance(value, str) and ":" in value for value in self.get_params().values()):
            self._resolved(shape, n)  # of a function a file holds the name only, so nothing can be said

    def resolved(self, shape: tuple[int, ...], n: int, sparse: bool = False) -> dict[str, Any]:
        return self._resolved(shape, n).model_dump(mode="json")

    def _settings(self, data: Data) -> dict[str, Any]:
        settings = self.settings(**super()._settings(data))
        network, views = self._build(settings, seed=0)  # what cannot be built is refused before anything is written
        pretext = part("pretext", self._pretext(network, settings), PRETEXTS)
        seeded(partial(pretext, network.backbone, views), seed=0)
        return settings.model_dump(mode="json")

    def _resolved(self, shape: tuple[int, ...], n: int) -> Settings:
        """The parameters, with "auto" replaced by the method's defaults."""
        common = {"backbone": auto_backbone(shape), "width": 0.25, "pretext": "none"}
        common |= {
            "pretext_steps": 700,
            "pretext_least": 10,
            "augment": default_augment(shape),
            "optimizer": "adam",
            "weight_decay": 0.0,
            "schedule": "cosine",
        }
        given = {name: value for name, value in self.get_params().items() if not is_auto(value)}
        values = {**common, **self._defaults(shape), **given}
        for name in PARTS:
            part(name, values[name], PARTS[name])
            values[name] = plain(values[name])
        check_kind({"backbone": values["backbone"]}, shape)
        rest = {name: values[name] for name in Plan.model_fields if name in values}
        batch = validated(Plan, {**rest, "epochs": 1}).batch_size
        plan = validated(Plan, {"epochs": epochs_for(values["steps"], n, batch, values["least"]), **rest})
        first_batch = batch if "batch_size" in given else values.get("pretext_batch", batch)
        before = {
            "batch_size": first_batch,
            "optimizer": "adam",
            "lr": 1e-3,
            "weight_decay": 0.0,
            "schedule": "cosine",
        }
        before["epochs"] = epochs_for(values["pretext_steps"], n, first_batch, values["pretext_least"])
        values |= {"plan": plan, "pretext_plan": validated_plan(before, self.pretext_plan)}
        return validated(self.settings, {name: values[name] for name in self.settings.model_fields})

    # ---- fitting and predicting ---------------------------------------------------------------------------

    def _build(self, settings: Any, seed: int) -> tuple[Any, Views]:
        views = self._show(settings)
        backbone = build_backbone(self._part("backbone", settings.backbone), views, settings.width, seed)
        return seeded(partial(self._network, backbone, settings), derive(seed, "head")), views

    def _fit(self, data: Data, context: Context) -> None:
        settings = self.settings(**self.settings_)
        network, views = self._build(settings, context.seed)
        pretext = self._pretext(network, settings)
        self.history_ = pretrain(network.backbone, pretext, settings.pretext_plan, views, data, context)
        objective = self._objective(network, views, settings, data, context)
        history = train(objective, data, settings.plan, context, objective.prepare)
        self._finish(objective, history)
        self.history_ += history
        self.network_, self._views = network, views


def default_augment(shape: tuple[int, ...]) -> str:
    """Small movements for grey images, shifts and mirrors for others, noise for vectors."""
    return ("crop-flip" if shape[0] > 1 else "affine") if len(shape) == 3 else "noise"
