"""Any function or module as an encoder, in Python."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from lsdc.data.encoders.base import Encoder, ImageEncoder
from lsdc.errors import InputError


class Function(ImageEncoder):
    """Any callable or ``torch.nn.Module`` of a tensor (n, 3, h, w), normalised."""

    def load(self) -> None:
        self.function, self.name = _named(self.name)
        self.normalise_as({}, "the encoder")

    def encode(self, batch: np.ndarray) -> Any:
        x = torch.from_numpy(self.normalised(batch))
        if not isinstance(self.function, torch.nn.Module):
            return self.function(x)
        was, first = self.function.training, next(self.function.parameters(), torch.empty(0))
        try:
            with torch.no_grad():
                return self.function.eval()(x.to(first.device))
        finally:
            self.function.train(was)


class TextFunction(Encoder):
    """Any callable of a list of texts."""

    takes = "texts"

    def load(self) -> None:
        self.function, self.name = _named(self.name)
        self.notes = (f"encoder {self.name}",)

    def encode(self, batch: Sequence[str]) -> Any:
        return self.function(list(batch))


def _named(function: Any) -> tuple[Callable[[Any], Any], str]:
    if not callable(function):
        raise InputError(f"an encoder must be a name, a path or a function, not {type(function).__name__}")
    return function, getattr(function, "__qualname__", type(function).__qualname__)
