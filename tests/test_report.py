"""The report: figures that agree, samples that are well chosen, a page that can do nothing but show."""

import base64
import io
import json
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from PIL import Image

from lsdc.data.reading import Columns, Dataset
from lsdc.methods.layout import plane
from lsdc.metrics import clustering_accuracy
from lsdc.report.apart import excerpt, set_apart, words_of
from lsdc.report.cards import shown
from lsdc.report.facts import ComparisonFile, Facts, NamesFile, ReadFile, Roles, warnings_of
from lsdc.report.html import amount, breakable
from lsdc.report.nearness import MERGE, nearest_pairs, nearness
from lsdc.report.outputs import Outputs, doubtful, picked
from lsdc.report.training import courses
from lsdc.report.truth import against
from lsdc.report.write import Inputs, drawn
from test_cli import inside, refused

RNG = np.random.default_rng(0)
LABELS = np.array([0, 0, 1, 1, 1, 3])
CONFIDENCE = np.array([0.99, 0.5, 0.95, 0.91, 0.2, 0.7])
CONFIG = {"method": "lsdc", "seed": 0, "params": {"n_clusters": 4}, "settings": {"a": {"b": 1.5}}, "data": {}}
HISTORY = [
    {"stage": "pretext", "epoch": 1, "loss": 9.0},
    {"stage": "clustering", "epoch": 1, "loss": 0.5, "alive": 2, "confident": 0.0, "shares": [0.25] * 4},
    {"stage": "clustering", "epoch": 2, "loss": 0.25, "alive": 3, "confident": 0.123, "shares": [0.25] * 4},
]
EVIL = "</script><script>alert('x')</script>"


class Tags(HTMLParser):
    def __init__(self, content):
        super().__init__()
        self.tags, self.attributes, self.text, self.inside = [], [], "", ""
        self.feed(content.decode())

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.inside = tag
        self.attributes += [(name, value or "") for name, value in attributes]

    def handle_data(self, data):
        self.text += data if self.inside not in ("script", "style") else ""


def facts(labels=LABELS, confidence=CONFIDENCE, **more):
    ids = more.pop("ids", [f"s{i}" for i in range(len(labels))])
    known = {"config": CONFIG, "history": HISTORY, "read": None, "named": NamesFile(), "kmeans": None} | more
    return Facts(Path("run"), ids=ids, labels=labels, confidence=confidence, **known)


def told(dataset, labels=LABELS, n_clusters=4):
    """What a model would say."""
    p = np.full((len(labels), n_clusters), 0.1, np.float32)
    p[np.arange(len(labels)), labels] = 0.7
    return Outputs(np.arange(len(labels)), RNG.normal(size=(len(labels), 3)).astype(np.float32), p, len(labels))


def page(dataset=None, given=None, inputs=None, missing=""):
    out = told(dataset) if dataset is not None else None
    return Tags(drawn(given or facts(), dataset, inputs, out, missing))


# ---- figures ----------------------------------------------------------------------------------------------


def test_the_confident_share_is_that_of_labels_csv_everywhere():
    text = page(Dataset("x", np.zeros((6, 8, 8)), np.array([0, 0, 1, 1, 1, 2]))).text
    assert text.count("50%") >= 4
    assert "12%" not in text
    for part in ("Samples6", "Clusters4", "3 alive", "1 of 4 clusters is (nearly) empty", "2 epochs", "a.b"):
        assert part in text.replace("\n", "")


def test_the_least_sure_cluster_is_named_where_it_differs():
    labels = np.arange(100) % 4
    assert (
        "where it is least sure, of 0%"
        in drawn(facts(labels, np.where(labels == 2, 0.4, 1.0)), None, None, None, "").decode()
    )
    assert "least sure, of" not in drawn(facts(labels, np.ones(100)), None, None, None, "").decode()


def test_health_is_said_with_what_to_try():
    assert "lr, or another random_state" in warnings_of(facts(np.zeros(100, int), np.ones(100)))[0]
    assert warnings_of(facts(np.arange(100) % 4, np.ones(100))) == []
    assert "another number of clusters" in warnings_of(facts(np.arange(100) % 4, np.full(100, 0.4)))[0]
    free = {**CONFIG, "params": {"n_clusters": None}}
    assert warnings_of(facts(np.r_[np.zeros(99, int), 9], np.ones(100), config=free))[0].startswith("99% of the")


@pytest.mark.parametrize(("own", "worse"), [(1.25, False), (1.0, False), (0.9, True), (-0.1, True)])
def test_a_run_that_k_means_beats_is_pointed_at(own, worse):
    kmeans = ComparisonFile(agreement=0.5, information={"lsdc": own, "kmeans": 1.0}, verdict="Compare.")
    text = drawn(facts(kmeans=kmeans), None, None, None, "").decode()
    lines = [line for line in text.splitlines() if "Compare." in line]
    assert ["note warn" in line for line in lines] == [worse]


