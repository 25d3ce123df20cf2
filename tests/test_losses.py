"""Sections 3.3 and 3.4: targets and losses, against loops, laws and hand-computed cases."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import lsdc.functional.losses as module
import lsdc.functional.similarity as similarity
from lsdc.functional import COMPOSITIONS, consistency_loss, knn, mix_targets, nt_xent, pair_loss, rampup

EPS = 1e-7


def rng(seed=0):
    return torch.Generator().manual_seed(seed)


def probabilities(seed, n=6, k=3):
    return torch.randn(n, k, generator=rng(seed), dtype=torch.float64).mul(2).softmax(1)


def one_hot(labels, k):
    return torch.nn.functional.one_hot(torch.as_tensor(labels), k).double()


@pytest.mark.parametrize("name", COMPOSITIONS)
@given(seed=st.integers(0, 10**6))
def test_the_one_hot_law(name, seed):
    """With true labels H and A = H H', the mixed targets are H times the mixed labels: rows plain, columns composed."""
    H = one_hot(torch.randint(3, (7,), generator=rng(seed)), 3)
    _, sigma, w = COMPOSITIONS[name]((torch.zeros(7, 1, 8, 8, dtype=torch.float64),), rng(seed))
    torch.testing.assert_close(mix_targets(H @ H.T, sigma, w), H @ (w[:, None, None] * H[sigma]).sum(0).T)


@given(seed=st.integers(0, 10**6))
def test_mix_targets_equals_the_loop(seed):
    A = knn(torch.randn(6, 2, generator=rng(seed)), 2)
    sigma = torch.stack([torch.randperm(6, generator=rng(seed + r)) for r in range(3)])
    w = torch.tensor([0.5, 0.3, 0.2])
    Y = mix_targets(A, sigma, w)
    for i in range(6):
        for j in range(6):
            assert float(Y[i, j]) == pytest.approx(sum(float(w[r] * A[i, sigma[r, j]]) for r in range(3)), abs=1e-6)


@given(seed=st.integers(0, 10**6))
def test_pair_loss_equals_the_loop(seed):
    p, q = probabilities(seed), probabilities(seed + 1)
    Y = torch.rand(6, 6, generator=rng(seed), dtype=torch.float64)
    total = 0.0
    for i in range(6):
        for j in range(6):
            P = sum(float(p[i, k] * q[j, k]) for k in range(3))
            y = float(Y[i, j])
            total -= y * math.log(P + EPS) + (1 - y) * math.log(1 - P + EPS)
    assert float(pair_loss(p, q, Y)) == pytest.approx(total / 36, abs=1e-9)


def test_pair_loss_by_hand():
    p = torch.tensor([[1.0, 0.0], [0.5, 0.5]], dtype=torch.float64)
    Y = torch.eye(2, dtype=torch.float64)
    # P = [[1, 1/2], [1/2, 1/2]]: three pairs of log 2, one right and certain
    assert float(pair_loss(p, p, Y)) == pytest.approx(3 * math.log(2) / 4, abs=1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])  # 1/eps is beyond float16
def test_one_hot_and_uniform_probabilities_are_safe(dtype):
    for p in (one_hot([0, 1, 2, 2], 3), torch.full((4, 3), 1 / 3)):
        p = p.to(dtype).requires_grad_()
        for Y in (torch.zeros(4, 4), torch.ones(4, 4), torch.full((4, 4), 0.5)):
            loss = pair_loss(p, p, Y)
            (gradient,) = torch.autograd.grad(loss, p)
            P = (p.detach().double() @ p.detach().double().T).clamp(max=1)
            wanted = -(Y * (P + 1e-7).log() + (1 - Y) * (1 - P + 1e-7).log()).mean()
            assert loss.item() == pytest.approx(wanted.item(), rel=0.02 if dtype is torch.bfloat16 else 1e-5)
            assert torch.isfinite(gradient).all()


def test_sums_just_over_one_are_safe():
    p = torch.tensor([[0.5, 0.5 + 1e-6]] * 2) * torch.tensor([1.0, 1.9999])  # rounding, exaggerated: P > 1
    assert float(pair_loss(p * 1.5, p * 1.5, torch.ones(2, 2))) == pytest.approx(0, abs=1e-6)  # as for P = 1


