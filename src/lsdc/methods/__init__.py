"""The methods, one estimator per file; to add one, write a class and enter it here."""

import os
from pathlib import Path
from typing import Any

from lsdc.errors import InputError, shown
from lsdc.methods.base import Estimator
from lsdc.methods.choosing import Suggestion, suggest
from lsdc.methods.dac import DAC
from lsdc.methods.dec import DEC
from lsdc.methods.deepcluster import DeepCluster
from lsdc.methods.finch import FINCH
from lsdc.methods.idec import IDEC
from lsdc.methods.iic import IIC
from lsdc.methods.imsat import IMSAT
from lsdc.methods.jule import JULE
from lsdc.methods.kmeans import KMeans
from lsdc.methods.lsdc import LSDC
from lsdc.methods.saving import check_config, read_model
from lsdc.methods.schema import FORMAT, FORMATS
from lsdc.methods.umap import UMAPMixture
from lsdc.methods.vade import VaDE
from lsdc.runs.folder import Run
from lsdc.runs.tensors import read_tensors
from lsdc.runs.untrusted import contained
from lsdc.training.modes import default_modes

METHODS: dict[str, type[Estimator]] = {
    "lsdc": LSDC,
    "kmeans": KMeans,
    "umap": UMAPMixture,
    "finch": FINCH,
    "dec": DEC,
    "idec": IDEC,
    "vade": VaDE,
    "imsat": IMSAT,
    "dac": DAC,
    "iic": IIC,
    "jule": JULE,
    "deepcluster": DeepCluster,
}


def load(path: str | os.PathLike[str], **params: Any) -> Estimator:
    """Load a saved model from its file or its run folder; parts that were functions must be passed again.

    Other parameters can be changed at the same time, e.g. ``device="cpu"``.
    """
    path = Path(path)
    file = path / "model.safetensors" if path.is_dir() else path
    if path.is_dir():
        contained(path, [file.name])
        if not file.exists():
            raise InputError(f"{path}: no model in this folder; the run has not finished, or this is not a run folder")
    tensors, header = read_tensors(file)
    if header.get("format") not in FORMATS:
        raise InputError(
            f"{file}: has model format {shown(header.get('format'))}, but this version reads only up to {FORMAT}"
        )
    with default_modes():
        return read_model(METHODS, file, tensors, header, params)


def suggest_k(X: Any) -> Suggestion:
    """Estimate how many clusters X has, as ``n_clusters="auto"`` does; X is anything that ``fit`` accepts."""
    with default_modes():
        return suggest(KMeans()._data(X, reset=True))


def read_config(run: Run) -> dict[str, Any]:
    """The config.json of a run, validated."""
    return check_config(METHODS, run.path / "config.json", run.read_json("config.json"))


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
    "Estimator",
    "KMeans",
    "UMAPMixture",
    "VaDE",
    "load",
    "read_config",
    "suggest_k",
]
