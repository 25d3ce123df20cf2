"""A very large batch fits: the pair part of a step needs six N x N matrices, 6 GB at N = 16,384."""

import pytest

from peaks import printed

PROGRAM = """
import torch
torch.set_num_threads(1)
from lsdc.functional import SIMILARITIES, mix_targets, mixup, pair_loss
rng = torch.Generator().manual_seed(0)
N = 6_144  # a seventh of the memory and of the time; with fewer, blocks of rows weigh more than matrices
f = torch.randn(N, 512, generator=rng)
p, q = (torch.randn(N, 10, generator=rng).softmax(1).requires_grad_() for _ in range(2))
before = peak()
A = SIMILARITIES["{name}"](f, **{options})
_, sigma, w = mixup((f,), rng)
pair_loss(p, q, mix_targets(A, sigma, w)).backward()
assert p.grad is not None and q.grad is not None
print(peak() - before, N)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("name", "options"), [("knn", {"k": 20}), ("sne", {"tau": 1e-4, "temperature": 30.0})])
def test_large_batches_need_six_matrices(name, options):
    peak, n = printed(PROGRAM.format(name=name, options=options))
    assert 4 * n**2 < peak < 6 * 4 * n**2
