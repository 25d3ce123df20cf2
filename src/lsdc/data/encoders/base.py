"""The base of all encoders: samples in, one vector each out, and a digest of everything that decides them."""

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from lsdc.errors import InputError, Note, shown, unknown

SIZE = 224
SIZES = range(8, 4097)  # what a side may have
IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))  # mean and deviation of pixels from 0 to 1


class Encoder(ABC):
    """A pretrained network: ``encoder(batch)`` gives one row of features per sample.

    Images come as (n, size, size, 3) from 0 to 255, texts as a list of strings.
    """

    takes: ClassVar[str]
    batch: ClassVar[int] = 32
    size: int = SIZE
    digest: str = ""  # of weights and settings; empty if unknown, and then nothing is cached
    notes: tuple[str, ...] = ()  # how it was read, for people

    def __init__(self, name: Any, settings: Mapping[str, Any]) -> None:
        self.name, self.settings = name, dict(settings)
        self.load()

    @abstractmethod
    def load(self) -> None:
        """Read the weights; raises ``InputError`` if this is not such an encoder."""

    @abstractmethod
    def encode(self, batch: Any) -> Any:
        """The features of a batch, in any form that ``pooled`` accepts."""

    def __call__(self, batch: Any) -> np.ndarray:
        features = pooled(self.encode(batch), len(batch), str(self))
        if not np.isfinite(features).all():
            raise InputError(f"{self}: returns NaN or infinite features; is its input normalised as it should be?")
        return features

    def __str__(self) -> str:
        return str(self.name)


def _size(value: Any) -> int:
    size = int(value)
    if size not in SIZES:
        raise ValueError
    return size


def _channels(value: Any) -> tuple[float, ...]:
    numbers = value.strip("[]() ").split(",") if isinstance(value, str) else np.ravel(value).tolist()
    found = tuple(float(number) for number in numbers)
    if len(found) not in (1, 3) or not all(map(math.isfinite, found)):
        raise ValueError
    return found * (3 // len(found))


def _scale(value: Any) -> tuple[float, ...]:
    found = _channels(value)
    if min(found) <= 0:
        raise ValueError
    return found


def _name(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError
    return value


SETTINGS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "size": (_size, "the side of an image in pixels, 8 to 4096"),
    "mean": (_channels, "one number or three, of pixels from 0 to 1"),
    "std": (_scale, "one number above 0 or three, of pixels from 0 to 1"),
    "output": (_name, "the name of an output"),
}


def checked(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings, validated and converted; None means not given."""
    found = {}
    for name, value in settings.items():
        if name not in SETTINGS:
            raise unknown("encoder setting", name, SETTINGS)
        if value is not None:
            read, what = SETTINGS[name]
            try:
                found[name] = read(value)
            except (TypeError, ValueError):
                raise InputError(f"encoder setting {name}={shown(value)}: must be {what}") from None
    return found


class ImageEncoder(Encoder):
    """An image encoder, which knows the size and normalisation of its input."""

    takes = "images"
    mean: tuple[float, ...] = IMAGENET[0]
    std: tuple[float, ...] = IMAGENET[1]

    def normalise_as(self, known: Mapping[str, Any], where: str) -> None:
        """Take size, mean and deviation from the settings, else from the model, else the usual ones, and note it."""
        found = {**known, **self.settings}
        self.size = int(found.get("size", SIZE))
        self.mean, self.std = found.get("mean", IMAGENET[0]), found.get("std", IMAGENET[1])
        wanting = [name for name in ("size", "mean", "std") if name not in found]
        scale = f"mean {_shown(self.mean)}, deviation {_shown(self.std)}"
        self.notes += (f"encoder {self.name}: images of {self.size} x {self.size}, {scale}",)
        if wanting:
            text = f"{where} does not specify {' and '.join(wanting)}; using ImageNet's"
            self.notes += (Note(text, "encoder_settings"),)

    def normalised(self, batch: np.ndarray) -> np.ndarray:
        """A batch as (n, 3, h, w), scaled as the network expects it."""
        mean, std = (np.array(values, np.float32) for values in (self.mean, self.std))
        return np.ascontiguousarray(((batch.astype(np.float32) / 255 - mean) / std).transpose(0, 3, 1, 2))

    def digest_of(self, *parts: str) -> str:
        """The digest of the weights together with every decision made."""
        decided = [self.size, self.mean, self.std, self.settings.get("output")]
        return sha256(json.dumps([type(self).__name__, decided, *parts]).encode()).hexdigest()


def _shown(values: Sequence[float]) -> str:
    return ", ".join(f"{value:.3g}" for value in (values[:1] if len(set(values)) == 1 else values))


def pooled(features: Any, n: int, name: str) -> np.ndarray:
    """Whatever a network returns as (n, d): the mean over positions of an image or over tokens."""
    if hasattr(features, "detach"):
        features = features.detach().cpu().float().numpy()
    try:
        found: np.ndarray = np.asarray(features, np.float32)
    except (TypeError, ValueError):
        raise InputError(f"{name}: returns {shown(type(features).__name__)} instead of an array of numbers") from None
    if found.ndim in (3, 4):
        found = found.mean((2, 3) if found.ndim == 4 else 1)
    if found.ndim != 2 or len(found) != n or not found.shape[1]:
        raise InputError(f"{name}: returns an array of shape {found.shape} for {n} samples; (n, d) is needed")
    return found


def from_json(file: Path) -> dict[str, Any]:
    """Size and normalisation from a preprocessor_config.json, where it has them."""
    try:
        content = json.loads(file.read_text(encoding="utf-8")) if file.stat().st_size < 2**20 else {}
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(content, dict):
        return {}
    size = content.get("crop_size") if content.get("do_center_crop", True) else None
    size = size or content.get("size")
    if isinstance(size, dict):
        size = size.get("height") or size.get("shortest_edge")
    found = {"size": size, "mean": content.get("image_mean"), "std": content.get("image_std")}
    return known({name: value for name, value in found.items() if value is not None})


def known(found: Mapping[str, Any]) -> dict[str, Any]:
    """The settings in a model's file that are valid."""
    result: dict[str, Any] = {}
    for name, value in found.items():
        try:
            result |= checked({name: value})
        except InputError:
            continue
    return result


def digest_files(files: Iterable[Path], top: Path) -> str:
    """One digest of several files, their names and bytes."""
    total = sha256()
    for file in sorted(files):
        with file.open("rb") as stream:
            total.update(f"{file.relative_to(top)}\0{file_digest(stream, 'sha256').hexdigest()}\n".encode())
    return total.hexdigest()
