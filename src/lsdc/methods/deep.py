"""The base of deep methods: a network trained by the one loop, first on a pretext, then on the method's objective."""

from abc import abstractmethod
from collections.abc import Mapping
from contextlib import nullcontext
from copy import deepcopy
from dataclasses import replace
from functools import partial
from math import prod
from typing import Any, ClassVar, NamedTuple, Self

import torch
from torch import Tensor, nn

from lsdc.data.augment import AUGMENTATIONS, Views, build_views
from lsdc.data.sources import Data
from lsdc.errors import InputError
from lsdc.methods.base import Arrays, Estimator
from lsdc.methods.objective import CHUNK, DeepObjective, assigned, confidence, encode
from lsdc.methods.saving import as_json, load_tensors
from lsdc.methods.settings import (
    UNFIT,
    Settings,
    common_defaults,
    epochs_for,
    is_auto,
    is_own,
    known_name,
    pretext_plan,
)
from lsdc.nn.backbone import Backbone
from lsdc.nn.network import BACKBONES, FITTED, seeded
from lsdc.pretext import PRETEXTS
from lsdc.runs.folder import Run
from lsdc.training import device as devices
from lsdc.training.context import Context, Objective
from lsdc.training.health import Record
from lsdc.training.loop import train
from lsdc.training.modes import threads_for
from lsdc.training.plan import Plan, validated
from lsdc.training.rng import derive

__all__ = ["CHUNK", "UNFIT", "DeepEstimator", "DeepObjective", "Settings", "assigned", "is_auto"]  # all a method needs


class Prepared(NamedTuple):
    """What a fit trains, built once, before anything is written."""

    network: Any
    views: Views
    pretext: Objective | None


