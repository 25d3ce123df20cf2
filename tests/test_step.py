"""The training step (equation 7), and golden losses of a tiny seeded run.

``python tests/test_step.py`` prints new golden losses; a change that moves them says so in the changelog.
"""

import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from lsdc import LSDC
from lsdc.data.sampler import Batch
from lsdc.data.sources import Data, spec_of
from lsdc.functional import balance_loss, consistency_loss, knn, mix_targets, pair_loss, ricap
from lsdc.methods.lsdc import LSDCLoss, maturity
from lsdc.pretext import DenoisingAutoencoder
from lsdc.training.context import Context

GOLDEN = Path(__file__).parent / "golden" / "step_losses.txt"
LITERAL = {
    "similarity": "knn",
    "k": 3,
    "pool": 0,
    "weighted": False,
    "balance": 0.0,
    "head": "linear",
    "composition": "ricap",
    "width": 0.1,
    "batch_size": 16,
    "epochs": 10,
    "rampup": 4,
}


def images(n=16):
    return np.random.default_rng(0).random((n, 8, 8)).astype(np.float32)


def objective(**changes):
    """The clustering objective of a model that has not been trained."""
    X = images()
    model = LSDC(4, **{**LITERAL, **changes})
    model.spec_ = spec_of(X)
    settings = model._resolve(model.spec_.shape, len(X))
    network, views = model._build(settings, seed=0)
    data, context = Data(X, model.spec_), Context(0, torch.device("cpu"))
    clustering = LSDCLoss(network, views, settings, data, context, settings.similarity, settings.composition)
    return clustering, data.batch(torch.arange(16))


def batch(x, t=2.0, seed=5):
    return Batch(x, torch.arange(len(x)), torch.Generator().manual_seed(seed), t)


def test_the_step_is_the_papers_formula():
    """L = L_clus(A from f, p, p~) + lambda exp(-5 (1 - t/T)^2) L_cons, written out."""
    clustering, x = objective()
    clustering.module.eval()  # batch norm by stored statistics: every pass gives the same numbers
    result = clustering.losses(batch(x))
    rng = torch.Generator().manual_seed(5)
    x1, x2 = clustering.views.augment(x, rng), clustering.views.augment(x, rng)
    (x1, x2), sigma, w = ricap((x1, x2), rng)
    f, _, p = clustering.network(x)
    p1, p2 = clustering.network(x1).p, clustering.network(x2).p
    pair = pair_loss(p, p1, mix_targets(knn(f, 3), sigma, w))
    omega = 5.0 * np.exp(-5 * (1 - 2.0 / 4) ** 2)
    torch.testing.assert_close(result["pair"], pair)
    torch.testing.assert_close(result["loss"], pair + omega * consistency_loss(p1, p2))


def test_prediction_space_labels_the_logits():
    clustering, x = objective(space="predictions")
    clustering.module.eval()
    _, logits, _ = clustering.network(x)
    seen = []
    clustering.similarity = lambda f, rows, progress: seen.append(f) or knn(f, 3)
    clustering.losses(batch(x))
    torch.testing.assert_close(seen[0], logits.detach())


def test_labels_carry_no_gradient():
    clustering, x = objective()
    seen = []
    clustering.similarity = lambda f, rows, progress: seen.append(f.requires_grad) or knn(f, 3)
    clustering.losses(batch(x))["loss"].backward()
    assert seen == [False]


def test_the_balance_term_fades():
    clustering, x = objective(balance=2.0, consistency=0.0)
    clustering.module.eval()
    p = clustering.network(x).p
    for t in (0.0, 4.0, 9.5):
        result = clustering.losses(batch(x, t))
        weight = 2.0 * (1 - maturity(t / 10))
        torch.testing.assert_close(result["loss"] - result["pair"], weight * balance_loss(p), atol=1e-6, rtol=0)
    assert [maturity(t) for t in (0, 0.2, 0.45, 0.7, 1)] == pytest.approx([0, 0, 0.5, 1, 1])


def test_neighbours_come_from_the_pool():
    """With a memory, samples of earlier batches are there to be neighbours, never those of the batch itself."""
    clustering, x = objective(pool=40)
    sizes = []
    label = clustering.similarity
    clustering.similarity = lambda f, rows, progress: sizes.append(len(f)) or label(f, rows, progress)
    for start in (0, 16, 32, 16):
        ids = torch.arange(start, start + 16)
        clustering.losses(Batch(x, ids, torch.Generator().manual_seed(start), 0.0))
    # the memory holds 24: nothing, 16 others, then 24; the last batch meets 8 of its own there, which do not count
    assert sizes == [16, 32, 40, 32]


def losses():
    """The loss of every step of a tiny run with everything on: pretext, composition, memory, balance, growing k."""
    lines = []

    def told(objective_losses):
        def losses(self, batch):
            result = objective_losses(self, batch)
            lines.append(f"{self.name} {batch.t:.2f} {result['loss'].item():.4f}")
            return result

        return losses

    model = LSDC(3, random_state=0, width=0.1, batch_size=16, epochs=4, pretext_plan={"epochs": 2}, pool=32)
    batch, before = Data.batch, torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with pytest.MonkeyPatch.context() as patch:
            for objective in (DenoisingAutoencoder, LSDCLoss):
                patch.setattr(objective, "losses", told(objective.losses))
            patch.setattr(Data, "batch", lambda self, indices: batch(self, indices).double())
            model._fit_checked(images(50), None, None, lambda progress: None)  # fit itself is in single precision
    finally:
        torch.set_default_dtype(before)
    return lines


@pytest.mark.filterwarnings("ignore::lsdc.HealthWarning")
def test_golden_losses():
    golden = [line.split() for line in GOLDEN.read_text().splitlines()]
    now = [line.split() for line in losses()]
    assert [line[:2] for line in now] == [line[:2] for line in golden]
    # in double precision: processors round single precision differently, and choosing neighbours amplifies it
    assert [float(line[2]) for line in now] == pytest.approx([float(line[2]) for line in golden], rel=1e-3)


if __name__ == "__main__":
    torch.set_num_threads(1)
    sys.stdout.write("\n".join(losses()) + "\n")
