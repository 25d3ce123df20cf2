"""The maths of the methods the paper compares with: loops over the formulas, cases by hand, laws."""

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from lsdc.functional import (
    Mixture,
    conditional_entropy,
    dac_labels,
    dac_pair_loss,
    dac_thresholds,
    iic_loss,
    information_loss,
    joint,
    kl_to_target,
    local_radius,
    marginal_entropy,
    mixture_log_density,
    prior_divergence,
    reparameterise,
    responsibilities,
    sobel,
    soft_assignment,
    target_distribution,
    uniform_over_clusters,
    vade_loss,
    vat_direction,
    vat_loss,
    whiten,
)
from lsdc.nn.norm import frozen_statistics

seeds = given(seed=st.integers(0, 10**6))


def rng(seed=0):
    return torch.Generator().manual_seed(seed)


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=rng(seed), dtype=torch.float64)


def probabilities(seed, n=6, k=3):
    return normal(n, k, seed=seed).mul(2).softmax(1)


def one_hot(labels, k):
    return F.one_hot(torch.as_tensor(labels), k).double()


# ---- DEC ----------------------------------------------------------------------------------------------------


@seeds
def test_dec_equals_the_loops(seed):
    z, centres = normal(5, 2, seed=seed), normal(3, 2, seed=seed + 1)
    kernel = [
        [1 / (1 + sum((a - b) ** 2 for a, b in zip(zi, c, strict=True))) for c in centres.tolist()] for zi in z.tolist()
    ]
    q = [[value / sum(row) for value in row] for row in kernel]
    frequency = [sum(row[j] for row in q) for j in range(3)]
    sharp = [[row[j] ** 2 / frequency[j] for j in range(3)] for row in q]
    p = [[value / sum(row) for value in row] for row in sharp]
    kl = sum(p[i][j] * math.log(p[i][j] / q[i][j]) for i in range(5) for j in range(3)) / 5
    Q = soft_assignment(z, centres)
    torch.testing.assert_close(Q, torch.tensor(q, dtype=torch.float64))
    torch.testing.assert_close(target_distribution(Q), torch.tensor(p, dtype=torch.float64))
    assert float(kl_to_target(target_distribution(Q), Q)) == pytest.approx(kl)


def test_dec_by_hand():
    q = soft_assignment(torch.tensor([[0.0], [1.0]]), torch.tensor([[0.0], [1.0]]))
    torch.testing.assert_close(q, torch.tensor([[2 / 3, 1 / 3], [1 / 3, 2 / 3]]))  # 1 and 1/2, normalised
    torch.testing.assert_close(target_distribution(q), torch.tensor([[0.8, 0.2], [0.2, 0.8]]))  # 4 : 1
    wanted = 0.8 * math.log(0.8 / (2 / 3)) + 0.2 * math.log(0.2 / (1 / 3))
    assert float(kl_to_target(target_distribution(q), q)) == pytest.approx(wanted)


@seeds
def test_dec_target_is_a_sharper_distribution(seed):
    q = probabilities(seed, n=20)
    p = target_distribution(q)
    torch.testing.assert_close(p.sum(1), torch.ones(20, dtype=torch.float64))
    even = torch.cat([q, q.roll(1, 1), q.roll(2, 1)])  # clusters of equal size: then only sharpening is left
    p = target_distribution(even)
    assert torch.equal(p.argmax(1), even.argmax(1))
    assert (p.max(1).values >= even.max(1).values).all()
    assert kl_to_target(p, even) > 0


def test_dec_target_is_no_path_for_gradients_and_the_loss_is_one():
    z, centres = normal(5, 2).requires_grad_(), normal(3, 2, seed=1).requires_grad_()
    p = target_distribution(soft_assignment(z, centres))
    assert not p.requires_grad
    assert torch.autograd.gradcheck(lambda z, c: kl_to_target(p, soft_assignment(z, c)), (z, centres))
    assert torch.isfinite(kl_to_target(one_hot([0, 1, 2, 0, 1], 3), soft_assignment(z, centres)))


def test_dec_steps_pull_samples_to_their_centres():
    z, centres = normal(40, 2).requires_grad_(), torch.tensor([[-1.0, 0.0], [1.0, 0.0]], dtype=torch.float64)
    before = soft_assignment(z, centres).max(1).values.mean()
    p = target_distribution(soft_assignment(z, centres))
    (gradient,) = torch.autograd.grad(kl_to_target(p, soft_assignment(z, centres)), z)
    assert soft_assignment(z - gradient, centres).max(1).values.mean() > before


