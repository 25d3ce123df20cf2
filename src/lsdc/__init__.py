"""Group unlabelled images, documents or embeddings into K clusters with LSD-C, and keep what you learn."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from lsdc.errors import HealthWarning, InputError

if TYPE_CHECKING:
    from lsdc.data import datasets
    from lsdc.data.encode import encode
    from lsdc.data.files import open_data
    from lsdc.data.images import image_folder
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
        UMAPMixture,
        VaDE,
        load,
        suggest_k,
    )
    from lsdc.report.terminal import ProgressBar

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
    "ProgressBar",
    "UMAPMixture",
    "VaDE",
    "datasets",
    "encode",
    "image_folder",
    "load",
    "open_data",
    "suggest_k",
]

if not TYPE_CHECKING:  # PyTorch takes seconds to import, so whatever needs it is imported on first use
    MODULES = ("data", "functional", "methods", "metrics", "nn", "parallel", "pretext", "runs", "training")
    PLACES = {
        "datasets": "lsdc.data.datasets",
        "encode": "lsdc.data.encode",
        "image_folder": "lsdc.data.images",
        "open_data": "lsdc.data.files",
        "ProgressBar": "lsdc.report.terminal",
    }

    def __getattr__(name: str) -> Any:
        """A public name or a subpackage, imported from its home."""
        if name in MODULES:
            return import_module(f"lsdc.{name}")
        if name not in __all__:
            raise AttributeError(f"module 'lsdc' has no attribute {name!r}")
        module = import_module(PLACES.get(name, "lsdc.methods"))
        globals()[name] = module if name == "datasets" else getattr(module, name)
        return globals()[name]

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__, *MODULES})
