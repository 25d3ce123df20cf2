"""Words of texts in any script."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsdc.data.names import name_clusters
from lsdc.data.texts import TfIdf
from lsdc.data.words import terms_in, words_in

CHINESE = ["我喜欢看足球比赛", "昨天的足球比赛很精彩", "银行提高了贷款利率", "他们讨论贷款利率的变化"]


@given(st.text(alphabet=st.sampled_from("abYZé09-_ .,'\n\u0416"), max_size=40))
def test_where_words_have_spaces_they_are_what_lies_between_boundaries(text):
    assert words_in(text) == re.findall(r"(?u)\b\w{2,256}\b", text)
    assert terms_in(text) == re.findall(r"(?u)\b[^\W\d_][\w-]{1,39}\b", text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("हिन्दी में लिखा", ["हिन्दी", "में", "लिखा"]),  # signs for vowels are no boundaries
        ("cafe\u0301", ["cafe\u0301"]),  # nor are accents that stand by themselves
        ("足球比赛", ["足球", "球比", "比赛"]),
        ("图", ["图"]),
        ("GPU 的内存", ["GPU", "的内", "内存"]),
        ("น้ำแข็ง", ["น้ำ", "ำแ", "แข็", "ข็ง"]),
        ("한국어 문장", ["한국어", "문장"]),
    ],
)
def test_words_of_other_scripts(text, words):
    assert words_in(text) == terms_in(text) == words


def test_sentences_without_spaces_share_words():
    """Each sentence was one word, so no two had anything in common."""
    X = TfIdf.fit(CHINESE).transform(CHINESE)
    alike = (X @ X.T).toarray()
    assert alike[0, 1] > 0.1
    assert alike[2, 3] > 0.1
    assert alike[:2, 2:].max() < 0.1
    names = name_clusters(CHINESE, np.array([0, 0, 1, 1]), 2).terms
    assert {"足球", "比赛"} <= set(names[0])
    assert {"贷款", "利率"} <= set(names[1])
