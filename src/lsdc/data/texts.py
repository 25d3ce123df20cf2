"""Texts as vectors: tf-idf over the most frequent words, with a state that fits into a model file."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfVectorizer

from lsdc.data.words import words_in
from lsdc.errors import InputError


def are_texts(X: Any) -> bool:
    """Whether X is a list (or tuple) of strings."""
    return isinstance(X, (list, tuple)) and len(X) > 0 and all(isinstance(item, str) for item in X)


@dataclass(frozen=True)
class TfIdf:
    """Words and their inverse document frequencies."""

    words: tuple[str, ...]
    idf: np.ndarray

    @classmethod
    def fit(cls, texts: Sequence[str], max_words: int = 2000) -> "TfIdf":
        """The most frequent words of some texts, without stop words."""
        vectorizer = _vectorizer(max_features=max_words)
        try:
            vectorizer.fit(texts)
        except ValueError:
            raise InputError("X contains texts, but no words to tell them apart by") from None
        return cls(tuple(vectorizer.get_feature_names_out()), vectorizer.idf_)

    def transform(self, texts: Sequence[str]) -> sp.csr_matrix:
        """One row per text, of length one."""
        vectorizer = _vectorizer(vocabulary=list(self.words))
        vectorizer.idf_ = self.idf
        return sp.csr_matrix(vectorizer.transform(texts), dtype=np.float32)


def _vectorizer(**options: Any) -> TfidfVectorizer:
    options |= {"tokenizer": words_in, "token_pattern": None}
    return TfidfVectorizer(stop_words="english", sublinear_tf=True, **options)
