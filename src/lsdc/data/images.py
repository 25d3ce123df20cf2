"""Folders of images as one array."""

import os
import struct
import warnings
import zlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageOps

from lsdc.data.dataset import Dataset
from lsdc.data.spreadsheet import safe_path
from lsdc.errors import InputError, reason

IMAGES = {".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff"}
FORMATS = ("PNG", "JPEG", "BMP", "GIF", "WEBP", "TIFF")  # whatever the name says; EPS, for one, runs a program
BROKEN = (OSError, SyntaxError, ValueError, Image.DecompressionBombError, struct.error, zlib.error)


DEEP = ("I", "F")  # grey values of no fixed range: whole numbers of 32 bits, floats
GREY = 128  # behind what is transparent: neither black nor white drawings vanish on it
Range = tuple[float, float]


def image_folder(path: str | Path, size: int = 32, image_range: Range | None = None) -> Dataset:
    """All images below a folder, scaled to ``size`` (shorter side, then the middle square), as RGB from 0 to 255.

    ``image_range`` is what becomes 0 and 255 of images whose values have no fixed range; by default what they have.
    """
    path = Path(path)
    found = (file for file in path.rglob("*") if file.suffix.lower() in IMAGES and not file.name.startswith("."))
    files = sorted(file for file in found if file.is_file())
    if not files:
        raise InputError(f"{path}: no images in this folder ({', '.join(sorted(IMAGES))})")
    read = read_images(files, size)
    ids = [safe_path(file.relative_to(path).as_posix()) for file in files]
    good = [(name, image) for name, image in zip(ids, read, strict=True) if isinstance(image, np.ndarray)]
    skipped = [(name, str(error)) for name, error in zip(ids, read, strict=True) if isinstance(error, InputError)]
    if not good:
        raise InputError(skipped[0][1] + (f"; nor are the {len(files) - 1} others" if len(files) > 1 else ""))
    images, span = _scaled([image for _, image in good], image_range)
    notes = (f"images of 32 bits or floats: values from {span[0]:g} to {span[1]:g} become 0 to 255",) if span else ()
    names = [name for name, _ in good]
    return Dataset(str(path), images, ids=names, notes=notes, image_range=span, skipped=tuple(skipped))


def are_files(X: Any) -> bool:
    """Whether X is a list of paths, or of strings that are all named like images."""
    if not isinstance(X, (list, tuple)) or not X or not all(isinstance(item, (str, os.PathLike)) for item in X):
        return False
    return any(not isinstance(item, str) for item in X) or all(Path(item).suffix.lower() in IMAGES for item in X)


def image_files(X: Sequence[str | os.PathLike[str]], size: int) -> np.ndarray:
    """Images by their paths, as one array."""
    files = [Path(item) for item in X]
    if missing := [i for i, file in enumerate(files) if not file.is_file()]:
        i = missing[0]
        raise InputError(f"X holds names of images, but {str(files[i])!r} in row {i} (counting from 0) is no file")
    images = []
    for image in read_images(files, size):
        if isinstance(image, InputError):
            raise image
        images.append(image)
    if deep := [file for file, image in zip(files, images, strict=True) if image.ndim == 2]:
        raise InputError(
            f"X names images of 32 bits or floats ({deep[0]}), whose range is not known; give them as one array"
        )
    return np.stack(images)


def read_images(files: Sequence[Path], size: int) -> list[np.ndarray | InputError]:
    """Images (h, w, 3) of bytes, of floats from 0 to 255 if they had 16 bits; (h, w) where their range is not known.

    In the place of a file that is no readable image stands what is wrong with it.
    """
    with warnings.catch_warnings(), ThreadPoolExecutor() as pool:
        warnings.filterwarnings("ignore", module="PIL")  # odd metadata, and sizes that are fine up to twice as large
        return list(pool.map(lambda file: _read_image(file, size), files))


def _scaled(images: list[np.ndarray], span: Range | None) -> tuple[np.ndarray, Range | None]:
    """All images as one array; those of no known range are brought from ``span``, or from what they have, to 0 to 255.

    One range for all: what is darker than another image stays so, and new images are scaled as the first ones were.
    """
    deep = [image for image in images if image.ndim == 2]
    if not deep:
        return np.stack(images), None
    low, high = span or (min(float(image.min()) for image in deep), max(float(image.max()) for image in deep))
    factor = 255 / ((high - low) or 1)
    result = np.empty((len(images), *images[0].shape[:2], 3), np.float32)
    for row, image in zip(result, images, strict=True):
        row[:] = image if image.ndim == 3 else (np.clip(image, low, high) - low)[:, :, None] * factor
    return result, (low, high)


def _read_image(file: Path, size: int) -> np.ndarray | InputError:
    """The first frame, upright."""
    try:
        with Image.open(file, formats=FORMATS) as image:
            image.draft("RGB", (2 * size, 2 * size))  # JPEGs are decoded at a fraction of their size
            plain = _plain(ImageOps.exif_transpose(image))
    except BROKEN as error:
        return InputError(f"{file}: not a readable image ({reason(error)})")
    side = min(plain.size)
    left, top = (plain.width - side) // 2, (plain.height - side) // 2
    box = (left, top, left + side, top + side)
    pixels = np.asarray(plain.resize((size, size), Image.Resampling.BICUBIC, box=box))
    if plain.mode != "F":
        return pixels
    pixels = np.clip(pixels, *plain.getextrema())  # cubic curves go beyond the values they pass through
    return pixels if image.mode in DEEP else np.repeat(pixels[:, :, None] / 257, 3, axis=2)


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
