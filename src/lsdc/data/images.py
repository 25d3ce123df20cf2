"""Photos: found, decoded once on all cores, and kept as one array of bytes."""

import os
import struct
import warnings
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache as once
from functools import partial
from hashlib import file_digest
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from PIL.Image import Transpose as Turn

from lsdc.data import cache
from lsdc.data.budget import Decoding
from lsdc.data.cache import Rows, Watch, quiet
from lsdc.data.dataset import Dataset, replaced
from lsdc.data.spreadsheet import safe_path
from lsdc.errors import InputError, reason

IMAGES = {".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".heic", ".heif", ".avif"}
FORMATS = ("PNG", "JPEG", "BMP", "GIF", "WEBP", "TIFF")  # whatever the name says; EPS, for one, runs a program
BROKEN = (OSError, SyntaxError, ValueError, Image.DecompressionBombError, struct.error, zlib.error)
NO_IMAGE = "not an image, by its name"
FEW = 32  # images that are decoded faster than they would be kept
PART = 2**26  # bytes of pixels that are kept at a time
DEEP = ("I", "F")  # grey values of no fixed range: whole numbers of 32 bits, floats
GREY = 128  # behind what is transparent: neither black nor white drawings vanish on it
ORIENTATION = 0x0112
TURNS = dict(
    zip(
        range(2, 9),
        (
            Turn.FLIP_LEFT_RIGHT,
            Turn.ROTATE_180,
            Turn.FLIP_TOP_BOTTOM,
            Turn.TRANSPOSE,
            Turn.ROTATE_270,
            Turn.TRANSVERSE,
            Turn.ROTATE_90,
        ),
        strict=True,
    )
)
VERSION = "1"  # counted up when the same file gives other pixels: what was kept before is not used then
Range = tuple[float, float]
decoding = Decoding()


@dataclass(frozen=True)
class Photos:
    """Files of images; their content and kind are known, their pixels are read where they are needed."""

    files: Sequence[Path]
    digests: Sequence[str]  # of their bytes
    dtype: type[np.generic]  # bytes, or floats if any has more than 8 bits
    span: Range | None = None  # what becomes 0 and 255 of images whose values have no fixed range

    def __len__(self) -> int:
        return len(self.files)

    def rows(self, size: int, start: int, stop: int) -> Rows:
        """Some images as (n, size, size, 3), and why others cannot be read."""
        with _pool() as run:
            read = run(partial(_read_image, size=size), self.files[start:stop])
        bad = {start + i: image for i, image in enumerate(read) if isinstance(image, str)}
        good = [_scaled(image, self.span) for image in read if not isinstance(image, str)]
        return np.array(good, self.dtype).reshape(-1, size, size, 3), bad

    def pixels(self, size: int, watch: Watch = quiet) -> Rows:
        """All images, decoded once: the array stays on disk, so that it need not fit into memory."""

        def compute(start: int, stop: int) -> Rows:
            watch("decoding", start, len(self))
            rows = self.rows(size, start, stop)
            watch("decoding", stop, len(self))
            return rows

        part = max(1, min(1024, PART // (size * size * 3)))
        if len(self) <= FEW:
            return cache.computed(len(self), compute, part)
        return cache.kept(cache.key("pixels", str(size), self.digest), len(self), compute, part)

    @property
    def digest(self) -> str:
        """One digest of all that decides the pixels but their number."""
        return cache.key(VERSION, str(self.span), *self.digests)


def photos(files: Sequence[Path], span: Range | None = None, watch: Watch = quiet) -> Photos:
    """Look at files: what they are, by their content, and the range of those that have no fixed one."""
    digests, modes = [], []
    watch("looking at files", 0, len(files))
    with _pool() as run:
        for start in range(0, len(files), 1024):
            for digest, mode in run(_look, files[start : start + 1024]):
                digests.append(digest)
                modes.append(mode)
            watch("looking at files", len(digests), len(files))
        deep = [file for file, mode in zip(files, modes, strict=True) if mode in DEEP]
        ends = [end for end in run(_ends, deep) if end is not None]
    if ends:
        span = span or (min(low for low, _ in ends), max(high for _, high in ends))
    dtype = np.float32 if any(mode.startswith(DEEP) for mode in modes) else np.uint8
    return Photos(files, digests, dtype, span if ends else None)


def find(path: Path) -> tuple[list[Path], list[tuple[str, str]]]:
    """The images below a folder, by their names, and what else is there."""
    there = sorted(
        f for f in path.rglob("*") if not f.name.startswith(".") and f.name not in ("Thumbs.db", "desktop.ini")
    )
    there = [file for file in there if file.is_file() or not file.exists()]  # a link that leads nowhere is listed too
    other = [(name_in(path, file), NO_IMAGE) for file in there if file.suffix.lower() not in IMAGES]
    files = [file for file in there if file.suffix.lower() in IMAGES]
    if not files:
        raise InputError(f"{path}: no images in this folder ({', '.join(sorted(IMAGES))})")
    return files, other


def name_in(path: Path, file: Path) -> str:
    """The id of an image: its path below the folder."""
    return safe_path(file.relative_to(path).as_posix())


def image_folder(path: str | Path, size: int = 32, image_range: Range | None = None, watch: Watch = quiet) -> Dataset:
    """All images below a folder, or one image, scaled to ``size`` (shorter side, then the middle square), as RGB.

    ``image_range`` is what becomes 0 and 255 of images whose values have no fixed range; by default what they have.
    """
    return decoded(folder_of_photos(path, image_range, watch), size, watch)


def folder_of_photos(path: str | Path, image_range: Range | None = None, watch: Watch = quiet) -> Dataset:
    """All images below a folder, or one image, not yet decoded."""
    path = Path(path)
    files, other = find(path) if path.is_dir() else ([path], [])
    top = path if path.is_dir() else path.parent
    found = photos(files, image_range, watch)
    span = found.span
    notes = (f"images of 32 bits or floats: values from {span[0]:g} to {span[1]:g} become 0 to 255",) if span else ()
    ids = [name_in(top, file) for file in files]
    return Dataset(str(path), found, ids=ids, notes=notes, image_range=span, skipped=tuple(other))


def decoded(dataset: Dataset, size: int, watch: Watch = quiet) -> Dataset:
    """A data set of photos as one of images of ``size``."""
    return replaced(dataset, *dataset.X.pixels(size, watch))


def are_files(X: Any) -> bool:
    """Whether X is a list of paths, or of strings that are all named like images."""
    if not isinstance(X, (list, tuple)) or not X or not all(isinstance(item, (str, os.PathLike)) for item in X):
        return False
    return any(not isinstance(item, str) for item in X) or all(Path(item).suffix.lower() in IMAGES for item in X)


def listed_photos(X: Sequence[str | os.PathLike[str]]) -> Photos:
    """Images by their paths, not yet decoded."""
    files = [Path(item) for item in X]
    if missing := [i for i, file in enumerate(files) if not file.is_file()]:
        i = missing[0]
        raise InputError(f"X holds names of images, but {str(files[i])!r} in row {i} (counting from 0) is no file")
    found = photos(files)
    if found.span:
        raise InputError(
            f"X names images of 32 bits or floats ({_first_deep(files)}), whose range is not known; "
            "give them as one array"
        )
    return found


def image_files(X: Sequence[str | os.PathLike[str]], size: int) -> np.ndarray:
    """Images by their paths, as one array."""
    found = listed_photos(X)
    images, bad = found.pixels(size)
    refuse_bad(found, bad)
    return images


def refuse_bad(found: Photos, bad: dict[int, str]) -> None:
    """Of images that were named one by one, none may be left out."""
    if bad:
        first = min(bad)
        raise InputError(f"{found.files[first]}: {bad[first]}")


def _first_deep(files: Sequence[Path]) -> Path:
    return next(file for file in files if _look(file)[1] in DEEP)


@contextmanager
def _pool() -> Iterator[Callable[[Callable[[Path], Any], Sequence[Path]], list[Any]]]:
    """Runs a function over files on all cores; Pillow decodes and scales without Python's lock."""
    with warnings.catch_warnings(), ThreadPoolExecutor() as pool:
        warnings.filterwarnings("ignore", module="PIL")  # odd metadata, and sizes that are fine up to twice as large
        yield lambda function, files: list(pool.map(function, files))


@once
def _formats() -> tuple[str, ...]:
    """The formats that can be read here: AVIF comes with most builds of Pillow, HEIC with pillow-heif."""
    try:
        from pillow_heif import register_heif_opener
    except ImportError:
        return (*FORMATS, "AVIF")
    register_heif_opener()
    return (*FORMATS, "AVIF", "HEIF")


def _look(file: Path) -> tuple[str, str]:
    """The digest of a file, and the kind of its pixels; "" if it is no image."""
    digest = ""
    try:
        with file.open("rb") as stream:
            digest = file_digest(stream, "sha256").hexdigest()
        with Image.open(file, formats=_formats()) as image:
            return digest, image.mode
    except BROKEN:
        return digest, ""


def _ends(file: Path) -> Range | None:
    """The least and the greatest value of an image that has no fixed range."""
    try:
        with Image.open(file, formats=_formats()) as image, decoding.room(*image.size):
            values = np.asarray(_plain(image))
            return float(values.min()), float(values.max())
    except BROKEN:
        return None


def _scaled(image: np.ndarray, span: Range | None) -> np.ndarray:
    """An image of known range as it is; others are brought from ``span`` to 0 to 255.

    One range for all: what is darker than another image stays so, and new images are scaled as the first ones were.
    """
    if image.ndim == 3 or span is None:
        return image
    low, high = span
    return np.repeat((np.clip(image, low, high) - low)[:, :, None] * (255 / ((high - low) or 1)), 3, axis=2)


def _read_image(file: Path, size: int) -> np.ndarray | str:
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
