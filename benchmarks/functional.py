"""The pair part of the training step: time against enumerating pairs, and memory of a very large batch.

    python benchmarks/functional.py [--large]

Both ways are timed in the same run, so the ratio means something on any machine. ``--large`` adds the peak memory of
one process per similarity with a batch of 16,384 samples of 512 features.
"""

import argparse
import resource
import subprocess
import sys
import time

import torch

from lsdc.functional import SIMILARITIES, mix_targets, mixup, pair_loss

OPTIONS = {"l2": {"tau": 900.0}, "cosine": {"tau": 0.1}, "sne": {"tau": 1e-4, "temperature": 30.0}, "knn": {"k": 20}}


def inputs(n, d, k=10):
    rng = torch.Generator().manual_seed(0)
    f = torch.randn(n, d, generator=rng)
    p, q = (torch.randn(n, k, generator=rng).softmax(1).requires_grad_() for _ in range(2))
    return f, p, q, rng


def step(name, n, d):
    """Label, mix, compare, and go back: everything between two passes of the network."""
    f, p, q, rng = inputs(n, d)
    A = SIMILARITIES[name](f, **OPTIONS.get(name, {"k": round(0.07 * n)}))
    _, sigma, w = mixup((f,), rng)
    pair_loss(p, q, mix_targets(A, sigma, w)).backward()


def enumerated(n, d, k=20):
    """The same for kNN with all n x n pairs laid out one by one, (n^2, d) and (n^2, K)."""
    f, p, q, _ = inputs(n, d)
    i, j = torch.arange(n).repeat_interleave(n), torch.arange(n).repeat(n)
    distance = (f[i] - f[j]).square().sum(1).view(n, n).fill_diagonal_(torch.inf)
    A = torch.zeros(n, n).scatter_(1, distance.topk(k, largest=False).indices, 1)
    A = torch.maximum(A, A.T).fill_diagonal_(1).flatten()
    P = (p[i] * q[j]).sum(1)
    (-(A * (P + 1e-7).log() + (1 - A) * (1 - P + 1e-7).log()).mean()).backward()


def milliseconds(function, *arguments, repeats=10):
    function(*arguments)
    started = time.perf_counter()
    for _ in range(repeats):
        function(*arguments)
    return (time.perf_counter() - started) / repeats * 1e3


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        step(options.one, 16_384, 512)
        print(f"{options.one}: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GB")
        return
    slow, fast = milliseconds(enumerated, 256, 512), milliseconds(step, "knn", 256, 512)
    print(f"kNN step, N=256, D=512: one by one {slow:.1f} ms, matrix products {fast:.1f} ms, ratio {slow / fast:.0f}")
    for name in SIMILARITIES:
        times = [f"N={n} {milliseconds(step, name, n, 512):.1f} ms" for n in (256, 1024)]
        print(f"{name}: {', '.join(times)}")
    if options.large:
        for name in SIMILARITIES:
            subprocess.run([sys.executable, __file__, "--one", name], check=True)


if __name__ == "__main__":
    main()
