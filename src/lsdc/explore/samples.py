"""Samples as people see them: names, pictures, texts, and what a search finds."""

import io
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from lsdc.data.dataset import Dataset
from lsdc.data.decode import read_image
from lsdc.data.sources import raw

SIDES = {"small": 160, "large": 640}  # pixels; of files, which may have more than the model was shown
EXCERPT = 240
LONGEST_TEXT = 20_000


class Samples:
    """The samples of a run: always their ids, and once the data is read whatever can be shown of them."""

    def __init__(self, ids: list[str]) -> None:
        self.ids = ids
        self.kind = "ids"  # or "images", "texts": what there is to see
        self._words = [name.casefold() for name in ids]
        self._data: Any = None
        self._folder: Path | None = None

    def show(self, dataset: Dataset) -> None:
        """The data has been read: pictures and texts can be shown from now on."""
        X = dataset.X
        if isinstance(X, list):
            self._words = [f"{name}\n{text}".casefold() for name, text in zip(self.ids, X, strict=True)]
        self._data = X
        self._folder = Path(dataset.name) if Path(dataset.name).is_dir() else None
        self.kind = "texts" if isinstance(X, list) else "images" if getattr(X, "ndim", 2) > 2 else "ids"

    def found(self, rows: np.ndarray, wanted: str) -> np.ndarray:
        """Those of the rows whose name or text holds what is looked for, in any case."""
        wanted = wanted.casefold().strip()
        return np.array([i for i in rows if wanted in self._words[i]], np.int64) if wanted else rows

    def text(self, i: int, most: int = EXCERPT) -> str | None:
        """The beginning of a sample's text, cut at a word."""
        if self.kind != "texts":
            return None
        text: str = self._data[i]
        if len(text) <= most:
            return text
        return text[:most].rsplit(None, 1)[0] + " …"

    def values(self, i: int) -> list[float] | None:
        """The first numbers of a sample that is a vector."""
        if self._data is None or self.kind != "ids":
            return None
        return [float(value) for value in raw(self._data, [i])[0][:64]]

    def picture(self, i: int, size: str) -> bytes | None:
        """A sample as a PNG or JPEG file, if it is an image; from its file where there is one."""
        if self.kind != "images":
            return None
        if self._folder is not None:
            read = read_image(self._folder / self.ids[i], SIDES[size])
            if isinstance(read, np.ndarray):
                return _encoded(read, "JPEG")
        return _encoded(raw(self._data, [i])[0].transpose(1, 2, 0), "PNG")


def _encoded(pixels: np.ndarray, form: str) -> bytes:
    """Pixels (h, w) or (h, w, c) of any range as a file."""
    values = np.asarray(pixels, np.float64)
    if pixels.dtype != np.uint8:
        values = (values - values.min()) / ((values.max() - values.min()) or 1) * 255
    image = Image.fromarray(np.squeeze(values.astype(np.uint8), 2) if values.shape[2:] == (1,) else values.astype("B"))
    stream = io.BytesIO()
    image.save(stream, form if image.mode in ("L", "RGB") else "PNG", quality=88)
    return stream.getvalue()
