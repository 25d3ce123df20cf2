"""Pretrained networks that turn images or texts into vectors; to add a kind, write a class and enter it here."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lsdc.data.encoders.base import Encoder, checked
from lsdc.data.encoders.function import Function, TextFunction
from lsdc.data.encoders.huggingface import HuggingFace, SentenceTransformers
from lsdc.data.encoders.onnx import Onnx
from lsdc.data.encoders.wordllama import WordLlama
from lsdc.errors import InputError, unknown

ENCODERS: dict[str, type[Encoder]] = {
    "onnx": Onnx,
    "hf": HuggingFace,
    "sentence-transformers": SentenceTransformers,
    "wordllama": WordLlama,
}
FOLDERS = ("hf", "sentence-transformers")  # what is a folder if it is on this machine


def encoder_of(given: Any, takes: str, settings: Mapping[str, Any]) -> Encoder:
    """An encoder for "images" or "texts" by name, file, folder or function; ``KIND:NAME`` states its kind."""
    settings = checked(settings)
    if not isinstance(given, (str, Path)):
        return (Function if takes == "images" else TextFunction)(given, settings)
    kind, name = _kind(str(given), takes)
    if kind not in ENCODERS:
        raise unknown("kind of encoder", kind, ENCODERS)
    if ENCODERS[kind].takes != takes:
        right = "encoder" if ENCODERS[kind].takes == "images" else "text_encoder"
        raise InputError(f"{given}: {kind} encodes {ENCODERS[kind].takes}, not {takes}", right)
    if kind in FOLDERS and Path(name).is_file():
        raise InputError(f"{name}: not an encoder, which is an .onnx file, a folder, or a name on the Hugging Face hub")
    return ENCODERS[kind](name, settings)


def _kind(given: str, takes: str) -> tuple[str, str]:
    """The kind of an encoder, guessed from its name unless stated."""
    stated = re.match(r"([a-z-]{2,}):(?!\\|//)", given)  # C:\net.onnx is a file
    if stated:
        return stated[1], given[stated.end() :]
    if takes == "images":
        return ("onnx" if given.lower().endswith(".onnx") else "hf"), given
    return ("wordllama" if given == "wordllama" else "sentence-transformers"), given


__all__ = ["ENCODERS", "Encoder", "checked", "encoder_of"]
