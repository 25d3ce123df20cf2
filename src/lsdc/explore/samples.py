"""Samples as people see them: names, pictures, texts, and what a search finds."""

import io

import numpy as np
from PIL import Image

from lsdc.data.reading import Dataset
from lsdc.data.seen import Seen, seen
from lsdc.data.sources import raw

SIDES = {"small": 160, "large": 640}  # pixels; of files, which may have more than the model was shown
EXCERPT = 240
LONGEST_TEXT = 20_000


class Samples:
    """The samples of a run: their ids, and once the data is read, pictures and texts."""

    def __init__(self, ids: list[str]) -> None:
        self.ids = ids
        self._words = [name.casefold() for name in ids]
        self._data: Dataset | None = None
        self._seen = Seen()

    @property
    def kind(self) -> str:
        """What there is to see: "images", "texts" or "ids"."""
        return self._seen.kind

    def show(self, dataset: Dataset) -> None:
        """Take in the data, so that pictures and texts can be shown."""
        found = seen(dataset)
        if found.texts:
            self._words = [f"{name}\n{text}".casefold() for name, text in zip(self.ids, found.texts, strict=True)]
        self._data, self._seen = dataset, found

    def found(self, rows: np.ndarray, wanted: str) -> np.ndarray:
        """The rows whose name or text contains ``wanted``, ignoring case."""
        wanted = wanted.casefold().strip()
        return np.array([i for i in rows if wanted in self._words[i]], np.int64) if wanted else rows

    def text(self, i: int, most: int = EXCERPT) -> str | None:
        """The beginning of a sample's text, cut at a word."""
        if self.kind != "texts":
            return None
        text = self._seen.texts[i]
        if len(text) <= most:
            return text
        return text[:most].rsplit(None, 1)[0] + " …"

    def values(self, i: int) -> list[float] | None:
        """The first numbers of a sample that is a vector."""
        if self._data is None or self.kind != "ids":
            return None
        return [float(value) for value in raw(self._data.X, [i])[0][:64]]

    def picture(self, i: int, size: str) -> bytes | None:
        """A sample as a PNG or JPEG file, if it is an image; from its file where there is one."""
        if self.kind != "images":
            return None
        read = self._seen.from_file(i, SIDES[size])
        if read is not None:
            return _encoded(read, "JPEG")
        images = self._seen.images
        return None if images is None else _encoded(raw(images, [i])[0].transpose(1, 2, 0), "PNG")


def _encoded(pixels: np.ndarray, form: str) -> bytes:
    """Pixels (h, w) or (h, w, c) of any range as a file."""
    values = np.asarray(pixels, np.float64)
    if pixels.dtype != np.uint8:
        values = (values - values.min()) / ((values.max() - values.min()) or 1) * 255
    image = Image.fromarray(np.squeeze(values.astype(np.uint8), 2) if values.shape[2:] == (1,) else values.astype("B"))
    stream = io.BytesIO()
    image.save(stream, form if image.mode in ("L", "RGB") else "PNG", quality=88)
    return stream.getvalue()
