"""The explorer's API: what can be seen and changed, by whom, and what becomes of it."""

import csv
import io
import json
import shutil

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from exploring import EVIL, NAMES, PORT, TOKEN, client_of, fitted, photos, session_of
from lsdc.errors import InputError
from lsdc.explore import features
from lsdc.explore.edits import Name, Undo, initial, replayed
from lsdc.explore.guard import hosts_of
from lsdc.explore.journal import Journal, header_of
from lsdc.runs.folder import Run

N = len(NAMES)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("explore")
    run = fitted(photos(folder / "photos"), folder / "run")
    session_of(run)  # its map is laid out once, for all tests
    return run


@pytest.fixture
def run(made, tmp_path):
    return shutil.copytree(made, tmp_path / "run")


@pytest.fixture
def client(run):
    return client_of(session_of(run))


def state(client):
    return client.get("/api/state").json()


def change(client, version=None, **edit):
    version = state(client)["version"] if version is None else version
    return client.post("/api/edits", json={"version": version, "edit": edit})


def rows(text):
    return list(csv.DictReader(io.StringIO(text)))


def gone():
    raise InputError("photos: no such file or folder")


# ---- who may ask ------------------------------------------------------------------------------------------------


def test_only_who_has_the_token_is_answered(run):
    client = client_of(session_of(run), known=False)
    for path in ("/", "/api/state", "/static/main.js", "/openapi.json", "/?token=wrong", "/api/state?token=secret"):
        assert client.get(path).status_code == 403
    first = client.get(f"/?token={TOKEN}")
    assert first.status_code == 200
    assert {"HttpOnly", "SameSite=Strict"} <= {part.strip() for part in first.headers["set-cookie"].split(";")}
    assert client.get("/api/state").status_code == 200  # by the cookie


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": f"evil.example:{PORT}"},
        {"Host": "127.0.0.1:1"},
        {"Host": "127.0.0.1"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": f"https://127.0.0.1:{PORT}"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_other_pages_and_other_names_are_refused(client, headers):
    assert client.get("/api/state", headers=headers).status_code == 403
    wish = {"version": 0, "edit": {"do": "outlier", "samples": [0]}}
    assert client.post("/api/edits", json=wish, headers=headers).status_code == 403
    assert state(client)["outliers"] == 0


def test_on_all_interfaces_plain_addresses_are_names_and_strangers_names_are_not():
    from lsdc.explore.guard import Guard

    guard = Guard(None, hosts_of("0.0.0.0"), 80, TOKEN)
    assert guard._is_ours("192.168.1.7:80")
    assert guard._is_ours("[fe80::1]:80")
    assert not guard._is_ours("evil.example:80")
    assert hosts_of("::1")[-1] == "[::1]"


def test_every_answer_is_safe_to_show(client):
    for path in ("/", "/docs", "/api/state", "/api/samples/0/image", "/nothing", "/api/samples/x"):
        headers = client.get(path).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
    assert client.get("/api/samples/0/image").headers["content-type"] == "image/jpeg"


def test_requests_of_no_or_great_length_are_refused(client):
    assert client.post("/api/edits", content=iter([b"{}"])).status_code == 411
    assert client.post("/api/edits", content=b"{}", headers={"Content-Length": str(2**25)}).status_code == 413


@pytest.mark.parametrize(
    "path", ["/api/samples/..%2F..%2Fconfig.json/image", "/static/..%2Fapi.py", "/static/../api.py"]
)
def test_no_path_reaches_the_disk(client, path):
    assert client.get(path).status_code in (404, 422)


# ---- looking ----------------------------------------------------------------------------------------------------


def test_pages_show_every_sample_once_in_order(client):
    pages = [client.get("/api/samples", params={"offset": k, "limit": 7}).json() for k in range(0, N, 7)]
    items = [item for page in pages for item in page["items"]]
    assert sorted(item["i"] for item in items) == list(range(N))
    assert {page["total"] for page in pages} == {N}
    sure = [item["confidence"] for item in items]
    assert sure == sorted(sure, reverse=True)
    doubtful = client.get("/api/samples", params={"order": "doubtful", "limit": 500}).json()["items"]
    assert [item["confidence"] for item in doubtful] == sorted(sure)


def test_clusters_confidence_and_words_filter(client):
    of_one = client.get("/api/samples", params={"cluster": 1, "limit": 500}).json()
    assert {item["cluster"] for item in of_one["items"]} == {1}
    assert of_one["total"] == state(client)["clusters"][1]["size"]
    middle = float(np.median([item["confidence"] for item in of_one["items"]]))
    low = client.get("/api/samples", params={"cluster": 1, "high": middle, "limit": 500}).json()
    assert all(item["confidence"] <= middle + 1e-4 for item in low["items"])
    assert 0 < low["total"] < N
    found = client.get("/api/samples", params={"q": " ONERROR "}).json()["items"]
    assert [item["id"] for item in found] == [EVIL]
    assert client.get("/api/samples", params={"q": "nowhere"}).json() == {"total": 0, "items": []}


def test_pictures_neighbours_and_the_map(client):
    assert client.get("/api/samples/3/image", params={"size": "large"}).content[:2] == b"\xff\xd8"
    near = client.get("/api/samples/3/neighbours", params={"k": 5}).json()["items"]
    mine = client.get("/api/samples/3").json()["cluster"]
    assert [item["cluster"] for item in near] == [mine] * 5
    assert len(client.get("/api/map").content) == 4 * N
    labels = client.get("/api/labels").content
    assert len(labels) == 4 + 5 * N
    assert client.get(f"/api/samples/{N}").status_code == 404
    assert client.get("/api/clusters/0/near").json()["clusters"] in ([1, 2], [2, 1])


def test_the_api_is_documented(client):
    paths = client.get("/openapi.json").json()["paths"]
    assert {"/api/state", "/api/samples", "/api/edits", "/api/export"} <= paths.keys()
    assert all(operation["description"] for about in paths.values() for operation in about.values())
    assert client.get("/docs").status_code == 200


# ---- changing ---------------------------------------------------------------------------------------------------


def test_changes_are_kept_and_exported(client, run):
    assert change(client, do="name", cluster=0, name="=EVIL()").status_code == 200
    assert change(client, do="merge", cluster=1, into=2).status_code == 200
    assert change(client, do="outlier", samples=[0]).status_code == 200
    assert change(client, do="move", samples=[1], to=None).status_code == 200
    now = state(client)
    assert now["undo"] == "move 1 sample to a new cluster"
    saved = client.post("/api/export", content=b"").json()["path"]
    text = client.get("/api/labels-edited.csv")
    assert text.headers["content-disposition"].startswith("attachment")
    assert (run / "labels-edited.csv").read_bytes() == text.content
    assert saved == str(run / "labels-edited.csv")
    table = rows(text.text)
    assert list(table[0]) == ["id", "cluster", "name", "confidence"]
    by_sample = {item["i"]: item for item in client.get("/api/samples", params={"limit": 500}).json()["items"]}
    assert [int(row["cluster"]) for row in table] == [by_sample[i]["cluster"] for i in range(N)]
    evil = next(row for row in table if row["cluster"] == "0")
    assert evil["name"] == "'=EVIL()"  # which no spreadsheet computes
    assert {row["name"] for row in table if row["cluster"] == "-1"} == {"outlier"}
    again = client_of(session_of(run))
    assert state(again) == now


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"\xff\xfe", "text/plain"),
        (b'{"version":NaN}', "application/json"),
        (b'{"version":1e999,"edit":{}}', "application/json"),
        (b'{"version":0,"edit":{"do":"name","cluster":0,"name":"\\ud800"}}', "application/json"),
        (b'{"version":0,"edit":{"do":"\\ud800"}}', "application/json"),
    ],
)
def test_what_no_json_can_repeat_is_refused_like_anything_else(client, body, kind):
    answer = client.post("/api/edits", content=body, headers={"Content-Type": kind})
    assert answer.status_code == 422
    assert answer.json()["detail"][0]["loc"][0] == "body"


