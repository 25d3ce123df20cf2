"""Several processes working as one: all their communication. In a single process these functions do nothing.

A batch is split by rows. What a loss compares (features, probabilities) is gathered, so that every process computes
the loss of the whole batch; its gradient reaches the rows a process holds, and the sum of the processes' gradients is
that of one process with the whole batch.
"""

import os
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.distributed_c10d import PrefixStore
from torch.distributed.rendezvous import rendezvous

from lsdc.errors import PeerLost

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


def is_member() -> bool:
    """Whether this process is one of several."""
    return dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1


def rank() -> int:
    """The number of this process; the first, 0, writes files and prints."""
    return dist.get_rank() if is_member() else 0


def size() -> int:
    """How many processes there are."""
    return dist.get_world_size() if is_member() else 1


def join() -> None:
    """Join the job that torchrun started this process for, if it did."""
    if int(os.environ.get("WORLD_SIZE", "1")) > 1 and "RANK" in os.environ and not dist.is_initialized():
        _call(_join)


def _join() -> None:
    store, number, n = next(rendezvous("env://"))
    # after a restart torchrun's store still holds the addresses of dead processes
    store = PrefixStore(f"attempt {os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}", store)
    backend = "nccl" if torch.cuda.is_available() else "gloo"
    dist.init_process_group(backend, store=store, rank=number, world_size=n)


def leave() -> None:
    """Leave the job."""
    if dist.is_available() and dist.is_initialized():
        dist.destroy_process_group()


def bounds(n: int) -> list[int]:
    """How ``n`` rows are divided: process r holds rows ``bounds[r]`` to ``bounds[r + 1]``."""
    small, more = divmod(n, size())
    return [r * small + min(r, more) for r in range(size() + 1)]


def own(x: T, n: int) -> T:
    """The rows of ``x``, which has ``n``, that belong to this process."""
    first, last = bounds(n)[rank() : rank() + 2]
    return x[first:last]  # type: ignore[index,no-any-return]


def gather(x: Tensor, n: int) -> Tensor:
    """The rows of all processes, ``n`` in order; gradients flow back to this process's own rows."""
    return _Gather.apply(x, n) if is_member() else x  # type: ignore[no-untyped-call]


def mean(x: Tensor, rows: int, n: int) -> Tensor:
    """The mean over ``n`` rows from the mean over this process's ``rows``; gradients are those of its part."""
    return _Total.apply(x * (rows / n)) if is_member() else x  # type: ignore[no-untyped-call]


def total(x: Tensor) -> Tensor:
    """The sum over processes of something they all use further: gradients are summed as well."""
    return _Sum.apply(x) if is_member() else x  # type: ignore[no-untyped-call]


def add_gradients(parameters: Sequence[Tensor]) -> None:
    """Replace every process's gradients by their sum, in one message."""
    gradients = [p.grad for p in parameters if p.grad is not None]
    if not is_member() or not gradients:
        return
    together = _all_sum(torch.cat([g.flatten() for g in gradients]))
    for gradient, part in zip(gradients, torch.split(together, [g.numel() for g in gradients]), strict=True):
        gradient.copy_(part.view_as(gradient))


def spread(tensors: Sequence[Tensor]) -> None:
    """Overwrite the tensors of every process with those of the first."""
    if is_member():
        for tensor in tensors:
            sent = tensor.detach().to(_device()).contiguous()
            _call(dist.broadcast, sent, 0)
            tensor.detach().copy_(sent)


def broadcast(content: bytes) -> bytes:
    """Broadcast bytes from the first process to all."""
    if not is_member():
        return content
    length = torch.tensor(len(content), device=_device())
    _call(dist.broadcast, length, 0)
    message = torch.empty(int(length), dtype=torch.uint8, device=_device())
    if rank() == 0:
        message.copy_(torch.frombuffer(bytearray(content), dtype=torch.uint8) if content else message)
    _call(dist.broadcast, message, 0)
    return message.cpu().numpy().tobytes()


def broadcast_all(contents: Sequence[bytes]) -> list[bytes]:
    """Broadcast several messages from the first process to all."""
    n = int.from_bytes(broadcast(len(contents).to_bytes(8)))
    return [broadcast(contents[i] if rank() == 0 else b"") for i in range(n)]


def sum_of(x: Tensor) -> Tensor:
    """The sum over processes of a tensor in main memory."""
    return _all_sum(x.to(_device())).cpu() if is_member() else x


def is_free_to_ask() -> bool:
    """Whether ``any_of`` halts no GPU: processes on CPUs may ask after every step."""
    return not is_member() or dist.get_backend() != "nccl"


def any_of(flag: bool) -> bool:
    """Whether the flag is set in any process."""
    if not is_member():
        return flag
    return bool(_all_sum(torch.tensor(float(flag), device=_device())))


def _device() -> torch.device:
    return torch.device("cuda", torch.cuda.current_device()) if dist.get_backend() == "nccl" else torch.device("cpu")


def _call(collective: Callable[..., Any], *words: Any) -> None:
    try:
        collective(*words)
    except RuntimeError as error:
        reason = str(error).splitlines()[0].removeprefix("[").partition("] ")[2] or str(error)
        reason = reason.partition(". ")[0]
        raise PeerLost(f"another process of this job has ended or cannot be reached ({reason})") from None


def _all_sum(x: Tensor) -> Tensor:
    x = x.detach().clone(memory_format=torch.contiguous_format)
    _call(dist.all_reduce, x)
    return x


class _Gather(torch.autograd.Function):
    """Rows of all processes; backward keeps the own ones, as every process computes the same loss from all rows."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, n: int) -> Tensor:
        places = bounds(n)
        sizes = [last - first for first, last in pairwise(places)]
        padded = x.new_zeros(max(sizes), *x.shape[1:])
        padded[: len(x)] = x
        parts = [torch.empty_like(padded) for _ in sizes]
        _call(dist.all_gather, parts, padded)
        ctx.n = n
        return torch.cat([part[:rows] for part, rows in zip(parts, sizes, strict=True)])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return own(gradients[0], ctx.n).contiguous(), None


class _Total(torch.autograd.Function):
    """A sum of parts, one per process; the gradient of each part is that of the sum."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return _all_sum(x)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        return gradients[0]


class _Sum(_Total):
    """A sum that the processes use differently, so the gradients of all uses are summed."""

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        return _all_sum(gradients[0])