# ---- DAC ----------------------------------------------------------------------------------------------------


def test_dac_thresholds_meet_in_the_end():
    upper, lower = dac_thresholds(0.0)
    assert (upper, lower) == (0.95, 0.455)
    assert dac_thresholds(0.449)[0] > dac_thresholds(0.449)[1]
    upper, lower = dac_thresholds(0.45)
    assert upper == pytest.approx(0.5)
    assert upper <= lower + 1e-12
    rounds = 0
    while (thresholds := dac_thresholds(0.009 * rounds))[0] > thresholds[1]:
        rounds += 1
    assert rounds in (50, 51)


@seeds
def test_dac_equals_the_loop(seed):
    p = probabilities(seed)
    upper, lower = 0.9, 0.5
    total, pairs = 0.0, 0
    for i in range(6):
        for j in range(6):
            norm = math.sqrt(sum(float(v) ** 2 for v in p[i]) * sum(float(v) ** 2 for v in p[j]))
            s = sum(float(a * b) for a, b in zip(p[i], p[j], strict=True)) / norm
            if i != j and (s > upper or s < lower):
                total -= math.log((s if s > upper else 1 - s) + 1e-7)
                pairs += 1
    assert float(dac_pair_loss(p, upper, lower)) == pytest.approx(total / max(pairs, 1), abs=1e-9)


def test_dac_by_hand():
    p = torch.tensor([[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]])  # cosines .6, 0 and .8
    r, selected = dac_labels(p, 0.7, 0.3)
    assert selected.nonzero().tolist() == [[0, 2], [1, 2], [2, 0], [2, 1]]
    assert r[1, 2] == 1
    assert r[0, 2] == 0
    assert float(dac_pair_loss(p, 0.7, 0.3)) == pytest.approx(-math.log(0.8) / 2, abs=1e-5)
    assert float(dac_pair_loss(p, 0.9, -0.1)) == 0  # nothing is certain


def test_dac_is_safe_and_differentiable_at_certain_predictions():
    for p in (one_hot([0, 1, 2, 2], 3), torch.full((4, 3), 1 / 3)):
        p = p.requires_grad_()
        (gradient,) = torch.autograd.grad(dac_pair_loss(p, *dac_thresholds(0.1)), p)
        assert torch.isfinite(gradient).all()
    assert torch.autograd.gradcheck(lambda p: dac_pair_loss(p, 0.9, 0.5), probabilities(0).requires_grad_())


def test_dac_labels_can_be_those_of_an_earlier_pass():
    p, before = probabilities(0), probabilities(1)
    r, selected = dac_labels(before, 0.9, 0.5)
    unit = F.normalize(p, dim=1)
    s = (unit @ unit.T)[selected]
    wanted = F.binary_cross_entropy(s, r[selected])
    assert float(dac_pair_loss(p, 0.9, 0.5, before)) == pytest.approx(float(wanted), abs=1e-5)


# ---- IIC ----------------------------------------------------------------------------------------------------


@seeds
def test_iic_equals_the_loop(seed):
    p, q = probabilities(seed), probabilities(seed + 1)
    P = [[sum(float(p[i, a] * q[i, b] + p[i, b] * q[i, a]) / 12 for i in range(6)) for b in range(3)] for a in range(3)]
    torch.testing.assert_close(joint(p, q), torch.tensor(P, dtype=torch.float64))
    share = [sum(row) for row in P]
    loss = -sum(
        P[a][b] * (math.log(P[a][b]) - math.log(share[a]) - math.log(share[b])) for a in range(3) for b in (0, 1, 2)
    )
    assert float(iic_loss(p, q)) == pytest.approx(loss, abs=1e-9)


@seeds
def test_iic_is_symmetric_and_bounded(seed):
    p, q = probabilities(seed), probabilities(seed + 1)
    P = joint(p, q)
    torch.testing.assert_close(P, P.T)
    assert float(P.sum()) == pytest.approx(1)
    torch.testing.assert_close(iic_loss(p, q), iic_loss(q, p))
    order = torch.randperm(3, generator=rng(seed))
    torch.testing.assert_close(iic_loss(p[:, order], q[:, order]), iic_loss(p, q))
    assert -math.log(3) - 1e-9 <= float(iic_loss(p, q)) <= 1e-9


