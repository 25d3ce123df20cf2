"""The pretexts by name."""

from collections.abc import Callable
from typing import Any

from lsdc.data.augment import Views
from lsdc.nn.backbone import Backbone
from lsdc.pretext.autoencoder import DenoisingAutoencoder
from lsdc.pretext.contrastive import Contrastive
from lsdc.pretext.rotnet import RotNet
from lsdc.pretext.stacked import StackedAutoencoder

Pretext = Callable[[Backbone, Views], Any]


def none(backbone: Backbone, views: Views) -> None:
    """No pretext: the clustering starts from random weights."""


PRETEXTS: dict[str, Pretext] = {
    "rotnet": RotNet,
    "autoencoder": DenoisingAutoencoder,
    "stacked": StackedAutoencoder,
    "contrastive": Contrastive,
    "none": none,
}
