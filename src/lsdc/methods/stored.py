"""What files say of a model or a run, checked before anything is built from it: nothing in them is trusted."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import torch
from pydantic import ConfigDict, Field, InstanceOf, PositiveInt
from torch import Tensor

from lsdc.data.names import Names, numbered
from lsdc.data.sources import Spec
from lsdc.data.texts import TfIdf
from lsdc.errors import InputError, reason, shown, unknown
from lsdc.methods.base import Estimator
from lsdc.methods.deep import validated
from lsdc.methods.persist import match
from lsdc.runs.untrusted import records
from lsdc.training.plan import Frozen

Methods = Mapping[str, type[Estimator]]
Count = Annotated[int, Field(ge=1, le=2**40)]
Text = InstanceOf[str]  # pydantic's own str refuses names of files that are not UTF-8


class Stored(Frozen):
    """What a file says: the types as they are, nothing converted."""

    model_config = ConfigDict(strict=True)


class Header(Stored):
    """The JSON of a model file."""

    format: Literal[1]
    method: str
    params: dict[str, Any]
    settings: dict[str, Any]
    shape: list[Count]
    n_features_in: Count
    feature_names: list[Text]
    words: list[Text] | None
    history: list[Any]
    n_clusters: Count | None = None  # found by the method, where nobody gave it
    names: list[Text] | None = None
    terms: list[list[Text]] | None = None


class Origin(Stored):
    """Where the data of a run came from, and what it was."""

    source: Text | None = None
    image_size: int = Field(32, ge=8, le=4096)
    column: Text | None = None
    columns: list[Text] = Field(default_factory=list)
    id_column: Text | None = None
    array: Text | None = None
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


class Config(Stored):
    """The config.json of a run."""

    method: str
    behaviour: PositiveInt
    seed: int
    settings: dict[str, Any]
    params: dict[str, Any]
    data: Origin
    fingerprint: str


def checked_config(methods: Methods, path: Path, content: dict[str, Any]) -> dict[str, Any]:
    """The content of a config.json as it is, if all of it is known and can be."""
    with _named(path):
        config = validated(Config, content)
        _described(methods, config, tuple(config.data.shape), config.data.n)
    return content


def rebuilt(
    methods: Methods, path: Path, tensors: dict[str, Tensor], content: dict[str, Any], changes: dict[str, Any]
) -> Estimator:
    """The inverse of ``write_model``, with some parameters changed; what does not fit together is refused."""
    records(path, content.get("history"))
    with _named(path):
        header = validated(Header, content)
        labels = tensors.get("labels", torch.empty(0)).flatten()
        model = _described(methods, header, tuple(header.shape), len(labels))
        _restore_data(model, header, {name: t for name, t in tensors.items() if "/" not in name})
        _check_names(changes, model)
        model.set_params(**changes)
        state = {name.removeprefix("state/"): t for name, t in tensors.items() if "/" in name}
        model._restore(state, model.settings_)
    return model


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Name the file in what is wrong with it; torch says that sizes overflow with errors of its own."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    except (RuntimeError, OverflowError) as error:
        raise InputError(f"{path}: does not fit together ({reason(error)})") from None


def _check_names(params: dict[str, Any], model: Estimator) -> None:
    if wrong := params.keys() - model.get_params().keys():
        raise unknown("parameter", min(wrong), model.get_params())


def _described(methods: Methods, stored: Header | Config, shape: tuple[int, ...], n: int) -> Estimator:
    """An estimator with the stored parameters and settings, if ``fit`` would have taken them for such data."""
    if stored.method not in methods:
        raise unknown("method", stored.method, methods)
    method, params = methods[stored.method], stored.params
    _check_names(params, method())
    if len(shape) not in (1, 3):
        raise InputError(f"samples of shape {shape} are neither vectors nor images")
    if not isinstance(params.get("device", ""), str):
        raise InputError(f"device must be a name, got {shown(params['device'])}")
    model = method(**params)
    model._fitted = params
    model._check(shape, n)
    model.settings_ = method._checked_settings(stored.settings, shape)
    if model.settings_.get("n_clusters") != model.n_clusters:
        raise InputError("n_clusters is not the same in the parameters and in the settings")
    return model


def _restore_data(model: Estimator, header: Header, tensors: dict[str, Tensor]) -> None:
    """What the model knows of its data: shape, scaling, names, words and labels."""
    shape, words = tuple(header.shape), header.words
    centred = len(shape) == 1 and "offset" in tensors and tensors["offset"].ndim > 0
    wanted = {
        "offset": torch.empty(shape, dtype=torch.float64, device="meta") if centred else torch.empty(()),
        "scale": torch.empty(()),
        "labels": torch.empty(tensors["labels"].numel(), dtype=torch.int64, device="meta"),
    }
    if words is not None:
        wanted["idf"] = torch.empty(len(words), dtype=torch.float64)
    match(tensors, wanted)
    labels, names, seed = tensors["labels"], header.feature_names, header.params.get("random_state")
    model.n_clusters_ = header.n_clusters or model.n_clusters or 0
    if tensors["scale"] <= 0 or labels.min() < 0 or labels.max() >= model.n_clusters_:
        raise InputError("the scale or the labels are impossible")
    if header.n_features_in != prod(shape) or (names and len(names) != prod(shape)):
        raise InputError(f"n_features_in is {header.n_features_in} with {len(names)} names, but the shape is {shape}")
    if words is not None and (len(set(words)) != len(words) or (len(words),) != shape):
        raise InputError(f"{len(words)} words, some perhaps twice, but the shape is {shape}")
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
    """The names of the clusters; files written before there were any have numbers."""
    if header.names is None or header.terms is None:
        return numbered(n_clusters)
    if len(header.names) != n_clusters or len(header.terms) != n_clusters:
        raise InputError(f"{len(header.names)} names and {len(header.terms)} lists of terms for {n_clusters} clusters")
    return Names(tuple(header.names), tuple(map(tuple, header.terms)))
