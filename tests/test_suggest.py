"""How many clusters there are: exact where it is clear, 1 where nothing parts the samples, and said where it is not."""

import json
import re

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.datasets import load_digits, make_blobs

from lsdc import METHODS, InputError, KMeans, load, suggest_k
from lsdc.methods.choosing import doubts, near_duplicates
from lsdc.methods.communities import louvain, narrowest, neighbour_graph
from lsdc.metrics import unassigned
from test_cli import inside


@pytest.mark.parametrize(("n_clusters", "d", "seed"), [(3, 16, 0), (5, 2, 1), (8, 8, 2), (12, 5, 3)])
def test_blobs_are_counted(n_clusters, d, seed):
    box = (-60, 60) if d == 2 else (-15, 15)
    X, _ = make_blobs(600, d, centers=n_clusters, center_box=box, random_state=seed)
    found = suggest_k(X)
    assert found.n_clusters == n_clusters
    assert found.sureness == "sure"


@pytest.mark.parametrize(("n", "n_clusters", "d"), [(30, 3, 50), (60, 6, 40), (100, 5, 16), (200, 10, 32)])
def test_blobs_of_some_dozen_samples_are_counted(n, n_clusters, d):
    X, _ = make_blobs(n, d, centers=n_clusters, cluster_std=1.5, random_state=0)
    assert suggest_k(X).n_clusters == n_clusters


def test_clusters_of_unequal_size_are_counted():
    X, _ = make_blobs([500, 150, 60, 30], 8, center_box=(-15, 15), random_state=4)
    assert suggest_k(X).n_clusters == 4


@pytest.mark.parametrize("d", [2, 20])
def test_one_blob_is_one_cluster(d):
    found = suggest_k(np.random.default_rng(0).normal(size=(500, d)))
    assert found.n_clusters == 1
    assert "1 cluster" in found.in_words()


def test_digits_have_about_ten_clusters():
    assert abs(suggest_k(load_digits().images).n_clusters - 10) <= 2


def test_sparse_documents_are_counted():
    rng = np.random.default_rng(0)
    topics = np.kron(np.eye(3), np.full(20, 0.3)) + 0.01
    X = csr_matrix(rng.poisson(topics[rng.integers(3, size=300)]).astype(np.float32))
    assert suggest_k(X).n_clusters == 3


def test_the_same_data_gives_the_same_suggestion():
    X = np.random.default_rng(0).normal(size=(200, 3))
    assert suggest_k(X) == suggest_k(X)


def test_few_samples_are_refused():
    with pytest.raises(InputError, match="too few to count"):
        suggest_k(np.random.default_rng(0).normal(size=(9, 3)))


def test_communities_of_separate_cliques_are_the_cliques():
    X = np.repeat(np.arange(4.0), 20)[:, None] * 100 + np.random.default_rng(0).random((80, 1))
    A, _ = neighbour_graph(X.astype(np.float32), 10)
    labels = louvain(A, np.random.default_rng(0))
    assert [len(set(part)) for part in labels.reshape(4, 20)] == [1] * 4
    assert len(set(labels)) == 4


def test_the_narrowest_cut_finds_the_bridge():
    clique = np.ones((20, 20)) - np.eye(20)
    A = np.kron(np.eye(2), clique)
    A[0, 20] = A[20, 0] = 1.0
    volume = 20 * 19 + 1
    assert narrowest(csr_matrix(A)) == pytest.approx(1 * 2 * volume / volume**2)


def test_copies_do_not_make_the_data_flat():
    """Two samples in the same place say nothing about how many directions there are."""
    X = np.random.default_rng(0).normal(size=(400, 12)).astype(np.float32)
    _, alone = neighbour_graph(X)
    _, with_copies = neighbour_graph(np.concatenate([X, X[:40]]))
    assert with_copies == pytest.approx(alone, rel=0.1)


def test_near_duplicates_are_found_beside_exact_ones():
    X = np.random.default_rng(0).normal(size=(200, 12)).astype(np.float32)
    X[100:120] = X[80:100]
    X[7] = X[3] + 1e-3
    assert (3, 7) in [(i, j) for i, j, _ in near_duplicates(X)]


def test_auto_is_counted_for_the_fit_and_kept_as_given(tmp_path):
    X, _ = make_blobs(300, 6, centers=4, center_box=(-15, 15), random_state=0)
    model = KMeans("auto", random_state=0).fit(X, run=tmp_path / "run")
    assert model.get_params()["n_clusters"] == "auto"
    assert model.n_clusters_ == model.suggestion_.n_clusters == 4
    assert clone(model).n_clusters == "auto"
    assert (load(tmp_path / "run").predict(X) == model.labels_).all()
    assert (KMeans("auto", random_state=0).fit(X, resume=tmp_path / "run").labels_ == model.labels_).all()


@pytest.mark.parametrize("name", ["lsdc", "finch"])
def test_every_kind_of_method_takes_auto(name):
    X, _ = make_blobs(120, 4, centers=3, center_box=(-20, 20), random_state=0)
    model = METHODS[name]("auto", **({"epochs": 1} if name == "lsdc" else {})).fit(X)
    assert model.n_clusters_ == 3


