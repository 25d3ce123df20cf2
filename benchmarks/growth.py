"""The pair part and the neighbour graph against literal versions, and how everything grows."""

import torch
from functional import enumerated, step
from measuring import Row, child, cpu_seconds, growth, seconds

from lsdc.functional import nearest, pair_loss

PEAK = """
import sys; sys.path.insert(0, {folder!r})
from functional import {function} as run
from measuring import peak_gb
before = peak_gb(); run(*{arguments}); print(peak_gb() - before)
"""
FIT = """
import sys, time, numpy as np, lsdc
n, k, d = map(int, sys.argv[1:])
rng = np.random.default_rng(0)
X = rng.normal(size=(min(k, 20), d)).astype("float32")[rng.integers(min(k, 20), size=n)]
for part in np.array_split(X, max(1, n // 10_000)):
    part += rng.normal(size=part.shape).astype("float32")
started = time.process_time()
lsdc.LSDC(k, random_state=0).fit(X)
print(time.process_time() - started)
"""


def peak(folder, function, *arguments):
    return float(child(PEAK.format(folder=folder, function=function, arguments=arguments))[0])


def pairs(folder, small=False):
    """Labels, targets, loss and gradient of a batch; one by one only as far as memory allows."""
    result, times = [], []
    sizes = (256, 512) if small else (256, 512, 1024, 4096, 16_384)
    for n in sizes:
        times.append(seconds(step, "knn", n, 512, repeats=3 if n < 4096 else 1))
        if n <= 512:
            literal = seconds(enumerated, n, 512, repeats=1)
            against = f"pairs one by one, {1e3 * literal:.0f} ms"
            result.append(Row("pairs", f"kNN, N = {n}", f"{1e3 * times[-1]:.1f} ms", against, times[-1] / literal))
    ours, theirs = peak(folder, "step", "knn", 512, 512), peak(folder, "enumerated", 512, 512)
    result.append(
        Row("pairs", "memory, N = 512", f"{ours:.3f} GB", f"pairs one by one, {theirs:.2f} GB", ours / theirs)
    )
    if not small:
        most, dense = peak(folder, "step", "knn", 16_384, 512), 4 * 16_384**2 / 2**30
        result.append(
            Row("pairs", "memory, N = 16,384", f"{most:.2f} GB", f"an N x N matrix, {dense:.2f} GB", most / dense)
        )
    return [*result, growth("pair part against N", sizes, times)]


def graph(small=False):
    """The exact graph against all distances at once in double precision, and against n."""
    f = torch.randn(2_000 if small else 10_000, 128, generator=torch.Generator().manual_seed(0))

    def literal():
        nearest_in = torch.cdist(f.double(), f.double()).fill_diagonal_(torch.inf)
        return nearest_in.topk(10, largest=False).indices

    assert torch.equal(literal(), nearest(f, 10).indices)
    ours, theirs = cpu_seconds(lambda: nearest(f, 10), 2), cpu_seconds(literal, 1)
    row = Row("graph", f"10 neighbours of {len(f):,} x 128", f"{ours:.2f} s", f"cdist, {theirs:.2f} s", ours / theirs)
    sizes, times = (1_000, 2_000) if small else (10_000, 20_000, 40_000), []
    for n in sizes:
        f = torch.randn(n, 64, generator=torch.Generator().manual_seed(0))
        times.append(cpu_seconds(lambda f=f: nearest(f, 10), 1))
    return [row, growth("exact graph against n (the default takes 20,000 samples at most)", sizes, times)]


def clusters(small=False):
    """The pair loss against K."""
    sizes, times = (10, 100, 1000), []
    Y = (torch.rand(1024, 1024, generator=torch.Generator().manual_seed(0)) < 0.1).float()
    for k in sizes:
        p = torch.randn(1024, k).softmax(1).requires_grad_()
        times.append(cpu_seconds(lambda p=p: pair_loss(p, p, Y).backward()))
    return [growth("pair loss against K", sizes, times)]


def batches(small=False):
    """The step of VGG-4 against the batch."""
    from steps import CASES, one_step, stage_of

    shape, parameters, _ = CASES["VGG-4, quarter"]
    sizes, times = (32, 64) if small else (64, 256, 1024), []
    for n in sizes:
        stage = stage_of(shape, {**parameters, "batch_size": n, "pool": n}, n)
        times.append(cpu_seconds(one_step(stage, n), 2))
    return [growth("VGG-4 step against the batch", sizes, times)]


def fits(small=False):
    """Whole fits of the default on vectors, in processor seconds of one thread, against n, K and D."""
    cases = {
        "fit against n (K = 10, D = 64)": [(n, 10, 64) for n in (10_000, 100_000, 1_000_000)],
        "fit against K (n = 10,000, D = 64)": [(10_000, k, 64) for k in (2, 45, 1_000)],
        "fit against D (n = 10,000, K = 10)": [(10_000, 10, d) for d in (32, 256, 2_048)],
    }
    result = []
    for what, sizes in cases.items():
        sizes = [
            tuple(max(2, size // 100) if size > 40 else size for size in case) for case in sizes[:2] if small
        ] or sizes
        said = [child(FIT, 1, case) for case in sizes]
        varied = next(i for i in range(3) if len({case[i] for case in sizes}) > 1)
        result.append(
            growth(what, [case[varied] for case in sizes], [float(words[-1]) if words else None for words in said])
        )
    return result


def rows(small=False):
    return [row for part in (graph, clusters, batches, fits) for row in part(small)]
