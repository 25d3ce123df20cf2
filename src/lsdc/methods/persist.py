"""Fitted models written to files: tensors and JSON, nothing that runs (``stored`` reads them)."""

import functools
import hashlib
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor, nn

from lsdc.data.sources import raw, row_chunks
from lsdc.errors import InputError
from lsdc.runs.tensors import write_tensors
from lsdc.runs.untrusted import JSON_BYTES

if TYPE_CHECKING:
    from lsdc.methods.base import Estimator

FORMAT = 1  # a change that older code cannot read counts it up


def write_model(model: "Estimator", path: str | os.PathLike[str]) -> None:
    """Everything a fitted model is, in one file."""
    header = {
        "format": FORMAT,
        "method": model.method,
        "params": {**model._fitted, "random_state": model.seed_},
        "settings": model.settings_,
        "shape": list(model.spec_.shape),
        "n_clusters": model.n_clusters_,
        "n_features_in": model.n_features_in_,
        "feature_names": getattr(model, "feature_names_in_", np.array([])).tolist(),
        "words": list(model.words_.words) if model.words_ else None,
        "history": model.history_,
    }
    if any(model._names.terms):
        header |= {"names": list(model._names.names), "terms": [list(terms) for terms in model._names.terms]}
    tensors = {f"state/{name}": tensor for name, tensor in model._state().items()}
    tensors |= {"offset": model.spec_.offset, "scale": model.spec_.scale, "labels": torch.from_numpy(model.labels_)}
    if model.words_:
        tensors["idf"] = torch.from_numpy(model.words_.idf)
    try:
        write_tensors(Path(path), tensors, header)
    except OSError as error:
        raise InputError(f"{path}: cannot write the model there ({error.strerror})") from None
    except ValueError as error:
        raise InputError(f"{path}: cannot write the model ({error})") from None


def check_names(model: "Estimator") -> None:
    """Refuse names of columns that no model file has room for, before anything is fitted."""
    names = getattr(model, "feature_names_in_", np.array([])).tolist()
    if (size := len(json.dumps(json.dumps(names)))) > JSON_BYTES // 4:
        raise InputError(f"X has {len(names):,} columns whose names take {size:,} bytes; give an array or short names")


def match(tensors: dict[str, Tensor], wanted: dict[str, Tensor]) -> None:
    """Refuse tensors of other names, shapes or types than those wanted, which need not be more than descriptions."""
    for name in sorted(tensors.keys() | wanted.keys()):
        given, due = (_described(group.get(name)) for group in (tensors, wanted))
        if given != due:
            raise InputError(f"the tensor {name!r} should be {due}, is {given}")


def _described(tensor: Tensor | None) -> str:
    return f"{tensor.dtype} of shape {tuple(tensor.shape)}" if tensor is not None else "absent"


def fill(module: nn.Module, tensors: dict[str, Tensor]) -> None:
    """Put tensors of a file in the place of a module's own, which may have been built without any memory."""
    match(tensors, module.state_dict())
    module.load_state_dict({name: tensor.clone() for name, tensor in tensors.items()}, assign=True)


def plain(value: Any) -> Any:
    """Parameters as JSON can hold them; a function by its name, for people to read."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, functools.partial):
        return f"{plain(value.func)}({', '.join(f'{k}={plain(v)}' for k, v in value.keywords.items())})"
    if callable(value):
        named = value if hasattr(value, "__qualname__") else type(value)
        return f"{named.__module__}:{named.__qualname__}"
    if isinstance(value, np.generic):
        return value.item()
    return value if isinstance(value, (str, int, float, bool, type(None))) else type(value).__name__


def digest(X: Any) -> str:
    """A fingerprint of the data: 16 characters of evenly spaced rows, as runs of old have them, and 32 of all of it."""
    picked = np.linspace(0, X.shape[0] - 1, min(1000, X.shape[0])).astype(int)
    some = hashlib.sha256(np.ascontiguousarray(raw(X, picked), np.float32).tobytes())
    every = hashlib.sha256()
    for rows in row_chunks(X):
        for part in _parts(X[rows]):
            every.update(np.ascontiguousarray(part).data)
    return some.hexdigest()[:16] + every.hexdigest()[:32]


def _parts(X: Any) -> tuple[np.ndarray, ...]:
    """All that decides the values of some rows, as plain arrays."""
    if not sp.issparse(X):
        return (np.asarray(X),)
    X = X.sorted_indices()
    return X.indptr.astype(np.int64), X.indices.astype(np.int64), X.data


def same_data(before: Any, now: str) -> bool:
    """Whether two digests are of the same data, as far as the one that was stored before can tell."""
    return bool(before == now or (isinstance(before, str) and len(before) == 16 and now.startswith(before)))