def test_iic_is_minus_log_k_for_even_certain_equal_views_and_zero_for_unrelated_ones():
    for k in (2, 3, 70):
        even = one_hot(torch.arange(2 * k) % k, k).requires_grad_()
        loss = iic_loss(even, even)
        assert loss.item() == pytest.approx(-math.log(k), abs=1e-9)
        assert torch.isfinite(torch.autograd.grad(loss, even)[0]).all()
    a, b = one_hot([0, 0, 1, 1], 2), one_hot([0, 1, 0, 1], 2)
    assert float(iic_loss(a, b)) == pytest.approx(0)
    one = one_hot([1, 1, 1], 2)
    assert float(iic_loss(one, one)) == pytest.approx(0)  # everything in one cluster tells nothing
    assert iic_loss(even.float(), even.float()).item() == pytest.approx(-math.log(70), abs=1e-5)


def test_sobel_by_hand():
    ramp = torch.arange(5.0).expand(1, 3, 4, 5).clone()  # rises by 1 to the right, in all colours
    edges = sobel(ramp)
    assert edges.shape == (1, 2, 4, 5)
    assert edges[0, 0, 1, 1:4].tolist() == [8, 8, 8]  # (1 + 2 + 1) times 2
    assert edges[0, 0, 1, [0, 4]].tolist() == [4, 4]  # the last column is repeated
    assert edges[0, 1].eq(0).all()
    torch.testing.assert_close(sobel(ramp.transpose(2, 3))[:, 1], edges[:, 0].transpose(1, 2))
    assert sobel(torch.full((2, 3, 6, 6), 7.0)).eq(0).all()
    x = normal(1, 2, 4, 4)
    grey, kernel = x.mean(1)[0], [[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]]
    wanted = sum(kernel[i][j] * float(grey[i, j + 1]) for i in range(3) for j in range(3))
    assert float(sobel(x)[0, 0, 1, 2]) == pytest.approx(wanted)


# ---- IMSAT --------------------------------------------------------------------------------------------------


@seeds
def test_entropies_equal_the_loops(seed):
    p = probabilities(seed)
    own = -sum(float(v) * math.log(float(v)) for row in p for v in row) / 6
    mean = [sum(float(row[k]) for row in p) / 6 for k in range(3)]
    shared = -sum(v * math.log(v) for v in mean)
    assert float(conditional_entropy(p)) == pytest.approx(own, abs=1e-5)
    assert float(marginal_entropy(p)) == pytest.approx(shared, abs=1e-5)
    assert float(information_loss(p)) == pytest.approx(own - 4 * shared, abs=1e-5)
    assert float(marginal_entropy(p)) >= float(conditional_entropy(p)) - 1e-9  # information is not negative


def test_information_is_best_for_even_certain_clusters():
    even = one_hot([0, 1, 2, 0, 1, 2], 3)
    assert float(information_loss(even, mu=1.0)) == pytest.approx(-math.log(3), abs=1e-5)
    for worse in (one_hot([0] * 6, 3), torch.full((6, 3), 1 / 3, dtype=torch.float64)):
        assert float(information_loss(worse, mu=1.0)) == pytest.approx(0, abs=1e-5)
    assert torch.autograd.gradcheck(information_loss, probabilities(0).requires_grad_())


def test_local_radius_by_hand():
    x = torch.tensor([[0.0], [1.0], [3.0], [7.0]])
    assert local_radius(x, k=2, alpha=0.5).tolist() == [1.5, 1.0, 1.5, 3.0]
    images = torch.randn(14, 1, 3, 3, generator=rng())
    wanted = 0.25 * torch.cdist(images.flatten(1), images.flatten(1)).sort(1).values[:, 10]
    torch.testing.assert_close(local_radius(images), wanted)