def test_what_others_found_is_shown():
    kmeans = ComparisonFile(agreement=0.5, information={"lsdc": 1.25, "kmeans": 1.0}, verdict="Keep it.")
    read = ReadFile(kind="dense vectors", n=6, shape=[7], range=(-1, 2), zeros=0.25, duplicates=3, notes=["a note"])
    read.columns = Roles(features=["age", "income"], id="customer")
    text = page(given=facts(kmeans=kmeans, read=read, named=NamesFile(names=["Cats", None], terms=[["fur"]]))).text
    for part in (
        "Keep it.",
        "is the same): 0.50",
        "LSD-C 1.25",
        "rows of 7 numbers",
        "-1 to 2",
        "a note",
        "age, income",
        "customer",
        "Cats",
        "Cluster 1",
    ):
        assert part in " ".join(text.split())


def test_labels_are_matched_and_coverage_ends_at_the_accuracy():
    labels, y = RNG.integers(0, 5, 400), RNG.choice(["ant", "bee", "cat"], 400)
    y[labels == 2] = "bee"
    known = against(facts(labels, RNG.random(400), config={**CONFIG, "params": {"n_clusters": 5}}), y, ())
    everything, sure = known.matrices
    right = sum(count for line in everything.cells for count, _, same in line if same)
    assert right / 400 == known.scores.acc == clustering_accuracy(y, labels)
    assert known.coverage.alt.endswith(f"to {known.scores.acc:.0%}")
    assert sum(count for line in sure.cells for count, _, _ in line) < 400
    assert everything.heads == ["ant", "bee", "cat"]
    assert known.mostly[2] == ("bee", 1.0)


def test_halves_of_one_group_are_named():
    labels = np.repeat([0, 1, 2], 50)
    p = np.eye(3)[labels] * 0.6 + 0.01
    p[labels == 0, 1] += 0.37
    p[labels == 1, 0] += 0.37
    near = nearness(labels, p.astype(np.float32))
    assert near.diagonal().tolist() == [0, 0, 0]
    assert near[0].tolist() == pytest.approx([0, 0.38, 0.01])
    assert [(pair.a, pair.b) for pair in nearest_pairs(near) if pair.share >= MERGE] == [(0, 1)]


# ---- samples ----------------------------------------------------------------------------------------------


def test_samples_go_from_the_typical_to_the_doubtful_and_none_twice():
    confidence = np.r_[np.full(40, 0.999), np.linspace(0.9, 0.1, 20), np.ones(5)]
    distance = RNG.random(65)
    mine = np.arange(60)
    typical, between, least = shown(mine, confidence, distance, 6)
    assert set(typical) == set(np.argsort(distance[:40])[:6])
    assert least.tolist() == [59, 58, 57, 56, 55, 54]
    assert len({*typical, *between, *least}) == 18
    assert [len(part) for part in shown(mine[:4], confidence, distance, 6)] == [4, 0, 0]
    assert [len(part) for part in shown(mine[:9], confidence, distance, 6)] == [6, 0, 3]


def test_a_part_of_many_samples_has_some_of_every_cluster():
    labels = np.r_[np.zeros(9000, int), np.ones(2990, int), np.full(10, 2)]
    rows = picked(labels, 3, most=1000)
    assert len(rows) == len(set(rows)) == 1000
    assert np.bincount(labels[rows])[2] == 10
    assert 600 < np.bincount(labels[rows])[0] < 850
    assert (rows == picked(labels, 3, most=1000)).all()
    confidence = RNG.random(12000)
    least = doubtful(labels, confidence, 4)
    assert set(least[labels[least] == 1]) == set(9000 + np.argsort(confidence[9000:11990])[:4])


def test_excerpts_are_cut_at_words_and_mark_terms():
    text = "Alpha beta gamma delta epsilon zeta eta theta"
    assert "".join(part for part, _ in excerpt(text, [], 20)) == "Alpha beta gamma …"
    assert excerpt("A (beta) alphabet BETA", ["beta", "alpha"]) == [
        ("A (", False), ("beta", True), (") alphabet ", False), ("BETA", True)
    ]  # fmt: skip
    late = excerpt("word " * 100 + "needle and more", ["needle"], 60)
    assert ("needle", True) in late
    assert late[0][0].startswith("… word")
    assert excerpt("a+b [c", ["a+b", "[c"]) != []


def test_amounts_are_written_as_people_write_them():
    values = (1089.6, 746.9, 52_300.0, 2.963, 0.831, -1234.5, 0.0, 0.00012, 1.5e9)
    assert [*map(amount, values)] == ["1,090", "747", "52,300", "2.96", "0.831", "-1,230", "0", "0.00012", "1.5e+09"]


