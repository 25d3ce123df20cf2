"""Clusters of texts get terms and names: what sets each apart, in every place where people meet clusters."""

import csv
import json

import numpy as np
import pytest

import lsdc
from lsdc import KMeans
from lsdc.data.names import name_clusters, numbered
from lsdc.runs.labels import labels_csv
from test_cli import inside

PETS = ["the cat sleeps", "a dog and a cat", "dogs bark at cats", "my cat purrs"]
MONEY = ["the bank lends money", "interest rates and money", "a bank account", "money in the bank"]
TEXTS = [text for pair in zip(PETS, MONEY, strict=True) for text in pair]
KINDS = np.array([0, 1] * 4)


def by_hand(texts, labels, word, cluster):
    """Class-based tf-idf of one word, straight from its formula."""
    stop = {"the", "a", "and", "my", "at", "in"}
    words = [[w for w in text.split() if w not in stop] for text in texts]
    mine = [w for text, label in zip(words, labels, strict=True) for w in text if label == cluster]
    every = [w for text in words for w in text]
    mean = len(every) / len(set(labels))
    return mine.count(word) / len(mine) * np.log(1 + mean / every.count(word))


def test_terms_are_ranked_by_class_based_tf_idf():
    found = name_clusters(TEXTS, KINDS, 2)
    assert found.terms[0][0] == "cat"
    assert set(found.terms[1][:2]) == {"bank", "money"}
    for cluster in (0, 1):
        scores = [by_hand(TEXTS, KINDS, word, cluster) for word in found.terms[cluster]]
        assert scores == sorted(scores, reverse=True)
        assert min(scores) > 0
    assert found.names[0].startswith("cat, ")
    assert found.names[1].count(",") == 2


def test_words_that_are_everywhere_name_nothing():
    texts = [f"{word} report {word}" for word in ("alpha", "beta", "gamma")] * 5
    found = name_clusters(texts, np.tile([0, 1, 2], 5), 3)
    assert [terms[0] for terms in found.terms] == ["alpha", "beta", "gamma"]


def test_a_word_hardly_more_frequent_than_elsewhere_is_no_term():
    """ "package" stands in every text; that some are shorter makes it no sign of them."""
    texts = ["package latex macros"] * 5 + ["package fonts glyphs outlines"] * 5
    found = name_clusters(texts, np.repeat([0, 1], 5), 2)
    assert found.names == ("latex, macros", "fonts, glyphs, outlines")


def test_a_cluster_of_nearly_all_texts_has_terms():
    found = name_clusters(["cat sleeps"] * 19 + ["bank lends"], np.array([0] * 19 + [1]), 2)
    assert found.names == ("cat, sleeps", "bank, lends")


def test_forms_of_one_word_are_one_term():
    found = name_clusters(["films film filmed actor", "stocks stock trader"], np.array([0, 1]), 2)
    assert sorted(found.terms[0])[0] == "actor"
    assert len(found.terms[0]) == 2
    assert len(found.terms[1]) == 2


@pytest.mark.parametrize("texts", [["", " "], ["1 2", "3 4"], ["the", "and of"]])
def test_texts_without_words_have_numbers(texts):
    assert name_clusters(texts, np.array([0, 1]), 3) == numbered(3)
    assert numbered(2).names == ("cluster 0", "cluster 1")


def test_names_differ_and_empty_clusters_have_one():
    found = name_clusters(["cat", "cat", "dog"], np.array([0, 1, 3]), 4)
    assert found.names == ("cat (0)", "cat (1)", "cluster 2", "dog")
    assert name_clusters(["cat", "dog"], np.array([0, -1]), 1).terms == (("cat",),)


def test_names_in_python_and_in_the_file(tmp_path):
    model = KMeans(2, random_state=0).fit(TEXTS * 3)
    assert sorted(name.split(",")[0] for name in model.cluster_names_) in (["bank", "cat"], ["cat", "money"])
    model.save(tmp_path / "m.safetensors")
    again = lsdc.load(tmp_path / "m.safetensors")
    assert again.cluster_names_ == model.cluster_names_
    assert again.cluster_terms_ == model.cluster_terms_
    vectors = KMeans(2, random_state=0).fit(np.eye(6))
    assert vectors.cluster_names_ == ["cluster 0", "cluster 1"]
    assert vectors.cluster_terms_ == [[], []]
    with pytest.raises(AttributeError):
        KMeans(2).cluster_names_


def test_names_in_the_run_folder_and_the_terminal(tmp_path):
    (tmp_path / "x.txt").write_text("\n".join([*TEXTS * 3, ""]))
    done = inside("fit", "x.txt", "-k", 2, "--method", "kmeans", "--out", "run", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    content = json.loads((tmp_path / "run" / "names.json").read_text())
    assert content.keys() == {"names", "terms"}
    assert all(name.split()[0] in done.stdout for name in content["names"])  # long ones are wrapped
    labels = (tmp_path / "run" / "labels.csv").read_text()
    rows = list(csv.DictReader(labels.splitlines()))
    assert list(rows[0]) == ["id", "cluster", "confidence", "name", "second", "second_confidence"]
    assert all(row["name"] == content["names"][int(row["cluster"])] for row in rows)
    assert inside("predict", "run", "x.txt", cwd=tmp_path).stdout == labels
    (tmp_path / "n.npy").write_bytes(b"")
    np.save(tmp_path / "n.npy", np.random.default_rng(0).random((20, 3)))
    assert (
        inside("fit", "n.npy", "-k", 2, "--method", "kmeans", "--out", "run", "--overwrite", cwd=tmp_path).returncode
        == 0
    )
    assert not (tmp_path / "run" / "names.json").exists()


def test_names_are_harmless_in_a_spreadsheet():
    names = numbered(1)
    risky = type(names)(("=1+1, x",), (("=1+1",),))
    assert labels_csv(["a", "b"], [0, -1], [0.5, 0.5], named=risky).splitlines()[1:] == [
        'a,0,0.500000,"\'=1+1, x"',
        "b,-1,0.500000,",
    ]