@pytest.fixture
def network():
    """Decided in one direction, as a trained one is, and blind to the others."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 3)).double()
    with torch.no_grad():
        net[0].weight[:, 2:] *= 0.01
    return net


@pytest.mark.parametrize("eps", [0.3, torch.linspace(0.1, 2, 12).double()])
def test_vat_direction_has_its_length_and_hurts_most(network, eps):
    x = normal(12, 8)
    r = vat_direction(network, x, eps, rng=rng(1))
    torch.testing.assert_close(r.norm(dim=1), torch.as_tensor(eps, dtype=torch.float64).expand(12).clone())
    torch.testing.assert_close(vat_direction(network, x, eps, torch.full((12,), 10.0), rng=rng(1)), r)  # one xi each
    steps = torch.tensor([10.0, 0.1]).repeat(6)
    mixed, near = (vat_direction(network, x, eps, xi, rng=rng(1)) for xi in (steps, 0.1))
    torch.testing.assert_close(mixed, torch.where(steps[:, None] > 1, r, near))
    worst = F.kl_div(network(x + r).log_softmax(1), network(x).softmax(1), reduction="batchmean")
    torch.testing.assert_close(vat_direction(network, x, eps, rng=rng(1), logits=network(x)), r)
    torch.testing.assert_close(vat_loss(network, x, r), worst)
    torch.testing.assert_close(vat_loss(network, x, r, network(x)), worst)
    for seed in range(5):
        noise = F.normalize(normal(12, 8, seed=seed), dim=1) * torch.as_tensor(eps).reshape(-1, 1)
        other = F.kl_div(network(x + noise).log_softmax(1), network(x).softmax(1), reduction="batchmean")
        assert worst > 2 * other


def test_vat_trains_the_network_through_the_perturbed_side_only(network):
    x = normal(12, 8)
    r = vat_direction(network, x, 0.5, rng=rng())
    assert not r.requires_grad
    assert all(w.grad is None for w in network.parameters())  # looking for the direction leaves nothing behind
    target = network(x).softmax(1).detach()
    wanted = torch.autograd.grad(F.cross_entropy(network(x + r), target), network[0].weight)[0]
    loss = vat_loss(network, x, r)
    torch.testing.assert_close(torch.autograd.grad(loss, network[0].weight)[0], wanted)
    with torch.no_grad():
        torch.testing.assert_close(vat_direction(network, x, 0.5, rng=rng()), r)
        torch.testing.assert_close(vat_loss(network, x, r), loss.detach())


def test_vat_of_images_and_of_what_does_not_react():
    x = torch.randn(5, 3, 4, 4, generator=rng())
    r = vat_direction(lambda x: 0 * x.flatten(1)[:, :2], x, 0.7, rng=rng())
    torch.testing.assert_close(r.flatten(1).norm(dim=1), torch.full((5,), 0.7))
    tiny = vat_direction(lambda x: 1e-15 * x.flatten(1)[:, :2], x, 0.7, rng=rng())
    torch.testing.assert_close(tiny.flatten(1).norm(dim=1), torch.full((5,), 0.7))


def test_frozen_statistics_look_and_do_not_remember():
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Linear(4, 5), nn.BatchNorm1d(5), nn.Linear(5, 2), nn.BatchNorm1d(2, track_running_stats=False)
    )
    x = torch.randn(20, 4, generator=rng()) + 3
    kept = {name: value.clone() for name, value in net.state_dict().items()}
    with frozen_statistics(net):
        inside = net(x)
        vat_loss(net, x, vat_direction(net, x, 1.0, rng=rng()))
    assert all(torch.equal(kept[name], value) for name, value in net.state_dict().items())
    assert torch.equal(inside, net(x))  # batches use their own statistics, as in training ...
    assert not torch.equal(kept["1.running_mean"], net[1].running_mean)  # ... and now they are remembered again
    net.eval()
    with frozen_statistics(net):
        inside = net(x)
    assert torch.equal(inside, net(x))
    assert (net[1].track_running_stats, net[3].track_running_stats) == (True, False)


# ---- VaDE ---------------------------------------------------------------------------------------------------


def mixture(seed=0, k=3, d=2):
    return Mixture(normal(k, seed=seed).log_softmax(0), normal(k, d, seed=seed + 1), normal(k, d, seed=seed + 2))


@seeds
def test_mixture_densities_are_those_of_normal_distributions(seed):
    z, prior = normal(5, 2, seed=seed), mixture(seed)
    wanted = prior.log_pi + torch.distributions.Normal(prior.mu, (prior.log_var / 2).exp()).log_prob(z[:, None]).sum(2)
    torch.testing.assert_close(mixture_log_density(z, *prior), wanted)
    joint_density = wanted.exp()
    torch.testing.assert_close(responsibilities(z, *prior), joint_density / joint_density.sum(1, keepdim=True))


@seeds
def test_vade_loss_is_the_literal_sum(seed):
    mean, log_var, prior = normal(4, 2, seed=seed), normal(4, 2, seed=seed + 5), mixture(seed)
    gamma, errors = probabilities(seed, 4, 3), normal(4, seed=seed).square()
    total = 0.0
    for i in range(4):
        total += float(errors[i])
        for c in range(3):
            g = float(gamma[i, c])
            for j in range(2):
                s2 = math.exp(prior.log_var[c, j])
                square = float(mean[i, j] - prior.mu[c, j]) ** 2
                total += 0.5 * g * (math.log(s2) + math.exp(log_var[i, j]) / s2 + square / s2)
            total += g * math.log(g) - g * float(prior.log_pi[c])
        total -= 0.5 * sum(1 + float(log_var[i, j]) for j in range(2))
    assert float(vade_loss(errors, mean, log_var, gamma, prior)) == pytest.approx(total / 4)


def test_vade_divergence_by_hand():
    """One standard component: the divergence is that of an ordinary variational autoencoder; its own shape costs 0."""
    prior = Mixture(torch.zeros(1), torch.zeros(1, 2), torch.zeros(1, 2))
    gamma = torch.ones(3, 1)
    mean, log_var = torch.tensor([[0.0, 0.0], [2.0, 0.0], [0.0, 0.0]]), torch.zeros(3, 2)
    log_var[2, 0] = 1.0
    wanted = torch.tensor([0.0, 2.0, (math.e - 2) / 2])
    torch.testing.assert_close(prior_divergence(mean, log_var, gamma, prior), wanted)


@seeds
def test_vade_divergence_is_not_negative(seed):
    """It is KL(q(z, c|x) || p(z, c)) with q(c|x) = gamma, whatever gamma is."""
    args = normal(4, 2, seed=seed), normal(4, 2, seed=seed + 5), probabilities(seed, 4, 3)
    assert (prior_divergence(*args, mixture(seed)) >= -1e-9).all()


def test_vade_is_safe_with_certain_shares_and_differentiable():
    mean, log_var = normal(3, 2).requires_grad_(), normal(3, 2, seed=1).requires_grad_()
    gamma = one_hot([0, 1, 2], 3).requires_grad_()
    loss = vade_loss(torch.zeros(3), mean, log_var, gamma, mixture())
    assert all(torch.isfinite(g).all() for g in torch.autograd.grad(loss, (mean, log_var, gamma)))

    def whole(mean, log_var, *prior):
        z = reparameterise(mean, log_var, rng())
        return vade_loss(z.square().sum(1), mean, log_var, responsibilities(z, *prior), Mixture(*prior))

    assert torch.autograd.gradcheck(whole, (mean, log_var, *(part.requires_grad_() for part in mixture())))


def test_reparameterised_draws_have_their_mean_and_spread():
    z = reparameterise(torch.full((20_000, 1), 3.0), torch.full((20_000, 1), math.log(4.0)), rng())
    assert float(z.mean()) == pytest.approx(3, abs=0.05)
    assert float(z.std()) == pytest.approx(2, abs=0.05)
    assert torch.equal(z, reparameterise(torch.full((20_000, 1), 3.0), torch.full((20_000, 1), math.log(4.0)), rng()))


# ---- DeepCluster --------------------------------------------------------------------------------------------


def test_whitened_features_are_uncorrelated_with_variance_one():
    f = normal(200, 6) @ normal(6, 6, seed=1) + 5
    white = whiten(f, 6)
    torch.testing.assert_close(white.T @ white / 200, torch.eye(6, dtype=torch.float64))
    leading = whiten(f, 2)
    torch.testing.assert_close(leading, white[:, :2])
    wanted = torch.linalg.svd(f - f.mean(0), full_matrices=False).U[:, :2] * 200**0.5
    torch.testing.assert_close(leading.abs(), wanted.abs())


def test_whitening_does_not_blow_up_what_does_not_vary():
    f = torch.cat([torch.randn(50, 3, generator=rng()), torch.ones(50, 2)], 1)
    assert whiten(f, 5)[:, 3:].abs().max() < 0.1
    assert torch.isfinite(whiten(torch.ones(5, 2), 2)).all()
    for n in (0, 6):
        with pytest.raises(ValueError, match="between 1 and the 5 features"):
            whiten(f, n)


def test_every_cluster_is_drawn_as_often():
    labels = torch.tensor([0] * 90 + [2] * 9 + [5])
    drawn = uniform_over_clusters(labels, 30_000, rng())
    shares = labels[drawn].bincount() / 30_000
    torch.testing.assert_close(shares[[0, 2, 5]], torch.full((3,), 1 / 3), atol=0.02, rtol=0)
    within = drawn.bincount(minlength=100)[:90] / 10_000
    torch.testing.assert_close(within, torch.full((90,), 1 / 90), atol=0.005, rtol=0)
