"""What there is to see of samples: vectors are for the model, the photos and texts they were made of for people."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lsdc.data.decode import Range, read_image, scaled
from lsdc.data.reading import Dataset
from lsdc.data.texts import are_texts


@dataclass(frozen=True)
class Seen:
    """Texts, files of images, or arrays of them; of other data nothing."""

    texts: Sequence[str] = ()
    files: Sequence[Path] = ()
    images: Any = None
    span: Range | None = None  # what is black and white in images whose values have no fixed range

    @property
    def kind(self) -> str:
        """What there is to see, in a word."""
        return "texts" if self.texts else "images" if self.files or self.images is not None else "ids"

    def from_file(self, i: int, side: int) -> np.ndarray | None:
        """An image of its file as (side, side, 3) bytes: the model saw less of it than a person can."""
        read = read_image(self.files[i], side) if self.files else ""
        return None if isinstance(read, str) else _bytes(scaled(read, self.span))


def seen(dataset: Dataset) -> Seen:
    """What a person can see of a data set; files are those that were read, no others."""
    samples = dataset.X if dataset.samples is None else dataset.samples
    if isinstance(samples, list):
        return Seen(texts=samples) if are_texts(samples) else Seen(files=samples, span=dataset.image_range)
    if getattr(samples, "ndim", 2) < 3:
        return Seen()
    folder = Path(dataset.name)
    files = [folder / str(name) for name in dataset.ids] if dataset.ids is not None and folder.is_dir() else []
    return Seen(files=files, images=samples, span=dataset.image_range)


def _bytes(image: np.ndarray) -> np.ndarray:
    """Grey or coloured bytes; an image of unknown range is scaled to its own."""
    if image.dtype == np.uint8:
        return image
    if image.ndim == 2:
        image = scaled(image, (float(image.min()), float(image.max())))
    return np.asarray(np.clip(image, 0, 255), np.uint8)
