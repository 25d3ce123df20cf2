"""Self-supervised pretraining of the backbone (section 3.1): objectives for the one epoch loop."""

from lsdc.pretext.autoencoder import DenoisingAutoencoder
from lsdc.pretext.contrastive import Contrastive
from lsdc.pretext.pretexts import PRETEXTS, Pretext
from lsdc.pretext.rotnet import RotNet
from lsdc.pretext.stacked import StackedAutoencoder, decode, mirrored

__all__ = [
    "PRETEXTS",
    "Contrastive",
    "DenoisingAutoencoder",
    "Pretext",
    "RotNet",
    "StackedAutoencoder",
    "decode",
    "mirrored",
]
