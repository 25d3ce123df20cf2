"""IMSAT: information maximising self-augmented training (Hu, Miyato, Tokui, Matsumoto, Sugiyama 2017).

A step is ``vat_loss(predict, x, eps[ids], rng=rng) + 0.1 * information_loss(p)``. ``predict(x)`` returns logits. The
passes of VAT must not change batch-norm statistics: wrap them in ``lsdc.nn.norm.frozen_statistics(net)``.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from lsdc.functional.losses import EPS
from lsdc.functional.neighbours import nearest

Predict = Callable[[Tensor], Tensor]


def conditional_entropy(p: Tensor) -> Tensor:
    """H(Y|X), the mean entropy of the predictions: 0 if all are certain."""
    return -(p * (p + EPS).log()).sum(1).mean()


def marginal_entropy(p: Tensor) -> Tensor:
    """H(Y), the entropy of the batch's mean prediction: log K for clusters of equal size."""
    return conditional_entropy(p.mean(0, keepdim=True))


def information_loss(p: Tensor, mu: float = 4.0) -> Tensor:
    """H(Y|X) - mu H(Y), minus the mutual information with its two parts weighed; in the loss times lambda = 0.1."""
    return conditional_entropy(p) - mu * marginal_entropy(p)


def local_radius(x: Tensor, k: int = 10, alpha: float = 0.25) -> Tensor:
    """eps_i = alpha times the distance of x_i to its k-th neighbour, computed once, before training."""
    return alpha * nearest(x.flatten(1), k, "l2").distances[:, -1]


def _divergence(logits: Tensor, logits_perturbed: Tensor) -> Tensor:
    """KL(p || p'), mean over samples."""
    return F.kl_div(logits_perturbed.log_softmax(1), logits.log_softmax(1), reduction="batchmean", log_target=True)


def _per_sample(values: Tensor, x: Tensor) -> Tensor:
    return values.reshape(-1, *[1] * (x.ndim - 1))


def _lengths(values: float | Tensor, x: Tensor) -> Tensor:
    """One for all samples, or one each."""
    return _per_sample(torch.as_tensor(values, dtype=x.dtype, device=x.device), x)


def _unit(r: Tensor) -> Tensor:
    """Each sample's direction, divided by its largest value first, as squares of tiny gradients underflow."""
    largest = r.flatten(1).abs().amax(1).clamp(min=torch.finfo(r.dtype).tiny)
    return F.normalize((r / _per_sample(largest, r)).flatten(1), dim=1).view_as(r)


def vat_direction(
    predict: Predict,
    x: Tensor,
    eps: float | Tensor,
    xi: float | Tensor = 10.0,
    *,
    rng: torch.Generator | None = None,
    logits: Tensor | None = None,
    noise: Tensor | None = None,
    share: float = 1.0,
) -> Tensor:
    """The perturbation of length eps_i that changes the prediction of x_i most: one power step from a random one of xi.

    Miyato et al. 2018, algorithm 1. Where nothing changes the prediction, the random direction stays. It is drawn, or
    given as Gaussian ``noise``. ``share`` is the part of the batch in x where several processes split it: through
    batch norm all samples affect each other.
    """
    if noise is None:
        noise = torch.randn(x.shape, generator=rng, device=rng.device if rng else x.device)
    noise = noise.to(x, non_blocking=True)
    target = _fixed(predict, x, logits)
    with torch.enable_grad():
        r = (_lengths(xi, x) * _unit(noise)).requires_grad_()
        (gradient,) = torch.autograd.grad(share * _divergence(target, predict(x + r)), r)
    felt = gradient.flatten(1).abs().amax(1) > 0
    direction = _unit(torch.where(_per_sample(felt, x), gradient, noise))
    return _lengths(eps, x) * direction


def vat_loss(predict: Predict, x: Tensor, r: Tensor, logits: Tensor | None = None) -> Tensor:
    """KL(p(x) || p(x + r)) for a perturbation r, as found by ``vat_direction``; p(x) is a fixed target (R_SAT).

    Pass the ``logits`` of ``x`` if they are already known.
    """
    return _divergence(_fixed(predict, x, logits), predict(x + r))


def _fixed(predict: Predict, x: Tensor, logits: Tensor | None) -> Tensor:
    if logits is not None:
        return logits.detach()
    with torch.no_grad():
        return predict(x)
