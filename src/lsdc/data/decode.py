"""Any image that Pillow can read as plain pixels: upright, on an even background, within a budget."""

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

FORMATS = ("PNG", "JPEG", "BMP", "GIF", "WEBP", "TIFF")  # whatever the name says; EPS would run a program
BROKEN = (  # what Pillow lets out of a damaged file, metadata above all; a lack of memory is not the file's fault
    OSError,
    SyntaxError,
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    ArithmeticError,
    RuntimeError,
    AssertionError,
    EOFError,
    Image.DecompressionBombError,
    struct.error,
    zlib.error,
)
DEEP = ("I", "F")  # grey values without a fixed range: 32-bit integers and floats
GREY = 128  # behind transparent pixels: neither black nor white drawings vanish on it
ORIENTATION = 0x0112
TURNED = (Turn.FLIP_LEFT_RIGHT, Turn.ROTATE_180, Turn.FLIP_TOP_BOTTOM, Turn.TRANSPOSE)
TURNS = dict(enumerate((*TURNED, Turn.ROTATE_270, Turn.TRANSVERSE, Turn.ROTATE_90), start=2))  # by the tag's value
Range = tuple[float, float]
decoding = Decoding()


@contextmanager
def pool() -> Iterator[Callable[[Callable[[Any], Any], Sequence[Any]], list[Any]]]:
    """Run a function over files, or their numbers, on all cores; Pillow decodes and scales without holding the GIL."""
    with warnings.catch_warnings(), ThreadPoolExecutor() as workers:
        warnings.filterwarnings("ignore", module="PIL")  # about odd metadata, and sizes within our limit
        yield lambda function, files: list(workers.map(function, files))


@once
def _formats() -> tuple[str, ...]:
    """The formats this installation reads: AVIF comes with most builds of Pillow, HEIC with pillow-heif."""
    with suppress(ImportError):
        from pillow_heif import register_heif_opener

        register_heif_opener()
    Image.init()
    return tuple(name for name in (*FORMATS, "AVIF", "HEIF") if name in Image.OPEN)


def inspected(file: Path) -> tuple[str, str]:
    """The digest of a file and its pixel mode, "" if it is not an image."""
    digest = ""
    try:
        with file.open("rb") as stream:
            digest = file_digest(stream, "sha256").hexdigest()
        with Image.open(file, formats=_formats()) as image:
            return digest, image.mode
    except BROKEN:
        return digest, ""


def ends_of(file: Path) -> Range | None:
    """The smallest and largest value of an image without a fixed range."""
    try:
        with Image.open(file, formats=_formats()) as image, decoding.room(*image.size):
            values = np.asarray(_converted(image))
            return float(values.min()), float(values.max())
    except BROKEN:
        return None


def scaled(image: np.ndarray, span: Range | None) -> np.ndarray:
    """An image with values from 0 to 255; one without a fixed range is scaled from ``span``.

    All images share one range, so darker ones stay darker, and new images are scaled like the first ones.
    """
    if image.ndim == 3 or span is None:
        return image
    low, high = span
    return np.repeat((np.clip(image, low, high) - low)[:, :, None] * (255 / ((high - low) or 1)), 3, axis=2)


def read_image(file: Path, size: int) -> np.ndarray | str:
    """The first frame, upright, as (size, size, 3), or (size, size) without a fixed range; else what is wrong.

    Values are bytes, or floats from 0 to 255 for 16-bit images.
    """
    try:
        with Image.open(file, formats=_formats()) as image:
            image.draft("RGB", (2 * size, 2 * size))  # JPEGs are decoded at a fraction of their size
            with decoding.room(*image.size):
                image.load()
                plain = _converted(_upright(image, _reduced(image, size)))
                deep = image.mode in DEEP
    except BROKEN as error:
        needs = file.suffix.lower() in (".heic", ".heif") and "HEIF" not in _formats()
        hint = "HEIC needs pillow-heif: pip install 'lsd-clusters[heif]'"
        return f"not a readable image ({hint if needs else reason(error)})"
    pixels = np.asarray(middle_square(plain, size))
    if plain.mode != "F":
        return pixels
    pixels = np.clip(pixels, *plain.getextrema())  # cubic interpolation overshoots
    return pixels if deep else np.repeat(pixels[:, :, None] / 257, 3, axis=2)


def _reduced(image: Image.Image, size: int) -> Image.Image:
    """A large image at a whole fraction of its size, before any conversion copies it."""
    factor = min(image.size) // (4 * size)
    mixes = image.mode in ("RGB", "RGBA", "L", "CMYK") and "transparency" not in image.info  # unlike a palette
    return image.reduce(factor) if factor > 1 and mixes else image


def _upright(source: Image.Image, image: Image.Image) -> Image.Image:
    """An image turned upright by its EXIF tag; an unreadable tag is ignored."""
    with suppress(*BROKEN):
        return image.transpose(TURNS[source.getexif()[ORIENTATION]])
    return image


def _converted(image: Image.Image) -> Image.Image:
    """An image in RGB on an even background, or in floats where a pixel has more than 8 bits."""
    if image.mode.startswith(DEEP):
        values = np.asarray(image, np.float32)
        if not np.isfinite(values).all():
            raise ValueError("it holds NaN or infinite values")
        return Image.fromarray(values)
    if "A" not in image.getbands() and "transparency" not in image.info:
        return image.convert("RGB")
    return on_grey(image)


def on_grey(image: Image.Image) -> Image.Image:
    """An image with transparent pixels, in RGB on an even background."""
    shown = image.convert("RGBA")
    return Image.alpha_composite(Image.new("RGBA", shown.size, (GREY, GREY, GREY, 255)), shown).convert("RGB")


def middle_square(image: Image.Image, size: int) -> Image.Image:
    """The middle of an image, as wide as its shorter side, scaled to (size, size)."""
    side = min(image.size)
    left, top = (image.width - side) // 2, (image.height - side) // 2
    return image.resize((size, size), Image.Resampling.BICUBIC, box=(left, top, left + side, top + side))
