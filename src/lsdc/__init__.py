"""Group unlabelled images, documents or embeddings into K clusters with LSD-C, and keep what you learn."""

from lsdc.data import datasets
from lsdc.data.images import image_folder
from lsdc.errors import HealthWarning, InputError
from lsdc.methods import (
    DAC,
    DEC,
    FINCH,
    IDEC,
    IIC,
    IMSAT,
    JULE,
    LSDC,
    METHODS,
    DeepCluster,
    KMeans,
    VaDE,
    load,
)

__version__ = "0.1.0"
__all__ = [
    "DAC",
    "DEC",
    "FINCH",
    "IDEC",
    "IIC",
    "IMSAT",
    "JULE",
    "LSDC",
    "METHODS",
    "DeepCluster",
    "HealthWarning",
    "InputError",
    "KMeans",
    "VaDE",
    "datasets",
    "image_folder",
    "load",
]