def test_gradient_is_right():
    p = probabilities(0).requires_grad_()
    q = probabilities(1).requires_grad_()
    Y = torch.rand(6, 6, generator=rng(), dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda p, q: pair_loss(p, q, Y), (p, q))
    assert torch.autograd.gradcheck(consistency_loss, (p, q))


def test_gradient_reaches_predictions_and_not_targets():
    f = torch.randn(6, 2, generator=rng(), requires_grad=True)
    p = probabilities(0).float().requires_grad_()
    A = knn(f, 2)
    Y = mix_targets(A, torch.arange(6)[None], torch.ones(1))
    assert not Y.requires_grad
    pair_loss(p, p, Y).backward()
    assert p.grad is not None
    assert f.grad is None


@given(seed=st.integers(0, 10**6))
def test_relabelling_clusters_changes_nothing(seed):
    p, q = probabilities(seed), probabilities(seed + 1)
    order = torch.randperm(3, generator=rng(seed))
    Y = torch.rand(6, 6, generator=rng(seed), dtype=torch.float64)
    torch.testing.assert_close(pair_loss(p[:, order], q[:, order], Y), pair_loss(p, q, Y))
    torch.testing.assert_close(consistency_loss(p[:, order], q[:, order]), consistency_loss(p, q))


def test_the_right_partition_is_a_minimum():
    """Among hard assignments, the true one has the smallest loss for A = H H'."""
    H = one_hot([0, 0, 1, 1, 2, 2], 3)
    best = pair_loss(H, H, H @ H.T)
    for wrong in ([0, 0, 1, 1, 1, 2], [0, 0, 0, 0, 2, 2], [0] * 6, [0, 1, 2, 0, 1, 2]):
        q = one_hot(wrong, 3)
        assert pair_loss(q, q, H @ H.T) > best


def test_blocks_of_rows_change_nothing(monkeypatch):
    p, q = (probabilities(seed, n=30).requires_grad_() for seed in (0, 1))
    A = (torch.rand(30, 30, generator=rng(), dtype=torch.float64) < 0.3).double()
    sigma, w = torch.stack([torch.randperm(30, generator=rng(s)) for s in (0, 1)]), torch.tensor([0.7, 0.3])

    def everything():
        Y = mix_targets(A, sigma, w)
        loss = pair_loss(p, q, Y)
        return Y, loss, *torch.autograd.grad(loss, (p, q))

    whole = everything()
    for part in (module, similarity):
        monkeypatch.setattr(part, "BLOCK", 7)
    for a, b in zip(whole, everything(), strict=True):
        torch.testing.assert_close(a, b)


def test_consistency_by_hand():
    p, q = torch.tensor([[1.0, 0.0], [0.5, 0.5]]), torch.tensor([[0.0, 1.0], [0.5, 0.5]])
    assert float(consistency_loss(p, q)) == pytest.approx(2 / (2 * 2))
    assert float(consistency_loss(p, p)) == 0


@given(t=st.floats(0, 500), length=st.floats(1, 200), weight=st.floats(0, 30))
def test_rampup_rises_to_its_weight(t, length, weight):
    assert rampup(t, length, weight) <= rampup(t + 1, length, weight) <= weight
    assert rampup(length, length, weight) == weight
    assert rampup(0, length, weight) == pytest.approx(weight * math.exp(-5))


def test_no_rampup_is_the_full_weight_at_once():
    assert rampup(0, 0, 5) == 5


def test_nt_xent_against_a_loop():
    z1, z2 = torch.randn(2, 5, 3, generator=rng(), dtype=torch.float64).float()
    z = [v / v.norm() for v in (*z1, *z2)]
    total = 0.0
    for i, own in enumerate(z):
        scores = [math.exp(float(own @ other) / 0.5) for j, other in enumerate(z) if j != i]
        total -= math.log(math.exp(float(own @ z[(i + 5) % 10]) / 0.5) / sum(scores))
    assert float(nt_xent(z1, z2, 0.5)) == pytest.approx(total / 10, rel=1e-5)


def test_nt_xent_is_symmetric_and_blind_to_length():
    z1, z2 = torch.randn(2, 6, 4, generator=rng())
    torch.testing.assert_close(nt_xent(z1, z2, 0.2), nt_xent(3 * z2, z1, 0.2))
