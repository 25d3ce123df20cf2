"""Fitted models and runs as files: tensors and JSON, no code; nothing in them is trusted."""

import functools
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from lsdc.data.names import Names, numbered
from lsdc.data.sources import Spec, is_image_shape
from lsdc.data.texts import TfIdf
from lsdc.errors import InputError, reason, shown, unknown
from lsdc.methods.schema import FORMAT, Config, Header
from lsdc.runs.tensors import write_tensors
from lsdc.runs.untrusted import JSON_BYTES, records
from lsdc.training.plan import validated

if TYPE_CHECKING:
    from lsdc.methods.base import Estimator

Methods = Mapping[str, type["Estimator"]]


def write_model(model: "Estimator", path: str | os.PathLike[str]) -> None:
    """Write a fitted model to one file."""
    header = {
        "format": FORMAT,
        "method": model.method,
        "params": {**model._fitted_params, "random_state": model.seed_},
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
        raise InputError(f"{path}: cannot write the model ({error.strerror})") from None
    except ValueError as error:
        raise InputError(f"{path}: cannot write the model ({error})") from None


def check_names(model: "Estimator") -> None:
    """Refuse column names too long for a model file, before anything is fitted."""
    names = getattr(model, "feature_names_in_", np.array([])).tolist()
    if (size := len(json.dumps(json.dumps(names)))) > JSON_BYTES // 4:
        raise InputError(
            f"X has {len(names):,} columns whose names take {size:,} bytes; pass an array, or shorten the names"
        )


def check_tensors(tensors: dict[str, Tensor], wanted: dict[str, Tensor]) -> None:
    """Refuse tensors whose names, shapes or types differ from those wanted, which may be on the meta device."""
    for name in sorted(tensors.keys() | wanted.keys()):
        given, due = (_dtype_and_shape(group.get(name)) for group in (tensors, wanted))
        if given != due:
            raise InputError(f"the tensor {name!r} should be {due}, is {given}")


def _dtype_and_shape(tensor: Tensor | None) -> str:
    return f"{tensor.dtype} of shape {tuple(tensor.shape)}" if tensor is not None else "absent"


def load_tensors(module: nn.Module, tensors: dict[str, Tensor]) -> None:
    """Replace a module's tensors, which may be on the meta device, by those of a file."""
    check_tensors(tensors, module.state_dict())
    module.load_state_dict({name: tensor.clone() for name, tensor in tensors.items()}, assign=True)


def as_json(value: Any) -> Any:
    """Parameters as JSON values; a function becomes its name, for people to read."""
    if isinstance(value, dict):
        return {key: as_json(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, (list, tuple)):
        return [as_json(item) for item in value]
    if isinstance(value, functools.partial):
        return f"{as_json(value.func)}({', '.join(f'{k}={as_json(v)}' for k, v in value.keywords.items())})"
    if callable(value):
        named = value if hasattr(value, "__qualname__") else type(value)
        return f"{named.__module__}:{named.__qualname__}"
    if isinstance(value, np.generic):
        return value.item()
    return value if isinstance(value, (str, int, float, bool, type(None))) else type(value).__name__


def check_config(methods: Methods, path: Path, content: dict[str, Any]) -> dict[str, Any]:
    """The content of a config.json, unchanged, once all of it is validated."""
    with _named(path):
        config = validated(Config, content)
        _unfitted(methods, config, tuple(config.data.shape), config.data.n)
    return content


def read_model(
    methods: Methods, path: Path, tensors: dict[str, Tensor], content: dict[str, Any], changes: dict[str, Any]
) -> "Estimator":
    """The inverse of ``write_model``, with some parameters changed; inconsistent files are refused."""
    records(path, content.get("history"))
    with _named(path):
        header = validated(Header, content)
        labels = tensors.get("labels", torch.empty(0)).flatten()
        model, settings = _unfitted(methods, header, tuple(header.shape), len(labels))
        _restore_data(model, header, {name: t for name, t in tensors.items() if "/" not in name})
        _check_params(changes, model)
        model.set_params(**changes)
        state = {name.removeprefix("state/"): t for name, t in tensors.items() if "/" in name}
        model._restore(state, settings)
    return model


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Name the file in its errors, including torch's own about sizes that overflow."""
    try:
        yield
    except InputError as error:
        raise error.within(path) from None
    except (RuntimeError, OverflowError) as error:
        raise InputError(f"{path}: is inconsistent ({reason(error)})") from None


def _check_params(params: dict[str, Any], model: "Estimator") -> None:
    if wrong := params.keys() - model.get_params().keys():
        raise unknown("parameter", min(wrong), model.get_params())


def _unfitted(methods: Methods, file: Header | Config, shape: tuple[int, ...], n: int) -> tuple["Estimator", Any]:
    """An estimator with the parameters of a file, and its settings, if ``fit`` would accept them for such data."""
    if file.method not in methods:
        raise unknown("method", file.method, methods)
    method, params = methods[file.method], file.params
    _check_params(params, method())
    if len(shape) != 1 and not is_image_shape(shape):
        raise InputError(f"samples of shape {shape} are neither vectors nor images")
    if not isinstance(params.get("device", ""), str):
        raise InputError(f"device must be a name, got {shown(params['device'])}")
    model = method(**params)
    model._fitted_params = params
    model._resolve(shape, n)
    settings = method._check_stored(file.settings, shape)
    model.settings_ = settings.model_dump(mode="json")
    if model.settings_["n_clusters"] != model.n_clusters:
        raise InputError("n_clusters differs between the parameters and the settings")
    return model, settings


def _restore_data(model: "Estimator", header: Header, tensors: dict[str, Tensor]) -> None:
    """Restore what the model knows about its data: shape, scaling, names, words and labels."""
    shape, words = tuple(header.shape), header.words
    centred, scaled = (len(shape) == 1 and name in tensors and tensors[name].ndim > 0 for name in ("offset", "scale"))
    wanted = {
        "offset": torch.empty(shape, dtype=torch.float64, device="meta") if centred else torch.empty(()),
        "scale": torch.empty(shape if scaled else (), device="meta"),
        "labels": torch.empty(tensors.get("labels", torch.empty(1)).numel(), dtype=torch.int64, device="meta"),
    }
    if words is not None:
        wanted["idf"] = torch.empty(len(words), dtype=torch.float64)
    check_tensors(tensors, wanted)
    labels, names, seed = tensors["labels"], header.feature_names, header.params.get("random_state")
    model.n_clusters_ = _n_clusters(header.n_clusters, model.n_clusters, len(labels))
    if (tensors["scale"] <= 0).any() or labels.min() < 0 or labels.max() >= model.n_clusters_:
        raise InputError("the scale or the labels are invalid")
    if header.n_features_in != prod(shape) or (names and len(names) != prod(shape)):
        raise InputError(f"n_features_in is {header.n_features_in} with {len(names)} names, but the shape is {shape}")
    if words is not None and (len(set(words)) != len(words) or (len(words),) != shape):
        raise InputError(f"{len(words)} words, perhaps with duplicates, but the shape is {shape}")
    if not isinstance(seed, int):
        raise InputError(f"random_state must be a whole number, got {shown(seed)}")
    model.spec_ = Spec(shape, tensors["offset"], tensors["scale"])
    model.seed_, model.n_features_in_, model.history_ = seed, header.n_features_in, header.history
    model.labels_ = labels.numpy()
    model._names = _names(header, model.n_clusters_)
    model.words_ = TfIdf(tuple(words), tensors["idf"].numpy()) if words is not None else None
    if names:
        model.feature_names_in_ = np.array(names, object)


def _n_clusters(found: int | None, asked: int | None, n: int) -> int:
    """How many clusters a model has, bounded by its samples before anything is made for each of them."""
    if found and asked and found != asked:
        raise InputError(f"n_clusters is {found}, but {asked} were asked for")
    if found and found > n:
        raise InputError(f"n_clusters is {found}, more than the {n} samples")
    return found or asked or 0


def _names(header: Header, n_clusters: int) -> Names:
    """The names of the clusters, numbered for files older than names."""
    if header.names is None or header.terms is None:
        return numbered(n_clusters)
    if len(header.names) != n_clusters or len(header.terms) != n_clusters:
        raise InputError(f"{len(header.names)} names and {len(header.terms)} lists of terms for {n_clusters} clusters")
    return Names(tuple(header.names), tuple(map(tuple, header.terms)))