class DeepEstimator(Estimator):
    """Parameters, settings and stages of a deep method. A new one is an objective and a class with these hooks.

    Always: ``method``, its name; ``objective``, its ``DeepObjective``; ``_defaults``, what "auto" means; ``_network``.

    Where they differ: ``takes``, the kinds of data; ``settings``, with more fields; ``parts``, tables of what a name
    stands for, and ``unfit``, the names that a kind of data excludes; ``pretrained``, the modules of the network that
    the pretext trains; ``_resolve``, what follows from other settings; ``_epochs``, how long "auto" trains;
    ``_build_views``, how samples are shown; ``_cluster``, the stages after the pretext.
    """

    settings: ClassVar[type[Settings]] = Settings
    objective: ClassVar[type[DeepObjective]]
    parts: ClassVar[dict[str, Mapping[str, Any]]] = {
        "backbone": {name: build for name, build in BACKBONES.items() if name not in FITTED},
        "augment": AUGMENTATIONS,
        "pretext": PRETEXTS,
    }
    unfit: ClassVar[Mapping[str, tuple[str, ...]]] = UNFIT
    pretrained: ClassVar[tuple[str, ...]] = ("backbone",)
    network_: Any
    _views: Views

    def __init__(
        self,
        n_clusters: Any = 8,
        *,
        n_init: Any = 1,
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
        self.n_init = n_init
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
    def _defaults(self, shape: tuple[int, ...], sparse: bool) -> dict[str, Any]:
        """What "auto" means for samples of a shape: settings, those of the plan, and ``steps`` and ``least`` epochs."""

    @abstractmethod
    def _network(self, backbone: Backbone, settings: Any) -> nn.Module:
        """The network that predicts: ``network(x)`` has features ``f`` and probabilities ``p``."""

    def _epochs(self, n: int, batch_size: int, values: dict[str, Any]) -> int:
        """Epochs of the clustering, where they are left to the method."""
        return epochs_for(values["steps"], n, batch_size, values["least"])

    def _build_views(self, settings: Any) -> Views:
        return build_views(self._part("augment", settings), self.spec_.shape)

    # ---- settings -----------------------------------------------------------------------------------------

    def _resolve(self, shape: tuple[int, ...], n: int, sparse: bool = False) -> Any:
        """The parameters, with "auto" replaced by the method's defaults."""
        self._check_counts(n)
        values = {**common_defaults(shape), **self._defaults(shape, sparse)}
        values |= {k: as_json(v) for k, v in self.get_params().items() if not (is_auto(v) and k in values)}
        self._check_parts(values, shape)
        chosen = {name: values[name] for name in Plan.model_fields if name in values}
        batch_size = validated(Plan, {**chosen, "epochs": 1}).batch_size
        if is_auto(values["epochs"]):
            chosen["epochs"] = self._epochs(n, batch_size, values)
        values["plan"] = validated(Plan, chosen)
        values["pretext_plan"] = pretext_plan(n, values.get("pretext_batch", batch_size), values)
        return validated(self.settings, {name: values[name] for name in self.settings.model_fields if name in values})

    @classmethod
    def _check_parts(cls, names: Mapping[str, Any], shape: tuple[int, ...]) -> None:
        """Refuse unknown names, and parts for images on vectors or the reverse."""
        kind, other = ("images", "vectors") if len(shape) == 3 else ("vectors", "images")
        for part, table in cls.parts.items():
            if not is_own(names[part]):
                known_name(part, names[part], table)
            if names[part] in cls.unfit[kind]:
                raise InputError(f"{part} {names[part]!r} needs {other}, got {shape}")

    @classmethod
    def _check_stored(cls, settings: dict[str, Any], shape: tuple[int, ...]) -> Any:
        checked = super()._check_stored(settings, shape)
        cls._check_parts(checked.model_dump(include=set(cls.parts)), shape)
        return checked

    @classmethod
    def pretext_settings(cls, settings: dict[str, Any]) -> dict[str, Any]:
        names = ("backbone", "width", "augment", "pretext", "pretext_plan")
        return {**{name: settings[name] for name in names}, "pretrained": cls.pretrained}

    def _part(self, name: str, settings: Any) -> Any:
        """The function that was given for a part, else its name."""
        given, known = getattr(self, name, None), getattr(settings, name)
        if callable(given):
            return given
        for value in (given, known):
            if is_own(value):
                raise InputError(
                    f"{name} {value!r} is a function of your own, which a file cannot hold; "
                    f"pass it again: {name}=that function"
                )
        return known

    # ---- building, fitting and predicting -----------------------------------------------------------------

    def _build(self, settings: Any, seed: int) -> tuple[Any, Views]:
        """The network with seeded weights, and the views it sees."""
        part = self._part("backbone", settings)
        views = self._build_views(settings)
        build = part if callable(part) else BACKBONES[part]
        backbone = seeded(partial(build, views.shape, settings.width), derive(seed, "backbone"))
        if not isinstance(backbone, Backbone):
            raise InputError(f"backbone {part!r} must build an lsdc.nn.Backbone, got {type(backbone).__name__}")
        return seeded(partial(self._network, backbone, settings), derive(seed, "head")), views

    def _prepare(self, settings: Any, seed: int) -> Prepared:
        parts = {name: self._part(name, settings) for name in self.parts}
        network, views = self._build(settings, seed)
        network.backbone.check_frozen(settings.n_frozen)
        build = parts["pretext"] if callable(parts["pretext"]) else PRETEXTS[parts["pretext"]]
        more = {name: getattr(network, name) for name in self.pretrained if name != "backbone"}
        pretext = seeded(partial(build, network.backbone, views, **more), derive(seed, "pretext"))
        return Prepared(network, views, pretext)

    def _fit(self, data: Data, settings: Any, prepared: Prepared, context: Context) -> None:
        network, views, pretext = prepared
        size = settings.plan.batch_size * prod(data.spec.shape)
        with threads_for(size) if data.spec.is_image else nullcontext():
            history = train(pretext, context.pretext_data or data, settings.pretext_plan, context) if pretext else []
            network.backbone.freeze(settings.n_frozen)
            self.network_, found = self._cluster(network, views, settings, data, context)
        self._views, self.history_ = views, history + found

    def _cluster(
        self, network: Any, views: Views, settings: Any, data: Data, context: Context
    ) -> tuple[Any, list[Record]]:
        """Train the objective from ``n_init`` starts that share the pretext, and keep the best network."""
        if settings.n_init == 1:
            return network, self._train(network, views, settings, data, context)[1]
        shared = self.pretrained if settings.pretext != "none" else ()
        learned = deepcopy({name: getattr(network, name).state_dict() for name in shared})
        found = []
        for i in range(settings.n_init):
            start = replace(context, seed=derive(context.seed, "start", i)) if i else context
            if i:
                network, _ = self._build(settings, start.seed)
                for name in shared:
                    getattr(network, name).load_state_dict(learned[name])
                network.backbone.freeze(settings.n_frozen)
            objective, history = self._train(network, views, settings, data, start, f"-{i + 1}" if i else "")
            found.append((confidence(objective, history), network, history))
        best = max(range(len(found)), key=lambda i: found[i][0])
        confident = [score[0] for score, _, _ in found]
        found.append(found.pop(best))  # its records come last
        history = [record for _, _, records in found for record in records]
        return found[-1][1], [*history[:-1], *({**last, "starts": confident} for last in history[-1:])]

    def _train(
        self, network: Any, views: Views, settings: Any, data: Data, context: Context, suffix: str = ""
    ) -> tuple[DeepObjective, list[Record]]:
        """One clustering stage from its start to its end."""
        parts = {part: self._part(part, settings) for part in self.objective.parts}
        objective = self.objective(network, views, settings, data, context, **parts)
        objective.name += suffix
        objective.start()
        history = train(objective, data, settings.plan, context, objective.prepare)
        objective.finish(history)
        return objective, history

    def after_pretext(self, run: Run) -> Self | None:
        """A copy with the backbone as its run's pretext left it, to see what the clustering added."""
        checkpoint = run.read_checkpoint("pretext")
        if checkpoint is None:
            return None
        model = deepcopy(self)
        weights = checkpoint.weights.items()
        learned = {name.removeprefix("backbone."): w for name, w in weights if name.startswith("backbone.")}
        load_tensors(model.network_.backbone, learned)
        return model

    def _outputs(self, data: Data) -> Arrays:
        return encode(self.network_, self._views, data, devices.choose(self.device))

    def _state(self) -> dict[str, Tensor]:
        state: dict[str, Tensor] = self.network_.state_dict()
        return state

    def _restore(self, tensors: dict[str, Tensor], settings: Any) -> None:
        own = any(callable(getattr(self, name, None)) for name in self.parts)
        with nullcontext() if own else torch.device("meta"):  # no memory for sizes that a file merely claims
            self.network_, self._views = self._build(settings, 0)
        load_tensors(self.network_, tensors)
        self.network_.eval()
