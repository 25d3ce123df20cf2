"""VaDE: variational deep embedding (Jiang, Zheng, Tan, Tang, Zhou 2017): a VAE whose prior is a Gaussian mixture.

``z = reparameterise(mean, log_var, rng)``; ``gamma = responsibilities(z, *mixture)``;
``loss = vade_loss(reconstruction, mean, log_var, gamma, mixture)``.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor


class Mixture(NamedTuple):
    """The prior: log shares (K,), means and log variances (K, D). All are trained."""

    log_pi: Tensor
    mu: Tensor
    log_var: Tensor


def reparameterise(
    mean: Tensor, log_var: Tensor, rng: torch.Generator | None = None, noise: Tensor | None = None
) -> Tensor:
    """One draw z = mean + sigma * noise of each sample (the reparameterisation trick), its noise drawn or given."""
    if noise is None:
        noise = torch.randn(mean.shape, generator=rng, device=rng.device if rng else mean.device)
    return mean + (log_var / 2).exp() * noise.to(mean)


def mixture_log_density(z: Tensor, log_pi: Tensor, mu: Tensor, log_var: Tensor) -> Tensor:
    """The logarithm of p(c) p(z|c) for every component (N, K); its logsumexp is log p(z)."""
    square = (z[:, None] - mu).square() / log_var.exp()
    return log_pi - (math.log(2 * math.pi) + log_var + square).sum(2) / 2


def responsibilities(z: Tensor, log_pi: Tensor, mu: Tensor, log_var: Tensor) -> Tensor:
    """gamma_c = p(c|z): the share of each component (N, K) in the density at z (the paper's q(c|x))."""
    return mixture_log_density(z, log_pi, mu, log_var).softmax(1)


def prior_divergence(mean: Tensor, log_var: Tensor, gamma: Tensor, mixture: Mixture) -> Tensor:
    """KL(q(z, c|x) || p(z, c)) of each sample (N,): the terms of the evidence bound but the first."""
    log_pi, mu, log_var_c = mixture
    variance = log_var_c.exp()
    square = (mean[:, None] - mu).square()
    spread = (log_var_c + (log_var.exp()[:, None] + square) / variance).sum(2)
    tiny = torch.finfo(gamma.dtype).tiny  # gamma log gamma is 0 at 0, and so is its gradient's part
    shares = gamma * (gamma.clamp(min=tiny).log() - log_pi)
    return (gamma * spread).sum(1) / 2 - (1 + log_var).sum(1) / 2 + shares.sum(1)


def vade_loss(reconstruction: Tensor, mean: Tensor, log_var: Tensor, gamma: Tensor, mixture: Mixture) -> Tensor:
    """The negative evidence bound, mean over samples (the paper's L_ELBO with one draw of z).

    ``reconstruction`` (N,) is the error *summed* over the d values of a sample: cross-entropy for values between 0 and
    1, otherwise squares.
    """
    return (reconstruction + prior_divergence(mean, log_var, gamma, mixture)).mean()
