"""Tensors and a JSON header in one safetensors file: no pickle, and only what can be read back is written."""

import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load as from_bytes
from safetensors.torch import save as to_bytes
from torch import Tensor

from lsdc.errors import InputError, reason
from lsdc.runs.atomic import write_atomic
from lsdc.runs.untrusted import JSON_BYTES, parse_json, plain_file

TYPES = ("F64", "F32", "F16", "BF16", "I64", "I32", "I16", "I8", "U8", "BOOL")


def tensors_to_bytes(tensors: dict[str, Tensor], header: dict[str, Any]) -> bytes:
    """Tensors and a JSON header as the content of one file."""
    flat = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    content = to_bytes(flat, {"lsdc": json.dumps(header)})
    if (length := int.from_bytes(content[:8], "little")) > JSON_BYTES:
        parts = sorted(header, key=lambda name: len(json.dumps(header[name])))
        raise InputError(f"{parts[-1]} is too long to be read back: {length:,} bytes, of {JSON_BYTES:,} at most")
    return content


def tensors_from_bytes(content: bytes, name: str) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The inverse of ``tensors_to_bytes``."""
    try:
        length = int.from_bytes(content[:8], "little")
        header = json.loads(json.loads(content[8 : 8 + length])["__metadata__"]["lsdc"])
        return from_bytes(content), header
    except (SafetensorError, KeyError, ValueError, TypeError) as error:
        raise InputError(f"{name}: cannot be read ({str(error).splitlines()[0]})") from None


def write_tensors(path: Path, tensors: dict[str, Tensor], header: dict[str, Any]) -> None:
    """Write tensors and a JSON header to one file atomically; refuses what could not be read back."""
    for name, tensor in tensors.items():
        _check_finite(name, tensor)
    write_atomic(path, tensors_to_bytes(tensors, header))


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """What ``write_tensors`` wrote, copied from the file; incomplete and foreign files are refused."""
    try:
        _check_length(plain_file(path))
        with safe_open(path, framework="pt") as file:
            header = parse_json((file.metadata() or {})["lsdc"])
            tensors = {name: _read_tensor(file, name) for name in file.keys()}  # noqa: SIM118 (not a dict)
    except InputError:
        raise
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except (SafetensorError, KeyError, ValueError, OSError, RuntimeError) as error:
        why = "no lsdc header" if isinstance(error, KeyError) else reason(error)
        raise InputError(f"{path}: not a file written by lsdc, or truncated ({why})") from None
    if not isinstance(header, dict):
        raise InputError(f"{path}: not a file written by lsdc (its header is not a JSON object)")
    return tensors, header


def _check_length(path: Path) -> None:
    """Refuse a header longer than its file or than any of ours, before allocating memory for it."""
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
    if length > min(path.stat().st_size - 8, JSON_BYTES):
        raise ValueError(f"its header should be {length:,} bytes long")


def _read_tensor(file: Any, name: str) -> Tensor:
    """A tensor of the file, of a plain type and with finite values only."""
    if (kind := file.get_slice(name).get_dtype()) not in TYPES:
        raise ValueError(f"{name} is of type {kind}")
    tensor: Tensor = file.get_tensor(name).clone()  # otherwise it is a view of the file
    _check_finite(name, tensor)
    return tensor


def _check_finite(name: str, tensor: Tensor) -> None:
    if tensor.is_floating_point() and tensor.numel():
        low, high = tensor.aminmax()  # no copy of the tensor is made, as isfinite would
        if not (torch.isfinite(low) and torch.isfinite(high)):
            raise ValueError(f"{name} holds values that are not finite")
