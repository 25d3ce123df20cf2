"""Names for clusters of texts: the terms that set each apart from the others."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import CountVectorizer

from lsdc.data.words import terms_in

MOST = 20_000  # words considered, the most frequent ones
TERMS = 10  # per cluster, strongest first
IN_NAME = 3
MORE = 1.5  # times as frequent as elsewhere: boilerplate ("this package provides") is frequent everywhere, and no name


@dataclass(frozen=True)
class Names:
    """A short name for each cluster, and its strongest terms."""

    names: tuple[str, ...]
    terms: tuple[tuple[str, ...], ...]


def numbered(n_clusters: int) -> Names:
    """Numbers as names, where nothing else is known."""
    return Names(tuple(f"cluster {i}" for i in range(n_clusters)), ((),) * n_clusters)


def name_clusters(texts: Sequence[str], labels: np.ndarray, n_clusters: int) -> Names:
    """Names by class-based tf-idf: how frequent a word is in a cluster, times how rare it is overall.

    The weight of word w in cluster c is tf(w, c) log(1 + A / f(w)): tf its share of the cluster's words, f how often
    it is used in all, A the mean number of words of a cluster (Grootendorst, 2022). Only words that are clearly more
    frequent here than in the other clusters count. Labels of -1 are left out.
    """
    vectorizer = CountVectorizer(tokenizer=terms_in, token_pattern=None, stop_words="english", max_features=MOST)
    try:
        counts = vectorizer.fit_transform(texts)
    except ValueError:  # no words at all
        return numbered(n_clusters)
    rows = np.flatnonzero(labels >= 0)
    members = sp.csr_matrix((np.ones(len(rows)), (labels[rows], rows)), shape=(n_clusters, len(texts)))
    used = sp.csr_matrix(members @ counts)
    words = np.asarray(used.sum(1), float).ravel()
    in_all = np.asarray(used.sum(0), float).ravel()
    rare = np.log1p(words.mean() / np.maximum(in_all, 1))
    vocabulary, terms = vectorizer.get_feature_names_out(), []
    for c in range(n_clusters):
        columns, times = (part[used.indptr[c] : used.indptr[c + 1]] for part in (used.indices, used.data))
        here, elsewhere = times / max(words[c], 1), (in_all[columns] - times) / max(words.sum() - words[c], 1)
        here, columns = here[here > MORE * elsewhere], columns[here > MORE * elsewhere]
        weights = here * rare[columns]
        best = np.lexsort((columns, -weights))[: 3 * TERMS]
        terms.append(tuple(_distinct([str(vocabulary[j]) for j in columns[best]])[:TERMS]))
    return Names(tuple(_unique([", ".join(found[:IN_NAME]) for found in terms])), tuple(terms))


def _distinct(terms: Sequence[str]) -> list[str]:
    """Terms without variants of an earlier one: of film, films and filmed, the strongest stays."""
    kept: list[str] = []
    for term in terms:
        if not any(
            term.startswith(other) or other.startswith(term) for other in kept if min(len(term), len(other)) > 3
        ):
            kept.append(term)
    return kept


def _unique(names: Sequence[str]) -> list[str]:
    """Distinct names: duplicates are numbered, an empty one becomes "cluster i"."""
    times = Counter(names)
    return [
        f"cluster {i}" if not name else f"{name} ({i})" if times[name] > 1 else name for i, name in enumerate(names)
    ]