def test_undo_and_redo(client):
    before = state(client)
    change(client, do="merge", cluster=0, into=1)
    merged = state(client)
    assert change(client, do="undo").json()["clusters"] == before["clusters"]
    assert state(client)["redo"] == "merge cluster 0 into cluster 1"
    assert change(client, do="redo").json()["clusters"] == merged["clusters"]
    assert change(client, do="redo").status_code == 400
    assert "nothing to redo" in change(client, do="redo").json()["message"]


def test_a_stale_edit_is_refused_with_a_reason(client):
    assert change(client, version=0, do="name", cluster=0, name="first").status_code == 200
    late = change(client, version=0, do="name", cluster=0, name="second")
    assert late.status_code == 409
    assert "another tab" in late.json()["message"]
    assert state(client)["clusters"][0]["name"] == "first"


def test_a_split_cuts_where_samples_differ(client):
    change(client, do="merge", cluster=1, into=0)
    before = {item["i"]: item["cluster"] for item in client.get("/api/samples?limit=500").json()["items"]}
    mixed = [i for i, cluster in before.items() if cluster == 0]
    assert change(client, do="split", cluster=0).status_code == 200
    after = {item["i"]: item["cluster"] for item in client.get("/api/samples?limit=500").json()["items"]}
    assert {i % 3 for i in mixed if after[i] == 0} != {i % 3 for i in mixed if after[i] == 3}  # a colour each


