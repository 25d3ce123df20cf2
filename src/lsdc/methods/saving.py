"""Fitted models and runs as files: tensors and JSON, no code; nothing in them is trusted."""

import functools
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import scipy.sparse as sp
import torch
from pydantic import ConfigDict, Field, InstanceOf, PositiveInt
from torch import Tensor, nn

from lsdc.data.names import Names, numbered
from lsdc.data.sources import Spec, raw, row_chunks
from lsdc.data.texts import TfIdf
from lsdc.errors import InputError, reason, shown, unknown
from lsdc.runs.tensors import write_tensors
from lsdc.runs.untrusted import JSON_BYTES, records
from lsdc.training.plan import Frozen, validated

if TYPE_CHECKING:
    from lsdc.methods.base import Estimator

Methods = Mapping[str, type["Estimator"]]
Count = Annotated[int, Field(ge=1, le=2**40)]
Scale = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Text = InstanceOf[str]  # pydantic's own str refuses names of files that are not UTF-8
FORMAT = 2  # incremented by changes that older code cannot read; in format 1 the settings of LSD-C are nested
FORMATS = (1, FORMAT)


def write_model(model: "Estimator", path: str | os.PathLike[str]) -> None:
    """Write a fitted model to one file."""
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


def digest(X: Any, scale: Tensor | None = None) -> str:
    """A fingerprint of the data: 16 characters from evenly spaced rows, as in older runs, and 32 from all of it.

    Scales of single columns, which people can choose, are a part of it.
    """
    scales = scale.numpy().tobytes() if scale is not None and scale.ndim else b""
    picked = np.linspace(0, X.shape[0] - 1, min(1000, X.shape[0])).astype(int)
    some = hashlib.sha256(np.ascontiguousarray(raw(X, picked), np.float32).tobytes())
    every = hashlib.sha256()
    for each in (some, every):
        each.update(scales)
    for rows in row_chunks(X):
        for array in _arrays(X[rows]):
            every.update(np.ascontiguousarray(array).data)
    return some.hexdigest()[:16] + every.hexdigest()[:32]


def _arrays(X: Any) -> tuple[np.ndarray, ...]:
    """Everything that decides the values of some rows, as arrays."""
    if not sp.issparse(X):
        return (np.asarray(X),)
    X = X.sorted_indices()
    return X.indptr.astype(np.int64), X.indices.astype(np.int64), X.data


def same_data(before: Any, now: str) -> bool:
    """Whether two digests belong to the same data, as far as the older one can tell."""
    return bool(before == now or (isinstance(before, str) and len(before) == 16 and now.startswith(before)))


class Strict(Frozen):
    """The content of a file, with strict types: nothing is converted."""

    model_config = ConfigDict(strict=True)


class Header(Strict):
    """The JSON of a model file."""

    format: Literal[1, 2]
    method: str
    params: dict[str, Any]
    settings: dict[str, Any]
    shape: list[Count]
    n_features_in: Count
    feature_names: list[Text]
    words: list[Text] | None
    history: list[Any]
    n_clusters: Count | None = None  # found by the method, if it was not given
    names: list[Text] | None = None
    terms: list[list[Text]] | None = None


class Origin(Strict):
    """Where a run's data came from, and what it was."""

    source: Text | None = None
    image_size: int = Field(32, ge=8, le=4096)
    column: Text | None = None
    columns: list[Text] = Field(default_factory=list)
    id_column: Text | None = None
    array: Text | None = None
    prepared: list[Scale | Annotated[list[Text], Field(min_length=1, max_length=1000)]] = Field(default_factory=list)
    image_range: list[float] | None = Field(None, min_length=2, max_length=2)
    encoder: Text | None = None
    text_encoder: Text | None = None
    encoder_settings: dict[str, Any] | None = None
    encoder_digest: str | None = None
    n: Count
    shape: list[Count]
    digest: str
    pretext_n: Count | None = None
    pretext_digest: str | None = None


class Config(Strict):
    """The config.json of a run."""

    method: str
    behaviour: PositiveInt
    seed: int
    settings: dict[str, Any]
    params: dict[str, Any]
    data: Origin
    fingerprint: str


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
        raise InputError(f"{path}: {error}") from None
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
    if len(shape) not in (1, 3):
        raise InputError(f"samples of shape {shape} are neither vectors nor images")
    if not isinstance(params.get("device", ""), str):
        raise InputError(f"device must be a name, got {shown(params['device'])}")
    model = method(**params)
    model._fitted = params
    model._resolve(shape, n)
    settings = method._check_stored(file.settings, shape)
    model.settings_ = settings.model_dump(mode="json")
    if model.settings_["n_clusters"] != model.n_clusters:
        raise InputError("n_clusters differs between the parameters and the settings")
    return model, settings


def _restore_data(model: "Estimator", header: Header, tensors: dict[str, Tensor]) -> None:
    """Restore what the model knows about its data: shape, scaling, names, words and labels."""
    shape, words = tuple(header.shape), header.words
    centred = len(shape) == 1 and "offset" in tensors and tensors["offset"].ndim > 0
    wanted = {
        "offset": torch.empty(shape, dtype=torch.float64, device="meta") if centred else torch.empty(()),
        "scale": torch.empty(shape if len(shape) == 1 and tensors["scale"].ndim else (), device="meta"),
        "labels": torch.empty(tensors["labels"].numel(), dtype=torch.int64, device="meta"),
    }
    if words is not None:
        wanted["idf"] = torch.empty(len(words), dtype=torch.float64)
    check_tensors(tensors, wanted)
    labels, names, seed = tensors["labels"], header.feature_names, header.params.get("random_state")
    model.n_clusters_ = header.n_clusters or model.n_clusters or 0
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


def _names(header: Header, n_clusters: int) -> Names:
    """The names of the clusters, numbered for files older than names."""
    if header.names is None or header.terms is None:
        return numbered(n_clusters)
    if len(header.names) != n_clusters or len(header.terms) != n_clusters:
        raise InputError(f"{len(header.names)} names and {len(header.terms)} lists of terms for {n_clusters} clusters")
    return Names(tuple(header.names), tuple(map(tuple, header.terms)))
