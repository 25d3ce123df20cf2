"""A data set as it was read: samples, what is known about them, and how to read them again."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from lsdc.errors import InputError

Prepared = tuple[float | tuple[str, ...], ...]  # of each column what it is divided by, or the kinds of its words


@dataclass(frozen=True)
class Reading:
    """How to read a file or folder; whatever is left out is worked out from the data.

    ``matched`` is set where the columns are those of a run: they are then found by name, and the id may be missing.
    """

    image_size: int = 32
    column: str | None = None  # of texts
    text_column: str | None = None  # the one a run found without being told
    columns: tuple[str, ...] = ()  # of numbers
    drop: tuple[str, ...] = ()
    id_column: str | None = None
    array: str | None = None  # of an archive
    scale: bool | None = None  # whether columns are divided by their spread; None: where their units differ
    prepared: Prepared | None = None  # what a run did to its columns
    image_range: tuple[float, float] | None = None  # for images without a fixed range of values
    encoder: str | None = None  # of images
    text_encoder: str | None = None
    encoder_settings: Mapping[str, Any] = field(default_factory=dict)
    encoder_digest: str | None = None  # which encoder it must be, if a run knows
    matched: bool = False


def from_config(stored: Mapping[str, Any]) -> Reading:
    """The reading stored in a run's config; older runs left all columns as they were."""
    found: dict[str, Any] = {f.name: stored[f.name] for f in fields(Reading) if stored.get(f.name) is not None}
    if "text_encoder" in found:
        found.pop("columns", None)  # older runs have the column of texts there, which holds no numbers
    lists = {name: tuple(value) for name, value in found.items() if isinstance(value, list)}
    done = tuple(tuple(how) if isinstance(how, list) else float(how) for how in found.get("prepared", ()))
    return Reading(**{**found, **lists, "prepared": done})


@dataclass(frozen=True)
class Table:
    """Columns by name, and where each row is in the file: a ``unit`` ("line") and its number."""

    path: Path
    columns: dict[str, Any]
    places: Sequence[int]
    unit: str = "line"
    named: bool = True  # whether there is a header; otherwise columns are called 0, 1, ...
    separator: str = ","
    notes: tuple[str, ...] = ()

    def where(self, place: int, column: str) -> str:
        """The beginning of an error about the cell of a row."""
        return f"{self.path}: {self.unit} {place}, column {column!r}:"


@dataclass(frozen=True)
class Columns:
    """How the columns of a table are used."""

    features: tuple[str, ...]
    id: str | None = None
    label: str | None = None
    unused: tuple[str, ...] = ()
    made: tuple[str, ...] = ()  # the names of X's columns, where a column of words has become several
    prepared: Prepared = ()  # what was done to each feature; nothing if it is empty


@dataclass(frozen=True)
class Encoding:
    """The encoder that made X: its name, its settings, and a digest of its weights."""

    name: str
    settings: Mapping[str, Any]
    digest: str


@dataclass(frozen=True)
class Dataset:
    """Samples ``X`` with their ``ids``; labels ``y``, if any, are for evaluation only.

    ``title`` is the name shown to people; ``unlabelled`` are further samples for the pretext alone. ``columns`` and
    ``notes`` say how a file was read.
    """

    name: str
    X: Any
    y: np.ndarray | None = None
    class_names: tuple[str, ...] = ()
    ids: Sequence[object] | None = None
    title: str = ""
    unlabelled: Any = None
    columns: Columns | None = None
    notes: tuple[str, ...] = ()
    image_range: tuple[float, float] | None = None
    skipped: tuple[tuple[str, str], ...] = ()  # files left out, and why
    samples: Any = None  # what an encoder made X from, to show to people: texts, photos or images
    encoder: Encoding | None = None
    scales: tuple[float, ...] = ()  # of X's columns, where a table has columns of different units
    beside: dict[str, list[str]] = field(default_factory=dict)  # short columns of a table that are not features

    @property
    def n_samples(self) -> int:
        """The number of samples."""
        return int(self.X.shape[0]) if hasattr(self.X, "shape") else len(self.X)

    @property
    def n_clusters(self) -> int | None:
        """The number of classes, if known."""
        return len(self.class_names) or None


def of_texts(dataset: Dataset) -> bool:
    """Whether the samples are texts, as they are or as an encoder reads them."""
    return isinstance(dataset.X, list) or (isinstance(dataset.samples, list) and isinstance(dataset.samples[0], str))


def of_photos(dataset: Dataset) -> bool:
    """Whether the samples are the pixels of a folder of colour images."""
    return dataset.encoder is None and dataset.ids is not None and getattr(dataset.X, "ndim", 0) == 4


def replaced(dataset: Dataset, X: Any, bad: Mapping[int, str], **others: Any) -> Dataset:
    """A data set with another X, without the samples that could not be read."""
    ids = dataset.ids
    if bad and ids is not None:
        if len(bad) == len(ids):
            rest = f"; the other {len(bad) - 1} cannot be read either" if len(bad) > 1 else ""
            first = str(ids[min(bad)])
            inside = "" if Path(dataset.name).name == first else f"{first}: "
            raise InputError(f"{dataset.name}: {inside}{bad[min(bad)]}{rest}")
        skipped = (*dataset.skipped, *((str(ids[i]), why) for i, why in bad.items()))
        ids = [name for i, name in enumerate(ids) if i not in bad]
        others |= {"ids": ids, "skipped": skipped}
    return replace(dataset, X=X, **others)


def to_config(reading: Reading, dataset: Dataset) -> dict[str, Any]:
    """A reading for a run's config, with the columns as found, so that the file is read the same way again."""
    content: dict[str, Any] = {"image_size": reading.image_size, "column": reading.column}
    if dataset.columns and of_texts(dataset) and reading.column is None:
        content["text_column"] = dataset.columns.features[0]
    if dataset.columns and not of_texts(dataset):
        content["columns"] = list(dataset.columns.features)
        if dataset.columns.prepared:
            content["prepared"] = [list(how) if isinstance(how, tuple) else how for how in dataset.columns.prepared]
    if dataset.columns and dataset.columns.id is not None:
        content["id_column"] = dataset.columns.id
    if reading.array is not None:
        content["array"] = reading.array
    if dataset.image_range:
        content["image_range"] = list(dataset.image_range)
    if dataset.encoder:
        content["text_encoder" if reading.text_encoder is not None else "encoder"] = dataset.encoder.name
        content |= {"encoder_settings": dict(dataset.encoder.settings), "encoder_digest": dataset.encoder.digest}
    return content


def listed(names: Sequence[str], most: int = 12) -> str:
    """Column names for people, shortened if there are many."""
    shown = [name if name.strip() else "(unnamed)" for name in names]
    if len(shown) <= most:
        return ", ".join(shown)
    return f"{', '.join(shown[: most // 2])}, ..., {shown[-1]} ({len(shown):,} in all)"
