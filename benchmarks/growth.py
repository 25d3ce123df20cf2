"""The pair part and the neighbour graph: against literal versions, and how they grow."""

import torch
from functional import enumerated, step
from measuring import Row, child, exponent, seconds

from lsdc.functional import nearest

PEAK = """
import sys; sys.path.insert(0, {folder!r})
from functional import {function} as run
from measuring import peak_gb
run(*{arguments}); print(peak_gb())
"""


def peak(folder, function, *arguments):
    return float(child(PEAK.format(folder=folder, function=function, arguments=arguments))[0])


def pairs(folder):
    """Labels, targets, loss and gradient of a batch; one by one only as far as memory allows."""
    result, sizes, times = [], (256, 512, 1024, 2048, 4096), []
    for n in sizes:
        times.append(seconds(step, "knn", n, 512))
        if n <= 512:
            literal = seconds(enumerated, n, 512, repeats=1)
            result.append(
                Row(
                    "pairs",
                    f"kNN, N = {n:,}, D = 512",
                    f"{1e3 * times[-1]:.1f} ms",
                    f"pairs one by one, {1e3 * literal:.0f} ms",
                    times[-1] / literal,
                )
            )
    ours, theirs = peak(folder, "step", "knn", 512, 512), peak(folder, "enumerated", 512, 512)
    result.append(
        Row("pairs", "peak memory, N = 512", f"{ours:.2f} GB", f"pairs one by one, {theirs:.2f} GB", ours / theirs)
    )
    result.append(
        Row(
            "growth",
            "pair part against N, 256 to 4,096",
            f"{times[-1]:.3f} s at the end",
            "exponent",
            exponent(sizes, times),
        )
    )
    return result


def graph():
    sizes, times = (10_000, 20_000, 40_000), []
    for n in sizes:
        f = torch.randn(n, 64, generator=torch.Generator().manual_seed(0))
        times.append(seconds(nearest, f, 10, repeats=1) if n < 40_000 else once(f))
    per = f"{times[-1]:.1f} s for {sizes[-1]:,} x 64"
    return [Row("growth", "exact neighbour graph against n", per, "exponent", exponent(sizes, times))]


def once(f):
    import time

    started = time.perf_counter()
    nearest(f, 10)
    return time.perf_counter() - started


def clusters():
    """The pair loss against K."""
    from lsdc.functional import pair_loss

    sizes, times = (10, 100, 1000), []
    Y = (torch.rand(1024, 1024, generator=torch.Generator().manual_seed(0)) < 0.1).float()
    for k in sizes:
        p = torch.randn(1024, k).softmax(1).requires_grad_()
        times.append(seconds(lambda p=p: pair_loss(p, p, Y).backward(), repeats=5))
    return [
        Row(
            "growth",
            "pair loss against K, 10 to 1,000",
            f"{times[-1]:.4f} s at the end",
            "exponent",
            exponent(sizes, times),
        )
    ]
