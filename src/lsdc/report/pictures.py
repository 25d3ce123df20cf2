"""Images for a page: each as an address that holds it, or many in one sheet."""

import base64
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from lsdc.data.dataset import Dataset
from lsdc.data.images import read_images
from lsdc.data.sources import raw

SIDE = 160  # of a single image at most
TILE = 32  # of an image in the sheet; a multiple of 16 keeps the neighbours out of each other's JPEG blocks
SHEET_BYTES = 1_500_000
CHUNK = 500
GREY = 128

Rows = NDArray[np.int64]


class Pictures:
    """The images of a data set, all shown with one range of brightness."""

    def __init__(self, dataset: Dataset, rows: Rows) -> None:
        self.dataset = dataset
        self.low, self.high = 0.0, 255.0
        if dataset.X.dtype != np.uint8:
            parts = [(float(part.min()), float(part.max())) for part in self._raw(rows)]
            self.low, self.high = min(low for low, _ in parts), max(high for _, high in parts)

    def _raw(self, rows: Rows) -> Iterator[np.ndarray]:
        return (raw(self.dataset.X, rows[i : i + CHUNK]) for i in range(0, len(rows), CHUNK))

    def addresses(self, rows: Rows) -> list[str]:
        """One address an image, from its file where there is one: the network saw less of it than a person can."""
        originals = self._originals(rows)
        images = originals or [self._image(picture) for part in self._raw(rows) for picture in part]
        return [_address(image) for image in images]

    def _originals(self, rows: Rows) -> list[Image.Image]:
        ids, folder = self.dataset.ids, Path(self.dataset.name)
        if ids is None or not folder.is_dir() or self.dataset.image_range:
            return []
        found = read_images([folder / str(ids[i]) for i in rows], SIDE)
        good = [image for image in found if isinstance(image, np.ndarray) and image.dtype == np.uint8]
        return [Image.fromarray(image) for image in good] if len(good) == len(rows) else []

    def sheet(self, rows: Rows) -> tuple[str, int]:
        """All of them as one image of tiles, and how many stand in a line."""
        across = int(np.ceil(np.sqrt(len(rows))))
        whole = Image.new("RGB", (across * TILE, -(-len(rows) // across) * TILE), (GREY,) * 3)
        pictures = (picture for part in self._raw(rows) for picture in part)
        for i, picture in enumerate(pictures):
            tile = _sized(self._image(picture), TILE)
            left, top = (TILE - tile.width) // 2, (TILE - tile.height) // 2
            whole.paste(tile, (i % across * TILE + left, i // across * TILE + top))
        colours = "L" if raw(self.dataset.X, slice(0, 1)).shape[1] == 1 else "RGB"
        content = b""
        for quality in (80, 60, 40, 20):  # noise is the worst; photos fit at the first try
            content = _encoded(whole.convert(colours), "JPEG", quality=quality)
            if len(content) <= SHEET_BYTES:
                break
        return _data("jpeg", content), across

    def _image(self, picture: np.ndarray) -> Image.Image:
        """An image (c, h, w) of any range, in grey or colours."""
        values = (picture.transpose(1, 2, 0).astype(np.float64) - self.low) / ((self.high - self.low) or 1)
        image = Image.fromarray(np.squeeze((np.clip(values, 0, 1) * 255).astype(np.uint8), axis=2 if len(picture) == 1 else ()))
        if image.mode == "RGBA":
            ground = Image.new("RGBA", image.size, (GREY, GREY, GREY, 255))
            return Image.alpha_composite(ground, image).convert("RGB")
        return image


def _sized(image: Image.Image, side: int) -> Image.Image:
    """As large as fits: small images in whole pixels, large ones smoothly."""
    factor = side / max(image.size)
    size = (max(1, round(image.width * factor)), max(1, round(image.height * factor)))
    return image.resize(size, Image.Resampling.NEAREST if factor > 1 else Image.Resampling.LANCZOS)


def _address(image: Image.Image) -> str:
    """Whichever is shorter: exact for drawings and small ones, JPEG for photos."""
    image = _sized(image, SIDE) if max(image.size) > SIDE else image
    exact = _encoded(image, "PNG", optimize=True)
    if len(exact) < 3000:
        return _data("png", exact)
    return _data("jpeg", _encoded(image, "JPEG", quality=80))


def _encoded(image: Image.Image, kind: str, **options: Any) -> bytes:
    stream = io.BytesIO()
    image.save(stream, kind, **options)
    return stream.getvalue()


def _data(kind: str, content: bytes) -> str:
    return f"data:image/{kind};base64,{base64.b64encode(content).decode()}"


