"""Photos: found, decoded once on all cores, and cached as one array."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from lsdc.data import cache
from lsdc.data.cache import Rows, Watch, quiet
from lsdc.data.decode import DEEP, Range, ends_of, inspected, pool, read_image, scaled
from lsdc.data.reading import Dataset, replaced
from lsdc.data.spreadsheet import safe_path
from lsdc.errors import InputError

IMAGES = {".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".heic", ".heif", ".avif"}
NO_PHOTOS = {"Thumbs.db", "desktop.ini", "__MACOSX", "@eaDir"}  # what systems leave beside and of people's files
NO_IMAGE = "not an image, by its name"
FEW = 32  # so few images are decoded faster than cached
PART = 2**26  # bytes of pixels cached at a time
VERSION = "1"  # incremented when the same file gives different pixels, so that older caches are ignored


@dataclass(frozen=True)
class Photos:
    """Image files whose digests and modes are known; pixels are read when needed."""

    files: Sequence[Path]
    digests: Sequence[str]  # of their bytes
    dtype: type[np.generic]  # uint8, or float32 if any image has more than 8 bits
    span: Range | None = None  # scaled to 0 to 255, for images without a fixed range of values

    def __len__(self) -> int:
        return len(self.files)

    def rows(self, size: int, start: int, stop: int) -> Rows:
        """Some images as (n, size, size, 3), and why others cannot be read, by position."""
        with pool() as run:
            read = run(partial(read_image, size=size), self.files[start:stop])
        bad = {start + i: image for i, image in enumerate(read) if isinstance(image, str)}
        good = [scaled(image, self.span) for image in read if not isinstance(image, str)]
        return np.array(good, self.dtype).reshape(-1, size, size, 3), bad

    def pixels(self, size: int, watch: Watch = quiet) -> Rows:
        """All images, decoded once; the array stays on disk, so it need not fit into memory."""

        def compute(start: int, stop: int) -> Rows:
            watch("decoding", start, len(self))
            rows = self.rows(size, start, stop)
            watch("decoding", stop, len(self))
            return rows

        part = max(1, min(1024, PART // (size * size * 3)))
        if len(self) <= FEW:
            return cache.computed(len(self), compute, part)
        return cache.cached(cache.key("pixels", str(size), self.digest), len(self), compute, part)

    @property
    def digest(self) -> str:
        """One digest of everything that decides the pixels but their size."""
        return cache.key(VERSION, str(self.span), *self.digests)


def photos(files: Sequence[Path], span: Range | None = None, watch: Watch = quiet) -> Photos:
    """Inspect files: what they contain, and the range of those without a fixed one."""
    digests, modes = [], []
    watch("looking at files", 0, len(files))
    with pool() as run:
        for start in range(0, len(files), 1024):
            for digest, mode in run(inspected, files[start : start + 1024]):
                digests.append(digest)
                modes.append(mode)
            watch("looking at files", len(digests), len(files))
        deep = [file for file, mode in zip(files, modes, strict=True) if mode in DEEP]
        ends = [end for end in run(ends_of, deep) if end is not None]
    if ends:
        span = span or (min(low for low, _ in ends), max(high for _, high in ends))
    dtype = np.float32 if any(mode.startswith(DEEP) for mode in modes) else np.uint8
    return Photos(files, digests, dtype, span if ends else None)


def find(path: Path) -> tuple[list[Path], list[tuple[str, str]]]:
    """The images below a folder, by file ending, and the other files."""
    there = sorted(file for file in _below(path) if not _is_hidden(file.name))
    there = [file for file in there if file.is_file() or not file.exists()]  # a dangling link is listed too
    other = [(name_in(path, file), NO_IMAGE) for file in there if file.suffix.lower() not in IMAGES]
    files = [file for file in there if file.suffix.lower() in IMAGES]
    if not files:
        raise InputError(f"{path}: no images in this folder ({', '.join(sorted(IMAGES))})")
    return files, other


def _below(path: Path) -> Iterator[Path]:
    """All files below a folder, then those in folders it links to, each folder once; hidden ones and thumbnails not."""
    seen, waiting = set[str](), [str(path)]
    while waiting:
        for folder, folders, files in os.walk(waiting.pop(0)):
            again = os.path.realpath(folder) in seen
            folders[:] = [] if again else [name for name in sorted(folders) if not _is_hidden(name)]
            seen.add(os.path.realpath(folder))
            waiting += [link for name in folders if os.path.islink(link := os.path.join(folder, name))]
            yield from (Path(folder, name) for name in files if not again)


def _is_hidden(name: str) -> bool:
    return name.startswith(".") or name in NO_PHOTOS


def name_in(path: Path, file: Path) -> str:
    """The id of an image: its path below the folder."""
    return safe_path(file.relative_to(path).as_posix())


def image_folder(path: str | Path, size: int = 32, image_range: Range | None = None, watch: Watch = quiet) -> Dataset:
    """All images below a folder, or one image, scaled to ``size`` (shorter side, then the middle square), as RGB.

    ``image_range`` is what is scaled to 0 to 255 for images without a fixed range of values; by default their own.
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
    """A data set of photos, decoded to images of ``size``."""
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
        raise InputError(f"X lists image files, but {str(files[i])!r} in row {i} (counting from 0) does not exist")
    found = photos(files)
    if found.span:
        raise InputError(
            f"X lists images of 32 bits or floats ({_first_deep(files)}), whose range is unknown; "
            "pass them as one array"
        )
    return found


def image_files(X: Sequence[str | os.PathLike[str]], size: int) -> np.ndarray:
    """Images by their paths, as one array."""
    found = listed_photos(X)
    images, bad = found.pixels(size)
    refuse_bad(found, bad)
    return images


def refuse_bad(found: Photos, bad: dict[int, str]) -> None:
    """Refuse to leave out images that were listed one by one."""
    if bad:
        first = min(bad)
        raise InputError(f"{found.files[first]}: {bad[first]}")


def _first_deep(files: Sequence[Path]) -> Path:
    return next(file for file in files if inspected(file)[1] in DEEP)
