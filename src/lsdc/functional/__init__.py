"""The paper as pure functions of tensors. ``docs/paper-to-code.md`` maps its equations to these names.

The methods it compares with have one module each.
"""

from lsdc.functional.composition import COMPOSITIONS, cutmix, mixup, none, ricap
from lsdc.functional.dac import dac_labels, dac_pair_loss, dac_thresholds
from lsdc.functional.dec import kl_to_target, soft_assignment, target_distribution
from lsdc.functional.deepcluster import uniform_over_clusters, whiten, whitening
from lsdc.functional.finch import cut, finch_partitions, first_neighbours, linked, merge_closest, natural
from lsdc.functional.graph import graph_information, pair_likelihood, views_joint, walk, walk_joint
from lsdc.functional.iic import iic_loss, joint, sobel
from lsdc.functional.imsat import (
    conditional_entropy,
    information_loss,
    local_radius,
    marginal_entropy,
    vat_direction,
    vat_loss,
)
from lsdc.functional.jule import (
    cluster_affinity,
    companions,
    n_after,
    sparse_affinity,
    triplet_loss,
    triplets,
)
from lsdc.functional.linkage import merge_clusters, merge_score
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
from lsdc.functional.merging import merged
from lsdc.functional.neighbours import components, nearest, nearest_among
from lsdc.functional.rearrangement import rearranged
from lsdc.functional.similarity import SCORES, SIMILARITIES, closest, cosine, knn, l2, sne
from lsdc.functional.vade import (
    Mixture,
    mixture_log_density,
    prior_divergence,
    reparameterise,
    responsibilities,
    vade_loss,
)
from lsdc.functional.words import by_words, word_weights

__all__ = [
    "COMPOSITIONS",
    "SCORES",
    "SIMILARITIES",
    "Mixture",
    "at_least_single",
    "balance_loss",
    "by_words",
    "closest",
    "cluster_affinity",
    "companions",
    "components",
    "conditional_entropy",
    "consistency_loss",
    "cosine",
    "cut",
    "cutmix",
    "dac_labels",
    "dac_pair_loss",
    "dac_thresholds",
    "finch_partitions",
    "first_neighbours",
    "graph_information",
    "iic_loss",
    "information_loss",
    "joint",
    "kl_to_target",
    "knn",
    "l2",
    "linked",
    "local_radius",
    "marginal_entropy",
    "merge_closest",
    "merge_clusters",
    "merge_score",
    "merged",
    "mix_targets",
    "mixture_log_density",
    "mixup",
    "n_after",
    "natural",
    "nearest",
    "nearest_among",
    "none",
    "nt_xent",
    "pair_likelihood",
    "pair_loss",
    "positive_weight",
    "prior_divergence",
    "rampup",
    "rearranged",
    "reparameterise",
    "responsibilities",
    "ricap",
    "sne",
    "sobel",
    "soft_assignment",
    "sparse_affinity",
    "target_distribution",
    "triplet_loss",
    "triplets",
    "uniform_over_clusters",
    "vade_loss",
    "vat_direction",
    "vat_loss",
    "views_joint",
    "walk",
    "walk_joint",
    "whiten",
    "whitening",
    "word_weights",
]
