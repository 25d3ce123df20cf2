"""Folders of images as one array."""

import struct
import warnings
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps

from lsdc.data.dataset import Dataset
from lsdc.data.spreadsheet import safe_path
from lsdc.errors import InputError, reason

IMAGES = {".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff"}
FORMATS = ("PNG", "JPEG", "BMP", "GIF", "WEBP", "TIFF")  # whatever the name says; EPS, for one, runs a program
BROKEN = (OSError, SyntaxError, ValueError, Image.DecompressionBombError, struct.error, zlib.error)


def image_folder(path: Path, size: int = 32) -> Dataset:
    """All images below a folder, scaled to ``size`` (shorter side, then the middle square), as RGB bytes."""
    found = (file for file in path.rglob("*") if file.suffix.lower() in IMAGES and not file.name.startswith("."))
    files = sorted(file for file in found if file.is_file())
    if not files:
        raise InputError(f"{path}: no images in this folder ({', '.join(sorted(IMAGES))})")
    with warnings.catch_warnings(), ThreadPoolExecutor() as pool:
        warnings.filterwarnings("ignore", module="PIL")  # odd metadata, and sizes that are fine up to twice as large
        images = list(pool.map(lambda file: _read_image(file, size), files))
    return Dataset(str(path), np.stack(images), ids=[safe_path(file.relative_to(path).as_posix()) for file in files])


def _read_image(file: Path, size: int) -> np.ndarray:
    try:
        with Image.open(file, formats=FORMATS) as image:
            image.draft("RGB", (2 * size, 2 * size))  # JPEGs are decoded at a fraction of their size
            rgb = ImageOps.exif_transpose(image).convert("RGB")
    except BROKEN as error:
        raise InputError(f"{file}: not a readable image ({reason(error)})") from None
    side = min(rgb.size)
    left, top = (rgb.width - side) // 2, (rgb.height - side) // 2
    box = (left, top, left + side, top + side)
    return np.asarray(rgb.resize((size, size), Image.Resampling.BICUBIC, box=box))