def test_long_names_break_at_their_joints_and_stay_text():
    assert breakable("total_phenols/x") == "total_<wbr>phenols/<wbr>x"
    assert breakable("<b>_&") == "&lt;b&gt;_<wbr>&amp;"


def test_stages_done_again_have_titles_for_people():
    records = [{"stage": stage, "loss": loss} for stage in ("choice", "choice-2", "own-3") for loss in (1.0, 0.5)]
    assert [course.title for course in courses(records, 2)] == [
        "New classifiers on what the network has become",
        "New classifiers on what the network has become, attempt 2",
        "own-3",
    ]


def test_features_that_set_a_cluster_apart():
    X = np.array([[0, 5.0, 1], [0, 5, 1], [0, 9, 1], [4, 9, 1]])
    labels = np.array([0, 0, 1, 1])
    found = set_apart(X, labels, 3, ["a", "b", "c"])
    assert [feature.name for feature in found[0]][:2] == ["b", "a"]
    assert found[0][0][1:] == pytest.approx((5, 7, -1))
    assert found[2] == []
    assert str(set_apart(sp.csr_matrix(X), labels, 3, ["a", "b", "c"])) == str(found)
    assert words_of(sp.csr_matrix(X), labels, 2, ("a", "b", "c")) == [[], ["b", "a"]]


# ---- the map ----------------------------------------------------------------------------------------------


def test_a_plane_keeps_groups_together_and_is_the_same_every_time():
    labels = np.repeat(np.arange(4), 60)
    f = (8 * np.eye(4, 40)[labels] + RNG.normal(size=(240, 40))).astype(np.float32)
    y = plane(f)
    assert (y == plane(f)).all()
    assert y.min() >= 0
    assert y.max() <= 1
    distance = np.square(y[:, None] - y).sum(2) + np.diag(np.full(240, np.inf))
    assert (labels[distance.argmin(1)] == labels).mean() > 0.98


@pytest.mark.parametrize(
    "f", [np.ones((1, 3)), np.ones((9, 3)), RNG.random((4, 1)), np.repeat(RNG.random((2, 5)), 9, 0)]
)
def test_a_plane_of_anything(f):
    y = plane(f.astype(np.float32))
    assert y.shape == (len(f), 2)
    assert ((y >= 0) & (y <= 1)).all()
    assert len(np.unique(y, axis=0)) == len(f)  # equal samples lie side by side, not on top of each other
    assert (y == plane(f.astype(np.float32))).all()


# ---- the page ---------------------------------------------------------------------------------------------


def test_images_are_inside_the_page():
    for X in (np.zeros((6, 8, 8), np.uint8), RNG.random((6, 8, 9, 3)), RNG.random((6, 4, 40, 80))):
        result = page(Dataset("x", X))
        sources = [value for name, value in result.attributes if name == "src"]
        assert len(sources) == 6 + 1  # and the sheet of the map
        assert all(value.startswith("data:image/") for value in sources)


