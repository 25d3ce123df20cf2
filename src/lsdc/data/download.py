"""Official files: where to get them, their checksums, and downloads that are complete or leave nothing."""

import gzip
import hashlib
import logging
import math
import os
import shutil
import tarfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from http.client import HTTPException
from os.path import isfile
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

import numpy as np

from lsdc.data import budget
from lsdc.data.budget import check_disk
from lsdc.data.cache import Watch, quiet
from lsdc.errors import InputError
from lsdc.interrupt import Interrupt

log = logging.getLogger("lsdc")
watching: ContextVar[Watch] = ContextVar("watching", default=quiet)  # who is shown how far downloads are

OFFLINE = "LSDC_OFFLINE"  # set to any value, it forbids downloads
CHUNK = 2**18
MB = 10**6
BROKEN = (OSError, ValueError, EOFError, HTTPException, zlib.error, tarfile.TarError)  # a bad network, disk or file


@dataclass(frozen=True)
class OfficialFiles:
    """The files of a data set with the md5 of their unpacked bytes, and where to download them."""

    folder: str
    files: Mapping[str, str]
    urls: tuple[str, ...]  # mirrors, with single gzipped files unless there is an archive
    archive: str = ""
    archive_md5: str = ""
    extra: tuple[str, ...] = ()  # unpacked with the others, but optional
    also: tuple[str, ...] = (".",)  # other folders below the root where the files may be
    pickled: bool = False
    timeout: float = 20.0  # seconds to wait for a sign of life

    def place(self, root: Path) -> Path:
        """The folder that has all files, else the one they belong in."""
        folders = [root / name for name in (self.folder, *self.also)]
        return next((folder for folder in folders if not self.missing(folder)), folders[0])

    def missing(self, folder: Path) -> list[str]:
        """The files that a folder lacks."""
        return [name for name in self.files if not isfile(find(folder, name))]

    def served(self, name: str) -> str:
        """The name under which a file can be downloaded."""
        return self.archive or f"{name}.gz"

    def error(self, path: Path, reason: object) -> InputError:
        """What is wrong with a file, where to get it and where to put it."""
        name, line = path.name.removesuffix(".gz"), " ".join(str(reason).split())
        what = f"put its {name}" if self.archive else "put it"
        return InputError(f"{path}: {line}; get {self.urls[0]}{self.served(name)} and {what} into {path.parent}")


def find(folder: Path, name: str) -> Path:
    """A file, or its gzipped form if only that exists."""
    packed = folder / f"{name}.gz"
    return packed if isfile(packed) and not isfile(folder / name) else folder / name


def content(path: Path) -> np.ndarray:
    """The unpacked bytes of a file; one that is not packed is not copied into memory."""
    if path.suffix == ".gz":
        with gzip.open(path) as file:
            found = file.read(budget.UNPACKED + 1)
        if len(found) > budget.UNPACKED:
            raise ValueError(f"unpacks to more than {budget.UNPACKED:,} bytes")
        return np.frombuffer(found, np.uint8)
    if not path.stat().st_size:
        raise ValueError("the file is empty")
    return np.asarray(np.memmap(path, np.uint8, "r"))


def verify(found: np.ndarray, md5: str) -> None:
    """Raise ``ValueError`` for bytes that are not the official ones."""
    digest = hashlib.md5(np.ascontiguousarray(found).data, usedforsecurity=False).hexdigest()
    if digest != md5:
        raise ValueError(f"not the official file (md5 {digest} instead of {md5}, {len(found):,} bytes)")


def fetch(source: OfficialFiles, root: Path) -> Path:
    """The folder with all files of a data set; missing ones are downloaded."""
    folder, name, new = root / source.folder, next(iter(source.files)), False
    try:
        folder = source.place(root)
        if not (missing := source.missing(folder)):
            return folder
        name, new = missing[0], not root.exists()
        if os.environ.get(OFFLINE):
            raise OSError(f"{OFFLINE} is set")
        root.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=root, prefix=f".{source.folder}.") as temporary:
            stage = Path(temporary) / source.folder
            stage.mkdir()
            log.info("downloading %s%s into %s", source.urls[0], source.archive, folder)
            for name in missing[:1] if source.archive else missing:
                _download(source, name, stage)
            _put(stage, folder)
    except BaseException as error:
        if new:
            with suppress(OSError):
                root.rmdir()
        if not isinstance(error, BROKEN):
            raise
        reason = error.reason if type(error) is URLError else error
        raise source.error(folder / name, f"missing, and cannot be downloaded ({reason})") from None
    return folder


