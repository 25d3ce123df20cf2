"""PyTorch's modes in a fit: those a caller has set are for the caller's own tensors, and its threads for large ones."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from threading import Lock

import torch
from threadpoolctl import threadpool_limits

LITTLE = 2**14  # numbers in a batch, up to which one thread is faster than two: digits take 35 instead of 44 s


class _OneThread:
    """One thread as long as somebody asks for it: fits may overlap, and the number is the process's.

    For PyTorch, and for the libraries of K-means and principal axes, which round by it too.
    """

    limits: threadpool_limits

    def __init__(self) -> None:
        self.lock, self.users, self.before = Lock(), 0, 1

    def __enter__(self) -> None:
        with self.lock:
            if not self.users:
                self.before = torch.get_num_threads()
                torch.set_num_threads(1)
                self.limits = threadpool_limits(1)
            self.users += 1

    def __exit__(self, *error: object) -> None:
        with self.lock:
            self.users -= 1
            if not self.users:
                self.limits.restore_original_limits()
                torch.set_num_threads(self.before)


ONE_THREAD = _OneThread()


@contextmanager
def threads_for(n_values: int) -> Iterator[None]:
    """As many threads as pay off for batches of ``n_values`` numbers: one, or as many as PyTorch has."""
    with ONE_THREAD if n_values <= LITTLE else ExitStack():
        yield


@contextmanager
def default_modes() -> Iterator[None]:
    """Gradients on, single precision, no autocast, whatever the caller has set; restored afterwards."""
    dtype = torch.get_default_dtype()
    with ExitStack() as stack:
        stack.enter_context(torch.inference_mode(False))
        stack.enter_context(torch.enable_grad())
        for device in ("cpu", "cuda"):
            if torch.is_autocast_enabled(device):
                stack.enter_context(torch.autocast(device, enabled=False))
        if dtype != torch.float32:
            stack.callback(torch.set_default_dtype, dtype)
            torch.set_default_dtype(torch.float32)
        yield
