"""WordLlama: averaged word vectors from a language model; the weights come with the package."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lsdc.data.encoders.base import Encoder, digest_files
from lsdc.errors import InputError, reason


@contextmanager
def _unchanged_logging() -> Iterator[None]:
    """Restore the root logger: importing the package turns on everyone's messages."""
    root = logging.getLogger()
    level, handlers = root.level, list(root.handlers)
    try:
        yield
    finally:
        root.setLevel(level)
        root.handlers[:] = handlers


class WordLlama(Encoder):
    """Averaged word vectors of 256 numbers; small, fast, no download (extra: text)."""

    takes = "texts"
    batch = 256

    def load(self) -> None:
        try:
            with _unchanged_logging():
                import wordllama
        except ImportError:
            raise InputError("wordllama is not installed (pip install 'lsd-clusters[text]')") from None
        package = Path(wordllama.__file__).parent
        try:
            self.model = wordllama.WordLlama.load(cache_dir=package, disable_download=True)
            weights = [*package.glob("weights/*"), *package.glob("tokenizers/*.json")]
            self.digest = digest_files(weights, package)
        except (OSError, ValueError) as error:
            raise InputError(f"wordllama: cannot be loaded ({reason(error)})") from None
        self.name = "wordllama"
        self.notes = ("encoder wordllama: word vectors, averaged",)

    def encode(self, batch: Sequence[str]) -> Any:
        return self.model.embed([text or " " for text in batch], norm=True)