def test_a_refused_auto_leaves_the_estimator_as_it_was():
    model = KMeans("auto")
    with pytest.raises(InputError):
        model.fit(np.eye(5))
    assert model.n_clusters == "auto"
    assert not hasattr(model, "labels_")


def test_other_words_are_no_number_of_clusters():
    with pytest.raises(InputError, match="n_clusters"):
        KMeans("many").fit(np.random.default_rng(0).normal(size=(30, 2)))


def test_far_too_many_or_too_few_clusters_are_said():
    X, _ = make_blobs(400, 8, centers=6, center_box=(-15, 15), random_state=0)
    X = X.astype(np.float32)
    assert "too many? you asked for 12" in doubts(X, 12)[0]
    assert "too few? you asked for 2" in doubts(X, 2)[0]
    assert doubts(X, 6) == doubts(X, 7) == []


def test_near_duplicates_are_found_once():
    X = np.random.default_rng(0).normal(size=(200, 12)).astype(np.float32)
    X[7] = X[3] + 1e-3
    assert [(i, j) for i, j, _ in near_duplicates(X)] == [(3, 7)]
    assert near_duplicates(np.random.default_rng(0).normal(size=(200, 2)).astype(np.float32)) == []


def test_the_least_certain_are_left_unassigned():
    assert unassigned([0, 1, 2, 1], [0.9, 0.2, 0.8, 0.5], 0.5).tolist() == [0, -1, 2, -1]
    assert unassigned([0, 1], [0.5, 0.5], 0.0).tolist() == [0, 1]


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A table of numbers without labels, four blobs, two rows nearly the same."""
    folder = tmp_path_factory.mktemp("table")
    X, _ = make_blobs(240, 6, centers=4, center_box=(-15, 15), random_state=0)
    X[1] = X[0] + 1e-4
    np.save(folder / "x.npy", X)
    return folder


def test_suggest_k_shows_a_table_and_what_to_do_next(table):
    done = inside("suggest-k", "x.npy", cwd=table)
    assert done.returncode == 0, done.stderr
    assert "suggested:  4 clusters (sure)" in done.stdout
    assert "fit x.npy --clusters 4" in done.stdout


def test_suggest_k_takes_encoders_and_says_how_to_read_the_data_again(tmp_path):
    """What it told people to do next left out how the file had been read."""
    pytest.importorskip("wordllama")
    topics = ("rain and snow fall from {} clouds", "the bank lends {} money at interest", "a recipe for {} apple cakes")
    rows = [f'{i},"{topics[i % 3].format(i)}",{i * 0.5}\n' for i in range(90)]
    (tmp_path / "my mails.csv").write_text("id,body,size\n" + "".join(rows))
    done = inside("suggest-k", "my mails.csv", "--column", "body", "--text-encoder", "wordllama", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert re.search(r"fit 'my mails.csv' --clusters \d+ --column body --text-encoder wordllama\n", done.stdout)
    done = inside("suggest-k", "my mails.csv", "--columns", "size", "--no-scale", "--encoder", "net.onnx", cwd=tmp_path)
    assert done.returncode == 2
    assert "the encoder is for images" in done.stderr


def test_a_fit_counts_clusters_and_says_what_came_of_it_as_json(table):
    done = inside(
        "fit", "x.npy", "-k", "auto", "--method", "kmeans", "--outliers", "0.1", "--json", "--out", "r", cwd=table
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["n_clusters"] == 4
    assert result["unassigned"] == 24
    assert sum(result["sizes"]) == 216
    assert "counted: 4 clusters" in done.stderr
    assert "outliers: 24 of 240" in done.stderr
    assert (table / "r" / "duplicates.csv").read_text().splitlines()[1].startswith("0,1,")
    assert json.loads((table / "r" / "read.json").read_text())["suggestion"]["n_clusters"] == 4
    rows = [row.split(",") for row in (table / "r" / "labels.csv").read_text().splitlines()]
    assert rows[0] == ["id", "cluster", "confidence", "second", "second_confidence"]
    assert sum(row[1] == "-1" for row in rows) == 24
    assert all(row[1] != row[3] for row in rows[1:])
    again = inside("evaluate", "r", cwd=table)
    assert "unassigned" in again.stdout, again.stderr


def test_a_quiet_fit_says_nothing(table):
    done = inside("fit", "x.npy", "-k", "4", "--method", "kmeans", "--quiet", "--out", "q", cwd=table)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_missing_clusters_name_the_ways_to_find_them(table):
    done = inside("fit", "x.npy", "--out", "m", cwd=table)
    assert done.returncode == 2
    assert "--clusters auto" in done.stderr
    assert "lsdc suggest-k" in done.stderr
    wrong = inside("fit", "x.npy", "--clusters", "some", "--out", "m", cwd=table)
    assert (wrong.returncode, "a whole number or auto" in wrong.stderr) == (2, True)
