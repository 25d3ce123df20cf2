"""A fitted network behind an estimator: what it predicts, how it is kept, and how it comes back."""

from abc import abstractmethod
from contextlib import nullcontext
from copy import deepcopy
from typing import Any, ClassVar, Self

import torch
from torch import Tensor

from lsdc.data.augment import Views
from lsdc.data.sources import Data
from lsdc.errors import InputError
from lsdc.methods.base import Arrays, Estimator
from lsdc.methods.deep import encode
from lsdc.methods.persist import fill
from lsdc.runs.folder import Run
from lsdc.training import device as devices
from lsdc.training.plan import Frozen


class NetworkEstimator(Estimator):
    """An estimator whose state is a network with a backbone; a method adds its settings, ``_build`` and ``_fit``."""

    settings: ClassVar[type[Frozen]]
    network_: Any
    _views: Views

    @abstractmethod
    def _build(self, settings: Any, seed: int) -> tuple[Any, Views]:
        """The network with seeded weights, and how samples are shown to it."""

    @classmethod
    def pretext_settings(cls, settings: dict[str, Any]) -> dict[str, Any]:
        return {name: settings[name] for name in ("backbone", "width", "augment", "pretext", "pretext_plan")}

    def _part(self, name: str, resolved: str) -> Any:
        """The function given for a part, else the name that was resolved."""
        given = getattr(self, name, None)
        return given if callable(given) else resolved

    def after_pretext(self, run: Run) -> Self | None:
        """A copy with the backbone as the pretext of its run left it, to see what the clustering added."""
        kept = run.read_checkpoint("pretext")
        if kept is None:
            return None
        model = deepcopy(self)
        weights = {k.removeprefix("backbone."): v for k, v in kept.weights.items() if k.startswith("backbone.")}
        fill(model.network_.backbone, weights)
        return model

    def _outputs(self, data: Data) -> Arrays:
        return encode(self.network_, self._views, data, devices.choose(self.device))

    def _state(self) -> dict[str, Tensor]:
        state: dict[str, Tensor] = self.network_.state_dict()
        return state

    def _restore(self, tensors: dict[str, Tensor], settings: dict[str, Any]) -> None:
        for name in ("backbone", "head", "augment"):
            value = getattr(self, name, None)
            if isinstance(value, str) and ":" in value:
                raise InputError(
                    f"the model was fitted with its own {name} ({value}); load it with {name}=that function"
                )
        own = any(callable(getattr(self, name, None)) for name in ("backbone", "head", "augment"))
        with nullcontext() if own else torch.device("meta"):  # no memory for sizes that only a file claims
            self.network_, self._views = self._build(self.settings(**settings), 0)
        fill(self.network_, tensors)
        self.network_.eval()
