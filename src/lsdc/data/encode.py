"""Images and texts as an encoder's vectors: computed in batches, cached, and resumed after an interruption."""

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np
from PIL import Image

from lsdc import allocator
from lsdc.data import cache
from lsdc.data.cache import Rows, Watch, quiet
from lsdc.data.decode import Range, middle_square
from lsdc.data.encoders import Encoder, encoder_of
from lsdc.data.images import FEW, Photos, are_files, listed_photos, refuse_bad
from lsdc.data.reading import Dataset, Encoding, Reading, replaced
from lsdc.data.sources import as_array, image_shape, raw, row_chunks
from lsdc.data.texts import are_texts
from lsdc.errors import InputError

PART = 128  # samples encoded and cached at a time


@dataclass(frozen=True)
class Samples:
    """Samples to encode: how many, a digest of all, and a way to get some of them at a given size."""

    n: int
    digest: str
    rows: Callable[[int, int, int], tuple[Any, dict[int, str]]]


def encode(
    X: Any,
    encoder: Any,
    *,
    size: int | None = None,
    mean: Any = None,
    std: Any = None,
    output: str | None = None,
    watch: Watch = quiet,
) -> np.ndarray:
    """The features (n, d) that an encoder computes for images or texts, ready to be clustered as vectors.

    Parameters
    ----------
    X : list of paths, images (n, h, w), (n, h, w, c) or (n, c, h, w), texts
        What to encode. ``lsdc.open_data(folder, encoder=...)`` encodes a folder of photos.
    encoder : str, path, callable or torch.nn.Module
        An ONNX file, a model from the Hugging Face hub or its folder, ``"wordllama"``, or any function of a batch: a
        tensor (n, 3, size, size), or a list of texts.
    size, mean, std, output
        The side of the images, their normalisation (for pixels from 0 to 1), and which output to use. Needed only
        where the model does not say, or to override it.
    watch : callable
        Called with what is being done, how many are done, and the total.
    """
    if are_files(X):
        X = listed_photos(X)
    elif not are_texts(X):
        X = as_array(X)
    settings = {"size": size, "mean": mean, "std": std, "output": output}
    known = encoder_of(encoder, "texts" if are_texts(X) else "images", settings)
    features, bad = _features(_samples(X, None), known, watch)
    if bad:
        refuse_bad(X, bad)
    return features


def encoded(dataset: Dataset, reading: Reading, watch: Watch = quiet) -> Dataset:
    """A data set of images or texts with an encoder's features as its X."""
    texts = isinstance(dataset.X, list)
    given = reading.text_encoder if texts else reading.encoder
    if given is None or not (texts or isinstance(dataset.X, Photos) or dataset.X.ndim > 2):
        kind, what = ("encoder", "images") if reading.encoder is not None else ("text_encoder", "texts")
        holds = "texts" if texts else "images" if isinstance(dataset.X, Photos) or dataset.X.ndim > 2 else "vectors"
        raise InputError(f"{dataset.name}: the encoder is for {what}, but this contains {holds}", kind)
    encoder = encoder_of(given, "texts" if texts else "images", reading.encoder_settings)
    if reading.encoder_digest not in (None, encoder.digest):
        raise InputError(f"{encoder}: not the encoder the run was fitted with; its weights or settings have changed")
    span = _span(dataset.X, reading.image_range)
    features, bad = _features(_samples(dataset.X, span), encoder, watch)
    used = Encoding(str(encoder), encoder.settings, encoder.digest)
    notes = (f"values from {span[0]:g} to {span[1]:g} become 0 to 255",) if span else ()
    others = {"samples": _without(dataset.X, bad), "encoder": used, "image_range": span or dataset.image_range}
    return replaced(dataset, features, bad, notes=(*dataset.notes, *notes, *encoder.notes), unlabelled=None, **others)


def _features(samples: Samples, encoder: Encoder, watch: Watch) -> Rows:
    """All features; those a killed run had finished come from the cache."""

    def compute(start: int, stop: int) -> Rows:
        parts: list[np.ndarray] = []
        bad: dict[int, str] = {}
        watch("encoding", start, samples.n)
        for first in range(start, stop, encoder.batch):
            last = min(first + encoder.batch, stop)
            batch, wrong = samples.rows(encoder.size, first, last)
            bad |= wrong
            if len(batch):
                parts.append(encoder(batch))
            watch("encoding", last, samples.n)
        return (np.concatenate(parts) if parts else np.empty((0, 0), np.float32)), bad

    allocator.keep_freed_memory()
    if samples.n <= FEW or not encoder.digest:
        return cache.computed(samples.n, compute, PART)
    return cache.cached(cache.key("features", encoder.digest, samples.digest), samples.n, compute, PART)


def _samples(X: Any, span: Range | None) -> Samples:
    """Photos, arrays of images or texts behind one interface."""
    if isinstance(X, Photos):
        return Samples(len(X), X.digest, X.rows)
    if isinstance(X, (list, tuple)):
        return Samples(len(X), cache.key("texts", *(repr(text) for text in X)), lambda _, a, b: (X[a:b], {}))
    image_shape(X.shape)
    total = sha256(f"{X.dtype} {X.shape} {span}".encode())
    for rows in row_chunks(X):
        total.update(np.ascontiguousarray(X[rows]).data)
    span = span or _span(X, None)
    return Samples(len(X), total.hexdigest(), lambda size, a, b: (_resized(raw(X, slice(a, b)), size, span), {}))


def _span(X: Any, known: Range | None) -> Range | None:
    """The range that is scaled to 0 to 255, for images that are not bytes; photos know theirs already."""
    if isinstance(X, (list, tuple, Photos)) or X.dtype == np.uint8:
        return None
    if known:
        return known
    ends = [(float(np.min(X[rows])), float(np.max(X[rows]))) for rows in row_chunks(X)]
    return min(low for low, _ in ends), max(high for _, high in ends)


def _resized(images: np.ndarray, size: int, span: Range | None) -> np.ndarray:
    """Images (n, c, h, w) as (n, size, size, 3) of bytes: the middle square, in RGB."""
    if span:
        images = np.clip((images - span[0]) * (255 / ((span[1] - span[0]) or 1)), 0, 255).round()
    pixels = images[:, [0, 0, 0] if images.shape[1] == 1 else [0, 1, 2]].transpose(0, 2, 3, 1).astype(np.uint8)
    return np.stack([np.asarray(middle_square(Image.fromarray(image), size)) for image in pixels])


def _without(X: Any, bad: dict[int, str]) -> Any:
    """The samples to show to people: photo files, texts or images."""
    if isinstance(X, Photos):
        return [file for i, file in enumerate(X.files) if i not in bad]
    return X
