"""Images for a page: each as a data URL, or many in one sheet."""

import base64
import io
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from lsdc.data.decode import GREY, on_grey, pool
from lsdc.data.seen import Seen
from lsdc.data.sources import raw

SIDE = 160  # of a single image at most
TILE = 32  # of an image in the sheet at most
BLOCK = 8  # of JPEG: tiles of whole blocks do not bleed into each other
SHEET_BYTES = 1_500_000
EXACT_BYTES = 3000  # of an image without loss
CHUNK = 500

Rows = NDArray[np.int64]


class Sheet(NamedTuple):
    """Many images as one data URL: images per line, the side of a tile, and the size of an image in it."""

    address: str
    across: int
    tile: int
    width: int
    height: int


class Pictures:
    """The images of a data set, all shown on one brightness scale."""

    def __init__(self, seen: Seen, rows: Rows) -> None:
        self.seen = seen
        self.low, self.high = 0.0, 255.0
        if seen.images is not None and seen.images.dtype != np.uint8:
            parts = [(float(part.min()), float(part.max())) for part in self._raw(rows)]
            self.low, self.high = min(low for low, _ in parts), max(high for _, high in parts)

    def _raw(self, rows: Rows) -> Iterator[np.ndarray]:
        return (raw(self.seen.images, rows[i : i + CHUNK]) for i in range(0, len(rows), CHUNK))

    def addresses(self, rows: Rows) -> list[str]:
        """One data URL per image, from its file if there is one, which shows more than the network saw."""
        with pool() as run:
            read = run(lambda i: self.seen.from_file(i, SIDE), rows.tolist())
        originals = [image for image in read if image is not None]
        if len(originals) == len(rows):
            return [_address(Image.fromarray(image)) for image in originals]
        return [_address(image) for image in self._images(rows, SIDE)]

    def _images(self, rows: Rows, side: int) -> Iterator[Image.Image]:
        """As the model saw them, or from their files; one that is gone is grey."""
        if self.seen.images is not None:
            yield from (self._image(picture) for part in self._raw(rows) for picture in part)
            return
        for start in range(0, len(rows), CHUNK):
            with pool() as run:
                read = run(lambda i: self.seen.from_file(i, side), rows[start : start + CHUNK].tolist())
            for image in read:
                yield Image.new("RGB", (side, side), (GREY,) * 3) if image is None else Image.fromarray(image)

    def sheet(self, rows: Rows) -> "Sheet":
        """All of them in one image, each in the upper left corner of its tile."""
        first = _within(next(self._images(rows[:1], TILE)), TILE)
        tile = -(-max(first.size) // BLOCK) * BLOCK
        across = int(np.ceil(np.sqrt(len(rows))))
        whole = Image.new(first.mode, (across * tile, -(-len(rows) // across) * tile))
        for i, image in enumerate(self._images(rows, TILE)):
            whole.paste(_within(image, TILE), (i % across * tile, i // across * tile))
        return Sheet(_small(whole), across, tile, *first.size)

    def _image(self, picture: np.ndarray) -> Image.Image:
        """An image (c, h, w) of any range, in grey or colours."""
        values = (picture.transpose(1, 2, 0).astype(np.float64) - self.low) / ((self.high - self.low) or 1)
        pixels = (np.clip(values, 0, 1) * 255).astype(np.uint8)
        image = Image.fromarray(pixels[:, :, 0] if len(picture) == 1 else pixels)
        return on_grey(image) if image.mode == "RGBA" else image


def _within(image: Image.Image, side: int) -> Image.Image:
    """The image, scaled down to fit into a square."""
    factor = side / max(image.size)
    if factor >= 1:
        return image
    size = (max(1, round(image.width * factor)), max(1, round(image.height * factor)))
    return image.resize(size, Image.Resampling.LANCZOS)


def _small(sheet: Image.Image) -> str:
    """The sheet in as many bytes as there is room for: photos fit at the first try, noise is the worst."""
    exact = _encoded(sheet, "PNG") if max(sheet.size) < 1000 else b""
    content = b""
    for quality in (80, 60, 40, 20):
        content = _encoded(sheet, "JPEG", quality=quality, subsampling=0)
        if len(content) <= SHEET_BYTES:
            break
    return _data("png", exact) if 0 < len(exact) < len(content) else _data("jpeg", content)


def _address(image: Image.Image) -> str:
    """A data URL: lossless for drawings and small images, JPEG for photos."""
    image = _within(image, SIDE)
    if len(_encoded(image, "PNG", compress_level=1)) < 4 * EXACT_BYTES:  # a tenth of the time tells photos apart
        exact = _encoded(image, "PNG", optimize=True)
        if len(exact) < EXACT_BYTES:
            return _data("png", exact)
    return _data("jpeg", _encoded(image, "JPEG", quality=80))


def _encoded(image: Image.Image, kind: str, **options: Any) -> bytes:
    stream = io.BytesIO()
    image.save(stream, kind, **options)
    return stream.getvalue()


def _data(kind: str, content: bytes) -> str:
    return f"data:image/{kind};base64,{base64.b64encode(content).decode()}"