def test_samples_beyond_those_laid_out_lie_with_their_group(monkeypatch):
    monkeypatch.setattr(features, "MAPPED", 90)
    groups = np.repeat(np.arange(3), 100)
    f = features.directions(10 * np.eye(3)[groups] + np.random.default_rng(0).normal(size=(300, 3)))
    places = features.mapped(f)
    assert places.min() >= 0
    assert places.max() <= 1
    centres = np.stack([places[groups == group].mean(0) for group in range(3)])
    nearest = np.linalg.norm(places[:, None] - centres, axis=2).argmin(1)
    assert (nearest == groups).mean() > 0.98
    assert (places == features.mapped(f)).all()


def test_halves_of_two_rings_are_the_rings():
    """What no line parts, as only the neighbour graph sees it."""
    angle = np.linspace(0, 2 * np.pi, 80, endpoint=False)
    rings = [np.c_[radius * np.cos(angle), radius * np.sin(angle)] for radius in (1, 3)]
    part = features.halves(np.concatenate(rings).astype(np.float32))
    assert set(part[:80]) != set(part[80:])
    assert len(set(part[:80])) == len(set(part[80:])) == 1
    assert features.halves(np.ones((5, 3), np.float32)).sum() == 2
    with pytest.raises(InputError, match="one sample"):
        features.halves(np.ones((1, 3), np.float32))


def test_a_run_whose_data_has_gone_says_so_and_works_without(run):
    shown = client_of(session_of(run, gone))
    assert state(shown)["data"] == {"is": "missing", "why": "photos: no such file or folder"}
    assert state(shown)["map"]["is"] == "ready"  # laid out before, and kept
    assert change(shown, do="split", cluster=0).status_code == 200
    assert shown.get("/api/samples/0/image").status_code == 404
    (run / features.NAME).unlink()
    bare = client_of(session_of(run, gone))
    refused = change(bare, do="split", cluster=1)
    assert (refused.status_code, "without the data" in refused.json()["message"]) == (400, True)
    assert change(bare, do="name", cluster=1, name="still works").status_code == 200
    assert bare.get("/api/samples/0/neighbours").json()["items"] == []
    assert bare.get("/api/map").status_code == 404


def test_clusters_that_have_names_begin_with_them(run):
    (run / "names.json").write_text(
        json.dumps({"names": ["reds", None, "  two\nlines  ", "of no cluster"], "terms": []})
    )
    session = session_of(run)
    assert session.state.names == {0: "reds", 2: "two lines"}
    session.edit(0, Name(do="name", cluster=0, name="others"))
    session.edit(1, Undo(do="undo"))
    assert session.state.names == {0: "reds", 2: "two lines"}
    assert ",reds," in session.export().read_text()


def test_names_that_cannot_be_read_are_named(run):
    """Not the journal, which is not even there."""
    (run / "names.json").write_text("[]")
    with pytest.raises(InputError, match=r"names.json: must contain a JSON object$"):
        session_of(run)


def test_names_that_are_no_text_and_texts(tmp_path):
    (tmp_path / "a.txt").write_text("apples and pears\nred apples\ntrains and cars\nfast cars\n" * 4)
    client = client_of(session_of(fitted(tmp_path / "a.txt", tmp_path / "run", 2)))
    assert state(client)["kind"] == "texts"
    found = client.get("/api/samples", params={"q": "PEARS"}).json()["items"]
    assert {item["text"] for item in found} == {"apples and pears"}
    session = session_of(tmp_path / "run")
    session.samples.ids[0] = "\udcff.png"  # a file name in no encoding
    assert "\\udcff.png" in client_of(session).get("/api/samples?limit=500").text
    assert b"udcff.png" in session.csv()


