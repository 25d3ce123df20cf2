"""The network of the paper: features from a backbone, probabilities from a linear layer and a softmax (section 3)."""

from collections.abc import Callable
from threading import RLock
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor, nn

from lsdc.nn.backbone import Backbone
from lsdc.nn.mlp import coder, mlp, mlp_norm
from lsdc.nn.patches import patches
from lsdc.nn.projection import projection, topics, words
from lsdc.nn.resnet import resnet18
from lsdc.nn.vgg import vgg4, vgg6

T = TypeVar("T")
BUILDING = RLock()  # weights are drawn from torch's global generator, which fits in other threads draw from too
BackboneBuilder = Callable[..., Backbone]

FITTED = ("projection", "topics", "words", "patches")  # fitted to the data without gradients, for LSD-C's graph only
BACKBONES: dict[str, BackboneBuilder] = {
    "resnet18": resnet18,
    "vgg4": vgg4,
    "vgg6": vgg6,
    "mlp": mlp,
    "mlp-norm": mlp_norm,
    "coder": coder,
    "projection": projection,
    "topics": topics,
    "words": words,
    "patches": patches,
}


class Output(NamedTuple):
    """Features (N, D), logits and probabilities (N, K)."""

    f: Tensor
    logits: Tensor
    p: Tensor


class Network(nn.Module):
    """``f = Phi(x)``, ``p = softmax(Psi(f))``."""

    def __init__(self, backbone: Backbone, head: nn.Module) -> None:
        super().__init__()
        self.backbone = backbone
        self.head = head

    def forward(self, x: Tensor) -> Output:
        f = self.backbone(x)
        logits = self.head(f)
        return Output(f, logits, logits.softmax(1))


def auto_backbone(shape: tuple[int, ...]) -> str:
    """Vectors take the MLP, small grey images VGG-4, all other images ResNet-18."""
    if len(shape) == 1:
        return "mlp"
    channels, height, width = shape
    return "vgg4" if channels == 1 and max(height, width) <= 32 else "resnet18"


def seeded(build: Callable[[], T], seed: int) -> T:
    """Build something whose initial weights depend on ``seed`` only, and leave torch's global state as it was."""
    with BUILDING:
        before = torch.default_generator.get_state()
        torch.default_generator.manual_seed(seed)  # only this one: torch.manual_seed would reseed GPUs too
        try:
            return build()
        finally:
            torch.default_generator.set_state(before)
