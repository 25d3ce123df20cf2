"""One image of any kind as plain pixels: what Pillow can read, upright, on an even ground, within a budget."""

import struct
import warnings
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cache as once
from hashlib import file_digest
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from PIL.Image import Transpose as Turn

from lsdc.data.budget import Decoding
from lsdc.errors import reason

FORMATS = ("PNG", "JPEG", "BMP", "GIF", "WEBP", "TIFF")  # whatever the name says; EPS, for one, runs a program
BROKEN = (OSError, SyntaxError, ValueError, Image.DecompressionBombError, struct.error, zlib.error)
DEEP = ("I", "F")  # grey values of no fixed range: whole numbers of 32 bits, floats
GREY = 128  # behind what is transparent: neither black nor white drawings vanish on it
ORIENTATION = 0x0112
TURNED = (Turn.FLIP_LEFT_RIGHT, Turn.ROTATE_180, Turn.FLIP_TOP_BOTTOM, Turn.TRANSPOSE)
TURNS = dict(enumerate((*TURNED, Turn.ROTATE_270, Turn.TRANSVERSE, Turn.ROTATE_90), start=2))  # by the tag's value
Range = tuple[float, float]
decoding = Decoding()


@contextmanager
def pool() -> Iterator[Callable[[Callable[[Any], Any], Sequence[Any]], list[Any]]]:
    """Runs a function over files, or their numbers, on all cores; Pillow decodes and scales without Python's lock."""
    with warnings.catch_warnings(), ThreadPoolExecutor() as workers:
        warnings.filterwarnings("ignore", module="PIL")  # odd metadata, and sizes that are fine up to twice as large
        yield lambda function, files: list(workers.map(function, files))


@once
def _formats() -> tuple[str, ...]:
    """The formats that can be read here: AVIF comes with most builds of Pillow, HEIC with pillow-heif."""
    with suppress(ImportError):
        from pillow_heif import register_heif_opener

        register_heif_opener()
    Image.init()
    return tuple(name for name in (*FORMATS, "AVIF", "HEIF") if name in Image.OPEN)


def look(file: Path) -> tuple[str, str]:
    """The digest of a file, and the kind of its pixels; "" if it is no image."""
    digest = ""
    try:
        with file.open("rb") as stream:
            digest = file_digest(stream, "sha256").hexdigest()
        with Image.open(file, formats=_formats()) as image:
            return digest, image.mode
    except BROKEN:
        return digest, ""


def ends_of(file: Path) -> Range | None:
    """The least and the greatest value of an image that has no fixed range."""
    try:
        with Image.open(file, formats=_formats()) as image, decoding.room(*image.size):
            values = np.asarray(_plain(image))
            return float(values.min()), float(values.max())
    except BROKEN:
        return None


def scaled(image: np.ndarray, span: Range | None) -> np.ndarray:
    """An image of known range as it is; others are brought from ``span`` to 0 to 255.

    One range for all: what is darker than another image stays so, and new images are scaled as the first ones were.
    """
    if image.ndim == 3 or span is None:
        return image
    low, high = span
    return np.repeat((np.clip(image, low, high) - low)[:, :, None] * (255 / ((high - low) or 1)), 3, axis=2)


def read_image(file: Path, size: int) -> np.ndarray | str:
    """The first frame, upright, as (size, size, 3), or (size, size) if its range is not known; else what is wrong.

    Values are bytes, or floats from 0 to 255 of images of 16 bits.
    """
    try:
        with Image.open(file, formats=_formats()) as image:
            image.draft("RGB", (2 * size, 2 * size))  # JPEGs are decoded at a fraction of their size
            with decoding.room(*image.size):
                image.load()
                plain = _plain(_upright(image, _reduced(image, size)))
                deep = image.mode in DEEP
    except BROKEN as error:
        needs = file.suffix.lower() in (".heic", ".heif") and "HEIF" not in _formats()
        hint = "HEIC needs pillow-heif: pip install 'lsd-clusters[heif]'"
        return f"not a readable image ({hint if needs else reason(error)})"
    side = min(plain.size)
    left, top = (plain.width - side) // 2, (plain.height - side) // 2
    box = (left, top, left + side, top + side)
    pixels = np.asarray(plain.resize((size, size), Image.Resampling.BICUBIC, box=box))
    if plain.mode != "F":
        return pixels
    pixels = np.clip(pixels, *plain.getextrema())  # cubic curves go beyond the values they pass through
    return pixels if deep else np.repeat(pixels[:, :, None] / 257, 3, axis=2)


def _reduced(image: Image.Image, size: int) -> Image.Image:
    """A large image at a whole fraction of its size, before it is copied from one form into another."""
    factor = min(image.size) // (4 * size)
    plain = image.mode in ("RGB", "RGBA", "L", "CMYK") and "transparency" not in image.info  # a colour not to be mixed
    return image.reduce(factor) if factor > 1 and plain else image


def _upright(source: Image.Image, image: Image.Image) -> Image.Image:
    """An image as its camera was held; a tag that cannot be read says nothing."""
    with suppress(*BROKEN, TypeError, LookupError, AttributeError, ArithmeticError, RuntimeError):
        return image.transpose(TURNS[source.getexif()[ORIENTATION]])
    return image


def _plain(image: Image.Image) -> Image.Image:
    """An image in RGB on an even ground, or in floats where a pixel is more than a byte."""
    if image.mode.startswith(DEEP):
        values = np.asarray(image, np.float32)
        if not np.isfinite(values).all():
            raise ValueError("it holds NaN or infinite values")
        return Image.fromarray(values)
    if "A" not in image.getbands() and "transparency" not in image.info:
        return image.convert("RGB")
    shown = image.convert("RGBA")
    return Image.alpha_composite(Image.new("RGBA", shown.size, (GREY, GREY, GREY, 255)), shown).convert("RGB")
