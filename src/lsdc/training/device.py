"""Where to compute, and the memory layout there. The backbone decides on precision (``nn/backbone.py``)."""

import os

import torch
from torch import Tensor, nn

from lsdc import parallel
from lsdc.errors import InputError


def choose(name: str) -> torch.device:
    """``auto`` is a GPU if there is one, else the CPU."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
    except (RuntimeError, TypeError):
        raise InputError(f"device must be 'auto', 'cpu' or 'cuda', got {name!r}") from None
    if device.type not in ("cpu", "cuda"):
        raise InputError(f"device must be 'auto', 'cpu' or 'cuda', got {name!r}")
    if device.type == "cuda" and not torch.cuda.is_available():
        raise InputError(f"device {name!r} is not available: PyTorch sees no GPU here; use 'auto' or 'cpu'")
    if device.type == "cuda" and device.index is None and parallel.is_member():
        return torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))  # one GPU per process
    return device


def place(module: nn.Module, device: torch.device) -> nn.Module:
    """Move a module; convolutions run in channels-last order, 1.2 to 3 times faster on the CPUs measured."""
    return module.to(device).to(memory_format=torch.channels_last)  # type: ignore[call-overload,no-any-return]


def move(x: Tensor, device: torch.device) -> Tensor:
    """Move a batch, images in channels-last order."""
    x = x.to(device, non_blocking=True)
    return x.contiguous(memory_format=torch.channels_last) if x.ndim == 4 else x