# ---- whatever is asked ------------------------------------------------------------------------------------------

numbers = (
    st.integers(-3, N + 2) | st.sampled_from([2**31, 2**63, 10**30]) | st.none() | st.booleans() | st.text(max_size=3)
)
fields = st.fixed_dictionaries(
    {"do": st.sampled_from(["name", "merge", "split", "move", "outlier", "undo", "redo", "drop"])},
    optional={
        "cluster": numbers,
        "into": numbers,
        "to": numbers,
        "name": st.text(max_size=120) | numbers,
        "samples": st.lists(numbers, max_size=4) | numbers,
    },
)
wishes = st.one_of(
    st.fixed_dictionaries({"version": st.just("now") | numbers, "edit": fields | numbers}),
    st.recursive(numbers, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner)),
)
sensible = st.one_of(  # so that not all is refused
    st.builds(lambda c, i: {"do": "merge", "cluster": c, "into": i}, st.integers(0, 5), st.integers(0, 5)),
    st.builds(
        lambda s, t: {"do": "move", "samples": s, "to": t}, st.lists(st.integers(0, N - 1), min_size=1), st.none()
    ),
    st.builds(lambda c: {"do": "split", "cluster": c}, st.integers(0, 5)),
    st.sampled_from([{"do": "undo"}, {"do": "redo"}]),
).map(lambda edit: {"version": "now", "edit": edit})
questions = st.tuples(
    st.sampled_from(
        [
            "/api/samples",
            "/api/samples/{}",
            "/api/samples/{}/image",
            "/api/samples/{}/neighbours",
            "/api/clusters/{}/near",
        ]
    ),
    numbers,
    st.dictionaries(st.sampled_from(["cluster", "low", "high", "q", "order", "offset", "limit", "k", "size"]), numbers),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
@given(st.lists(wishes | sensible | questions, max_size=8))
def test_whatever_is_asked_the_answer_is_no_failure_and_the_journal_tells_the_state(client, run, asked):
    for one in asked:
        if isinstance(one, tuple):
            path, i, params = one
            response = client.get(path.format(i), params={k: v for k, v in params.items() if v is not None})
        else:
            now = client.get("/api/state").json()["version"]
            body = {**one, "version": now} if isinstance(one, dict) and one.get("version") == "now" else one
            response = client.post("/api/edits", json=body)
        assert response.status_code in (200, 400, 404, 405, 409, 422), response.text
    _, edits = Journal.open(run / "edits.jsonl", header_of(run / "labels.csv"))
    _, labels, _ = Run.open(run).read_labels()
    told = replayed(initial(labels, 3), edits).state
    content = client.get("/api/labels").content
    assert int.from_bytes(content[:4], "little") == len(edits)
    assert np.frombuffer(content, "<i4", N, 4).tolist() == told.labels.tolist()


def test_a_hundred_thousand_samples_answer_in_pages(tmp_path):
    """Nothing that the page asks for grows with what it does not show."""
    run = fitted_large(tmp_path)
    client = client_of(session_of(run, gone))
    assert len(client.get("/api/samples").content) < 20_000
    assert len(client.get("/api/state").content) < 20_000
    assert client.get("/api/samples", params={"q": "99999"}).json()["total"] == 1
    assert change(client, do="merge", cluster=1, into=0).status_code == 200


def fitted_large(tmp_path, n=100_000):
    """A run folder of many samples, of which only the labels are looked at."""
    run = fitted(np_file(tmp_path), tmp_path / "run", 2)
    config = json.loads((run / "config.json").read_text())
    config["data"]["n"] = n
    (run / "config.json").write_text(json.dumps(config))
    lines = (f"{i},{i % 2},{(i % 97) / 97:.6f}\n" for i in range(n))
    (run / "labels.csv").write_text("id,cluster,confidence\n" + "".join(lines))
    return run


def np_file(tmp_path):
    np.save(tmp_path / "x.npy", np.random.default_rng(0).random((20, 4)))
    return tmp_path / "x.npy"