def test_photos_of_a_folder_are_shown_as_they_are(tmp_path):
    Image.new("RGB", (300, 200), "red").save(tmp_path / "red.png")
    X = np.zeros((6, 8, 8, 3), np.uint8)
    result = page(Dataset(str(tmp_path), X, ids=["red.png"] * 6), facts(ids=["red.png"] * 6))
    images = [value for name, value in result.attributes if name == "src"]
    assert len(set(images)) == 2  # the file six times, and the sheet
    (photo,) = [value for value in set(images) if images.count(value) == 6]
    picture = Image.open(io.BytesIO(base64.b64decode(photo.split(",", 1)[1]))).convert("RGB")
    assert picture.getpixel((picture.width // 2, picture.height // 2))[0] > 240  # red, where X is black


HOSTILE = {
    "texts": Dataset("x", [f"{EVIL} & so on"] * 6),
    "images": Dataset("x", np.zeros((6, 8, 8))),
    "vectors": Dataset("x", np.eye(6, 3), columns=Columns((EVIL, "b", "c"))),
    "labels": Dataset("x", np.eye(6, 3), np.array([EVIL] * 6)),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_whatever_comes_from_the_data_is_text(kind):
    dataset = HOSTILE[kind]
    X = sp.csr_matrix(np.eye(6, 3)) if isinstance(dataset.X, list) else dataset.X
    given = facts(
        ids=[f"{EVIL}' onload='x.png\udcff"] * 6,
        config={**CONFIG, "method": EVIL, "settings": {EVIL: EVIL}, "data": {"source": EVIL}},
        history=[{**record, "stage": EVIL, "retries": [EVIL]} for record in HISTORY],
        named=NamesFile(names=[EVIL], terms=[[EVIL]]),
        kmeans=ComparisonFile(agreement=0, information={EVIL: 1}, verdict=EVIL),
        read=ReadFile(kind=EVIL, n=6, shape=[], range=(0, 1), zeros=0, duplicates=0, notes=[EVIL]),
    )
    result = page(dataset, given, Inputs(X, (EVIL, "b", "c")), missing=EVIL)
    assert result.tags.count("script") == 2  # the page's own, and its points
    assert not any(name.startswith("on") for name, _ in result.attributes)
    assert not {"link", "iframe", "object", "base"} & set(result.tags)
    links = [value for name, value in result.attributes if name in ("src", "href")]
    assert all(value.startswith(("data:image/", "#")) for value in links)
    assert result.text.count(EVIL) >= 10


def test_seventy_thousand_images_fit_into_five_megabytes():
    n, side = 70_000, 32
    noise = RNG.integers(0, 256, n + 3 * side * side, dtype=np.uint8)
    X = np.lib.stride_tricks.as_strided(noise, (n, side, side, 3), (1, 3 * side, 3, 1))  # all differ, all noise
    labels = np.arange(n) % 20
    given = facts(labels, RNG.random(n), config={**CONFIG, "params": {"n_clusters": 20}})
    rows = picked(labels, 20)
    f = RNG.normal(size=(len(rows), 8)).astype(np.float32)
    out = Outputs(rows, f, np.full((len(rows), 20), 0.05, np.float32), len(rows))
    content = drawn(given, Dataset("x", X, labels), None, out, "")
    assert len(rows) == 5000
    assert 1_000_000 < len(content) < 5_000_000


# ---- the command ------------------------------------------------------------------------------------------


@pytest.fixture
def fitted(tmp_path):
    y = np.repeat([0, 1, 2], 30)
    np.savez(tmp_path / "d.npz", X=RNG.normal(size=(90, 4)) + 9 * np.eye(3, 4)[y], y=y)
    for seed, name in enumerate(("one", "two")):
        words = ("fit", "d.npz", "-k", 3, "--method", "kmeans", "--seed", seed, "--out", name)
        assert inside(*words, cwd=tmp_path).returncode == 0
    return tmp_path


def test_a_fit_ends_with_a_report_that_can_be_made_again(fitted):
    first = (fitted / "one" / "report.html").read_bytes()
    assert b"Against the labels" in first
    assert inside("report", "one", cwd=fitted).returncode == 0
    assert (fitted / "one" / "report.html").read_bytes() == first


def test_without_its_data_or_model_a_report_says_so(fitted):
    (fitted / "one" / "model.safetensors").unlink()
    assert inside("report", "one", cwd=fitted).returncode == 0
    assert "Without samples" in (fitted / "one" / "report.html").read_text()
    (fitted / "d.npz").unlink()
    done = inside("report", "two", cwd=fitted)
    assert done.returncode == 0
    assert "d.npz" in done.stderr
    assert "Without samples" in (fitted / "two" / "report.html").read_text()


def test_files_of_others_are_refused_by_name(fitted):
    (fitted / "one" / "names.json").write_text('{"names": 7}')
    refused(inside("report", "one", cwd=fitted), "names.json", "names")
    (fitted / "one" / "names.json").unlink()
    (fitted / "one" / "comparison.json").write_text('{"verdict": "good"}')
    refused(inside("report", "one", cwd=fitted), "comparison.json", "agreement")


def test_runs_are_compared_by_the_ids_of_their_samples(fitted):
    labels = fitted / "two" / "labels.csv"
    head, *rows = labels.read_text().splitlines()
    labels.write_text("\n".join([head, *rows[::-1]]) + "\n")
    done = inside("report", "one", "two", cwd=fitted)
    assert done.returncode == 0, done.stderr
    text = (fitted / "one" / "comparison.html").read_text()
    assert "ARI 1.000, NMI 1.000" in text
    assert "puts 100% of them" in text
    labels.write_text("\n".join([head, *(f"other-{row}" for row in rows)]) + "\n")
    refused(inside("report", "one", "two", cwd=fitted), "no samples in common")
    labels.write_text("\n".join([head, *[rows[0]] * 90]) + "\n")
    refused(inside("report", "one", "two", cwd=fitted), "two", "same id")


def test_names_written_later_are_in_the_next_report(fitted):
    (fitted / "one" / "names.json").write_text(json.dumps({"names": ["Apples"], "terms": [["red", "round"]]}))
    assert inside("report", "one", cwd=fitted).returncode == 0
    text = (fitted / "one" / "report.html").read_text()
    assert "Apples" in text
    assert "<li>round</li>" in text