@contextmanager
def watched(watch: Watch) -> Iterator[None]:
    """Show the progress of downloads, in megabytes, to ``watch``."""
    before = watching.set(watch)
    try:
        yield
    finally:
        watching.reset(before)


def _download(source: OfficialFiles, name: str, stage: Path) -> None:
    """Download and check one file, or the archive with all of them, from the first mirror that has it."""
    target = stage.parent / source.archive if source.archive else stage / f"{name}.gz"
    for url in source.urls:
        try:
            digest = _transfer(url + source.served(name), target, source.timeout)
            if source.archive:
                if digest != source.archive_md5:
                    raise ValueError(f"not the official archive (md5 {digest} instead of {source.archive_md5})")
                _unpack(source, target, stage)
            for file in source.files if source.archive else [name]:
                verify(content(find(stage, file)), source.files[file])
            return
        except BROKEN as error:
            if isinstance(error, HTTPError):
                error.close()  # the error holds the connection open
            if url == source.urls[-1]:
                raise


def _transfer(url: str, target: Path, timeout: float) -> str:
    """Download a URL into a file and return its md5."""
    digest = hashlib.md5(usedforsecurity=False)
    request = Request(url, headers={"User-Agent": "lsdc"})  # noqa: S310 (from the table of official sources)
    with urlopen(request, timeout=timeout) as answer, ExitStack() as stack:  # noqa: S310
        with Interrupt() as interrupt:  # Ctrl-C between opening the file and entering it would leave it open
            file = stack.enter_context(target.open("wb"))
        if interrupt.asked:
            interrupt.finish()
        total = int(answer.headers.get("Content-Length") or 0)
        check_disk(target.parent, total, "free some space")
        while chunk := answer.read(CHUNK):
            if max(total, file.tell() + len(chunk)) > budget.DOWNLOAD:
                raise OSError(f"more than the limit of {budget.DOWNLOAD:,} bytes")
            file.write(chunk)
            digest.update(chunk)
            _show(target.name, file.tell(), total)
        if file.tell() < total:
            raise OSError(f"the connection was cut after {file.tell():,} of {total:,} bytes")
    return digest.hexdigest()


def _show(name: str, done: int, total: int) -> None:
    """Show how far a download is, in whole megabytes; where the server does not say how long it is, never the end."""
    at_the_end = done == total
    most = math.ceil(total / MB) if total else done // MB + 1
    watching.get()(f"downloading {name}, MB", most if at_the_end else done // MB, most)


def _unpack(source: OfficialFiles, archive: Path, stage: Path) -> None:
    """Extract the regular files with the expected names from an archive, and nothing else."""
    wanted = {f"{source.folder}/{name}": name for name in (*source.files, *source.extra)}
    with tarfile.open(archive) as tar:
        for member in tar:
            name = wanted.get(member.name.removeprefix("./"))
            inside = tar.extractfile(member) if name and member.isreg() else None
            if member.size > budget.DOWNLOAD:
                raise ValueError(
                    f"{member.name} unpacks to {member.size:,} bytes, beyond the limit of {budget.DOWNLOAD:,}"
                )
            if name and inside:
                with inside, (stage / name).open("wb") as file:
                    shutil.copyfileobj(inside, file, CHUNK)
    if missing := source.missing(stage):
        raise ValueError(f"the archive has no file {source.folder}/{missing[0]}")


def _put(stage: Path, folder: Path) -> None:
    """Move the files into place, all at once if the folder is new."""
    try:
        stage.rename(folder)
    except OSError:  # the folder already exists, perhaps from another process
        for file in stage.iterdir():
            file.replace(folder / file.name)
