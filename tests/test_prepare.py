"""Tables of an ordinary person: units that differ, words, signs, empty rows, and other encodings."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest
import torch

from lsdc import HealthWarning, KMeans, load
from lsdc.data.files import open_data
from lsdc.data.number_formats import as_numbers
from lsdc.data.reading import from_config, to_config
from lsdc.data.sources import Data
from lsdc.data.summary import about_reading
from lsdc.errors import InputError
from lsdc.metrics import clustering_accuracy
from test_cli import inside, refused

RNG = np.random.default_rng(0)
GROUP = RNG.permutation(np.repeat([0, 1, 2], 40))
AGES, VISITS = (
    np.array([25, 45, 65])[GROUP] + RNG.normal(0, 2, 120),
    np.array([2, 9, 25])[GROUP] + RNG.normal(0, 1, 120),
)
INCOME = RNG.uniform(2e4, 8e4, 120)  # says nothing about the groups
CITY = np.array(["Rome", "Oslo", "Paris"])[GROUP]
FRAME = pd.DataFrame({"age": AGES, "income": INCOME, "visits": VISITS})
KMEANS = ("-k", "3", "--method", "kmeans", "--out", "run", "--overwrite")


def read(tmp_path, frame, name="x.csv", **how):
    frame.to_csv(tmp_path / name, index=False)
    return open_data(str(tmp_path / name), **how)


def notes(data):
    return "\n".join(about_reading(data))


def labels(tmp_path):
    return pd.read_csv(tmp_path / "run" / "labels.csv")["cluster"].to_numpy()


def test_an_income_does_not_drown_an_age(tmp_path):
    FRAME.assign(score=GROUP / 4).to_csv(tmp_path / "x.csv", index=False)
    done = inside("fit", "x.csv", *KMEANS, cwd=tmp_path)
    assert "divided by their standard deviations" in done.stderr
    assert clustering_accuracy(GROUP, labels(tmp_path)) > 0.95
    inside("fit", "x.csv", *KMEANS, "--no-scale", cwd=tmp_path)
    assert clustering_accuracy(GROUP, labels(tmp_path)) < 0.7


def test_columns_of_different_units_are_standardised_and_those_of_one_are_not(tmp_path):
    data = read(tmp_path, FRAME)
    np.testing.assert_allclose(data.X, FRAME)
    np.testing.assert_allclose(data.scales, FRAME.std(ddof=0))
    spec = KMeans()._data(data, reset=True).spec
    standard = (FRAME - FRAME.mean()) / FRAME.std(ddof=0)
    np.testing.assert_allclose(Data(data.X, spec).batch(torch.arange(120)), standard, rtol=1e-4, atol=1e-5)
    alike = FRAME[["age", "visits"]]
    assert read(tmp_path, alike).scales == ()
    np.testing.assert_allclose(read(tmp_path, alike, scale=True).scales, alike.std(ddof=0))
    assert read(tmp_path, FRAME, scale=False).scales == ()


def test_columns_that_are_numbered_are_one_vector(tmp_path):
    scores = FRAME.set_axis(["PC1", "PC2", "PC3"], axis=1)
    assert read(tmp_path, scores).scales == ()


def test_words_of_few_kinds_are_columns_of_their_own(tmp_path):
    data = read(tmp_path, FRAME[["age"]].assign(city=CITY))
    assert data.columns.features == ("age", "city")
    assert data.columns.made == ("age", "city = Oslo", "city = Paris", "city = Rome")
    np.testing.assert_array_equal(data.X[:, 1:].argmax(1), [("Oslo", "Paris", "Rome").index(name) for name in CITY])
    assert set(np.unique(data.X[:, 1:])) == {0, 1}
    assert "city holds 3 kinds of words" in notes(data)


def test_texts_and_names_beside_numbers_are_refused_together(tmp_path):
    named = FRAME.assign(name=[f"person {i}" for i in range(120)], day=[f"2024-01-{i}" for i in range(120)])
    with pytest.raises(InputError, match=r"'name': 'person 0' is not a number, and the same goes for day; leave"):
        read(tmp_path, named)


@pytest.mark.parametrize(
    ("written", "value"),
    [
        (["$1,234.50", "-$2"], [1234.5, -2]),
        (["12.5 %", "3%"], [12.5, 3]),
        (["1 234 €", "-5,000 €"], [1234, -5000]),
        (["USD 5", "7.5 USD"], [5, 7.5]),
        (["True", "FALSE"], [1, 0]),
        (["yes", "no"], [1, 0]),
    ],
)
def test_numbers_as_people_write_them(written, value):
    assert as_numbers(written)[0].tolist() == value


def test_amounts_with_decimal_commas():
    assert as_numbers(["1.234,50 €", "3,5"], comma=True)[0].tolist() == [1234.5, 3.5]


@pytest.mark.parametrize("written", ["1,23", "12,34,567", "$", "%", "", "5 apples", "1-2", "$$5", "1.2.3", "nan%"])
def test_what_could_be_anything_is_no_number(written):
    assert as_numbers([written, "1"]) is None


def test_decimal_commas_are_seen_beside_signs(tmp_path):
    (tmp_path / "x.csv").write_text("a;b\n1,500 €;1,5 %\n1.234,50 €;2,5 %\n")
    assert open_data(str(tmp_path / "x.csv")).X.tolist() == [[1.5, 1.5], [1234.5, 2.5]]
    (tmp_path / "x.csv").write_text("a;b\n$1,500;1.5 %\n$1,234.50;2.5 %\n")
    with pytest.raises(
        InputError, match=r"'\$1,500' in line 2 has a decimal comma, '.1,234.50' in line 3 a decimal point"
    ):
        open_data(str(tmp_path / "x.csv"))


def test_signs_are_said(tmp_path):
    assert "signs are left out: price" in notes(read(tmp_path, FRAME.assign(price=[f"${x:,.2f}" for x in INCOME])))
    assert "true is read as 1, false as 0: new" in notes(read(tmp_path, FRAME.assign(new=GROUP == 1)))


@pytest.mark.parametrize("name", ["label", "Label", "class", "target", "Y"])
def test_labels_by_any_usual_name_are_not_seen(tmp_path, name):
    data = read(tmp_path, FRAME.assign(**{name: GROUP}))
    assert data.columns.label == name
    assert data.X.shape == (120, 3)


def test_what_tells_nothing_and_what_may_be_an_id_is_said(tmp_path):
    said = notes(read(tmp_path, FRAME.assign(one=1, word="x", phone=RNG.permutation(10**9 + np.arange(120)))))
    assert "the same in every row, so they make no difference: one, word" in said
    assert "whole numbers, no two the same, perhaps ids: phone" in said


def test_rows_of_empty_cells_are_left_out_and_texts_that_are_empty_are_kept(tmp_path):
    (tmp_path / "x.csv").write_text("a,b\n1,2\n,\n3,4\n,\n")
    data = open_data(str(tmp_path / "x.csv"))
    assert data.X.tolist() == [[1, 2], [3, 4]]
    assert "empty: 2 rows (line 3)" in notes(data)
    (tmp_path / "x.csv").write_text('text\none\n""\ntwo\n')
    assert open_data(str(tmp_path / "x.csv")).X == ["one", "", "two"]


def test_missing_values_are_counted(tmp_path):
    with pytest.raises(
        InputError, match=r"line 2, column 'age': no value.*, as in 5 of 120 rows; fill it in, .* \(drop=...\)"
    ):
        read(tmp_path, FRAME.assign(age=np.where(np.arange(120) < 5, np.nan, AGES)))


def test_utf16_is_read_and_other_letters_are_named(tmp_path):
    FRAME.to_csv(tmp_path / "x.tsv", index=False, sep="\t", encoding="utf-16")
    assert open_data(str(tmp_path / "x.tsv")).X.shape == (120, 3)
    (tmp_path / "x.txt").write_bytes("one\r\ntwo\r\n".encode("utf-16"))
    assert open_data(str(tmp_path / "x.txt")).X == ["one", "two"]
    (tmp_path / "x.txt").write_bytes("one\ncafé\n".encode("latin-1"))
    with pytest.raises(InputError, match=r"x.txt: line 2 is not UTF-8 \(byte 0xe9\)"):
        open_data(str(tmp_path / "x.txt"))
    (tmp_path / "x.txt").write_bytes(b"\xff\xfea")
    with pytest.raises(InputError, match="begins like UTF-16"):
        open_data(str(tmp_path / "x.txt"))


def test_new_data_is_prepared_as_the_run_was(tmp_path):
    frame = FRAME.assign(city=CITY)
    frame.to_csv(tmp_path / "x.csv", index=False)
    inside("fit", "x.csv", *KMEANS, cwd=tmp_path)
    frame.iloc[:1, ::-1].to_csv(tmp_path / "new.csv", index=False)  # one row, in another order
    one = inside("predict", "run", "new.csv", cwd=tmp_path)
    assert int(one.stdout.splitlines()[1].split(",")[1]) == labels(tmp_path)[0]
    again = inside("evaluate", "run", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    frame.head(3).assign(city="Bergen").to_csv(tmp_path / "new.csv", index=False)
    assert (
        "3 rows hold words that the run has not seen (Bergen)"
        in inside("predict", "run", "new.csv", cwd=tmp_path).stderr
    )
    frame.head(3).assign(city="").to_csv(tmp_path / "new.csv", index=False)
    refused(inside("predict", "run", "new.csv", cwd=tmp_path), "column 'city': no value")
    frame.head(3).assign(age="old").to_csv(tmp_path / "new.csv", index=False)
    refused(inside("predict", "run", "new.csv", cwd=tmp_path), "'age'", "'old' is not a number")


def test_a_run_reads_its_data_as_it_did_and_runs_of_before_leave_it_alone(tmp_path):
    data = read(tmp_path, FRAME.assign(city=CITY))
    stored = json.loads(json.dumps(to_config(from_config({}), data)))
    again = open_data(data.name, **vars(from_config(stored)))
    np.testing.assert_array_equal(again.X, data.X)
    assert again.scales == data.scales
    before = open_data(data.name, **vars(from_config({"columns": ["age", "income", "visits"]})))
    np.testing.assert_allclose(before.X, FRAME)
    assert before.scales == ()


def test_the_report_shows_values_as_they_were_written(tmp_path):
    pytest.importorskip("matplotlib")
    FRAME.assign(city=CITY).to_csv(tmp_path / "x.csv", index=False)
    inside("fit", "x.csv", *KMEANS, cwd=tmp_path)
    page = (tmp_path / "run" / "report.html").read_text()
    assert "city = Rome" in page
    centre = FRAME["visits"].mean()
    assert f"{centre:.3g}" in page


def test_objects_of_lines_are_texts_vectors_or_rows(tmp_path):
    def lines(items):
        (tmp_path / "x.jsonl").write_text("".join(json.dumps(item) + "\n" for item in items))
        return open_data(str(tmp_path / "x.jsonl"))

    vectors = lines({"id": f"v{i}", "embedding": [i, i / 2, 1], "meta": {"a": 1}} for i in range(12))
    np.testing.assert_array_equal(vectors.X, [[i, i / 2, 1] for i in range(12)])
    assert list(vectors.ids[:2]) == ["v0", "v1"]
    rows = lines({"a": i, "b": i % 3, "kind": "uv"[i % 2], "ok": i > 5} for i in (3, 1, 2, 9, 4, 8, 7, 5, 6, 0, 11, 10))
    assert rows.columns.features == ("a", "b", "kind", "ok")
    with pytest.raises(InputError, match=r"line 2 is not a JSON object with a text field 'text'; it has id, body"):
        lines([{"text": "a b"}, {"id": 1, "body": "c"}])
    with pytest.raises(InputError, match=r"line 1, column 'body': 'a b' is not a number.* as the texts \(drop=..., "):
        lines({"body": f"a b{i or ''}", "meta": {"a": 1}} for i in range(3))
    with pytest.raises(InputError, match=r"line 3, column 'a': no value"):
        lines([{"a": 1, "b": 1}, {"a": 2, "b": 2}, {"b": 3}])


def test_a_model_takes_values_as_they_were_written(tmp_path):
    pytest.importorskip("onnxruntime")
    FRAME.to_csv(tmp_path / "x.csv", index=False)
    inside("fit", "x.csv", *KMEANS, cwd=tmp_path)
    model = load(tmp_path / "run")
    np.testing.assert_array_equal(model.predict(FRAME.to_numpy()), labels(tmp_path))
    assert "onnxruntime agrees" in inside("export", "run", "--onnx", "m.onnx", cwd=tmp_path).stdout
    import onnxruntime

    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    p, _ = session.run(None, {session.get_inputs()[0].name: FRAME.to_numpy(np.float32)})
    np.testing.assert_array_equal(p.argmax(1), labels(tmp_path))


def test_another_scale_is_other_data(tmp_path):
    FRAME.to_csv(tmp_path / "x.csv", index=False)
    words = ("-k", "3", "--methods", "kmeans", "--out", "cmp")
    inside("compare", "x.csv", *words, cwd=tmp_path)
    refused(inside("compare", "x.csv", *words, "--no-scale", cwd=tmp_path), "cmp")


def test_numbers_are_no_texts(tmp_path):
    with pytest.raises(InputError, match=r"'age' holds numbers, not texts; use it as a feature \(columns=...\)"):
        read(tmp_path, FRAME, column="age")


def test_a_data_frame_of_different_units_is_pointed_out():
    with pytest.warns(HealthWarning, match=r"columns of X differ in scale \(income by 1.*StandardScaler"):
        KMeans(3, n_init=1, random_state=0).fit(FRAME)
    with warnings.catch_warnings(action="error"):
        KMeans(3, n_init=1, random_state=0).fit(FRAME / FRAME.std())
        KMeans(3, n_init=1, random_state=0).fit(FRAME.set_axis(["x1", "x2", "x3"], axis=1))
        KMeans(3, n_init=1, random_state=0).fit(FRAME.to_numpy())  # what has no names has no units to tell
