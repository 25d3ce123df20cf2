"""A very large batch fits: the pair part of a step at N = 16,384, D = 512 stays under 6 GB."""

import subprocess
import sys

import pytest

PROGRAM = """
import resource, torch
torch.set_num_threads(1)
from lsdc.functional import SIMILARITIES, mix_targets, mixup, pair_loss
rng = torch.Generator().manual_seed(0)
f = torch.randn(16_384, 512, generator=rng)
p, q = (torch.randn(16_384, 10, generator=rng).softmax(1).requires_grad_() for _ in range(2))
A = SIMILARITIES["{name}"](f, **{options})
_, sigma, w = mixup((f,), rng)
pair_loss(p, q, mix_targets(A, sigma, w)).backward()
assert p.grad is not None and q.grad is not None
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("name", "options"), [("knn", {"k": 20}), ("sne", {"tau": 1e-4, "temperature": 30.0})])
def test_large_batches_stay_under_6_gb(name, options):
    program = PROGRAM.format(name=name, options=options)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=300)
    unit = 1 if sys.platform == "darwin" else 1024
    assert int(done.stdout) * unit < 6 * 2**30
