"""LSD-C on documents: all of their words decide in the end, not only the topics they came by (decision 89)."""

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import normalize

from lsdc import parallel
from lsdc.functional import by_words
from lsdc.nn.network import Network

GAINS = 1.0, 30.0  # bounds of what multiplies the evidence of words


@torch.no_grad()
def decide_by_words(network: Network, labels: Tensor, x: Any) -> None:
    """Let the words of documents ``x`` decide on their clusters: a few directions tell topics, not their borders.

    Numbers below zero count no words; then all stays as it is.
    """
    words: Any = network.backbone.stages[-1]
    head: Any = network.head
    n_clusters, (n_topics, most) = len(head.bias), words.weight.shape
    if n_clusters > most or x.min() < 0 or x.max() == 0:
        return
    weights = by_words(x, labels, n_clusters)
    said = normalize(torch.from_numpy(x @ weights.numpy()))
    gain = gain_for(said, float((said.argmax(1) == labels).double().mean()))
    words.evidence[:, :n_clusters] = weights
    words.weight[:, :n_clusters], words.bias[:n_clusters] = head.weight.T[:n_topics], head.bias
    head.weight.zero_()
    head.weight[:, n_topics : n_topics + n_clusters].fill_diagonal_(gain)
    head.bias.zero_()
    parallel.spread([words.evidence, words.weight, words.bias, head.weight])  # rounding must not part the processes


def gain_for(evidence: Tensor, share: float) -> float:
    """What to multiply evidence (n, K) with, so that its mean confidence is ``share``; within bounds.

    Documents are as sure of their clusters as their topics and their words agree on them: labels have no part in it.
    """
    low, high = GAINS
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if (middle * evidence).softmax(1).amax(1).mean() > share else (middle, high)
    return low
