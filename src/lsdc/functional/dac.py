"""DAC: deep adaptive image clustering (Chang, Wang, Meng, Xiang, Pan 2017): certain pairs first, then the others."""

import torch
import torch.nn.functional as F
from torch import Tensor

from lsdc.functional.losses import EPS


def dac_thresholds(lam: float) -> tuple[float, float]:
    """The upper threshold u = .95 - lambda and the lower l = .455 + .1 lambda; they meet at lambda = .45: the end."""
    return 0.95 - lam, 0.455 + 0.1 * lam


def _cosines(p: Tensor) -> Tensor:
    label_features = F.normalize(p, dim=1)
    return (label_features @ label_features.T).clamp(0, 1)  # rounding can push a sum of products just over 1


@torch.no_grad()
def dac_labels(p: Tensor, upper: float, lower: float) -> tuple[Tensor, Tensor]:
    """r_ij = [s_ij > u], and the selected pairs v_ij = [s_ij > u or s_ij < l] (equation 6).

    A sample and itself do not count as a pair.
    """
    s = _cosines(p)
    positive, negative = s > upper, s < lower
    return positive.to(p.dtype), (positive | negative).fill_diagonal_(False)


def dac_pair_loss(p: Tensor, upper: float, lower: float, p_labels: Tensor | None = None) -> Tensor:
    """Binary cross-entropy of the cosines of predictions, mean over the selected pairs, 0 if there are none.

    Labels come from the predictions ``p_labels`` where several passes share them, else from ``p`` itself.
    """
    r, selected = dac_labels(p if p_labels is None else p_labels, upper, lower)
    s = _cosines(p)
    loss = -(r * (s + EPS).log() + (1 - r) * (1 - s + EPS).log())
    return (loss * selected).sum() / selected.sum().clamp(min=1)
