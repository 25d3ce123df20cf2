"""The paper as pure functions of tensors. ``docs/paper-to-code.md`` maps its equations to these names."""

from lsdc.functional.composition import COMPOSITIONS, cutmix, mixup, none, ricap
from lsdc.functional.losses import (
    at_least_single,
    balance_loss,
    consistency_loss,
    mix_targets,
    nt_xent,
    pair_loss,
    positive_weight,
    rampup,
)
from lsdc.functional.similarity import SCORES, SIMILARITIES, closest, cosine, diffusion, knn, l2, sne

__all__ = [
    "COMPOSITIONS",
    "SCORES",
    "SIMILARITIES",
    "at_least_single",
    "balance_loss",
    "closest",
    "consistency_loss",
    "cosine",
    "cutmix",
    "diffusion",
    "knn",
    "l2",
    "mix_targets",
    "mixup",
    "none",
    "nt_xent",
    "pair_loss",
    "positive_weight",
    "rampup",
    "ricap",
    "sne",
]
