"""Files that were once read as something they are not, without a word."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest

from lsdc import KMeans
from lsdc.data.files import open_data
from lsdc.data.summary import about_reading
from lsdc.errors import HealthWarning, InputError
from test_cli import inside, refused
from test_tables import FRAME, KMEANS, RNG, read, said, written

VECTORS = RNG.normal(size=(30, 4))


def test_an_index_that_repeats_is_no_feature(tmp_path):
    """What pandas.concat leaves: 0 to 19 twice."""
    data = read(tmp_path, pd.concat([FRAME[:20], FRAME[:20]]).to_csv())
    assert data.columns.features == ("a", "b", "c")
    assert data.ids is None
    assert said(data, "(unnamed)", "like an index: left out")


@pytest.mark.parametrize("name", ["x.csv", "x.parquet"])
def test_ids_that_pandas_made_floats_of_are_ids(tmp_path, name):
    frame = FRAME.assign(customer_id=RNG.permutation(10**6)[:40].astype(float), width=np.arange(40.0))
    frame.to_csv(tmp_path / name, index=False) if name == "x.csv" else frame.to_parquet(tmp_path / name)
    data = open_data(str(tmp_path / name))
    assert (data.columns.id, data.columns.features) == ("customer_id", ("a", "b", "c", "width"))


@pytest.mark.parametrize("first", [1_200_000_000_000_000_000, 10**25])
def test_numbers_that_no_float_can_hold_are_ids(tmp_path, first):
    data = read(
        tmp_path, FRAME.assign(tweet=[str(first + 7 * int(i)) for i in RNG.permutation(40)]).to_csv(index=False)
    )
    assert (data.columns.id, data.columns.features) == ("tweet", ("a", "b", "c"))
    assert said(data, "tweet", "too long for measurements")


@pytest.mark.parametrize("step", [10, -1, 3600])
def test_rows_are_counted_in_any_step(tmp_path, step):
    data = read(tmp_path, FRAME.assign(nr=5 + step * np.arange(40)).to_csv(index=False))
    assert data.columns.id == "nr"
    assert said(data, f"counts the rows in steps of {step}")
    few = read(tmp_path, "dose,effect\n10,1.5\n20,2.5\n30,2\n")
    assert few.columns.features == ("dose", "effect")


def test_codes_with_leading_zeros_are_pointed_out(tmp_path):
    data = read(tmp_path, FRAME.assign(zip=[f"{i % 7:05}" for i in range(40)]).to_csv(index=False))
    assert said(data, "leading zeros", "zip")
    assert not said(read(tmp_path, FRAME.assign(n=np.arange(40) % 7).to_csv(index=False)), "leading zeros")


def test_a_zero_before_a_comma_counts_no_thousands(tmp_path):
    with pytest.raises(InputError, match="'0,143' is not a number"):
        read(tmp_path, 'a,b\n"1,200",2\n"0,143",3\n"7,500",4\n')


def test_a_word_that_never_changes_does_not_rescale_the_rest(tmp_path):
    plain = read(tmp_path, FRAME.to_csv(index=False))
    assert read(tmp_path, FRAME.assign(unit="cm").to_csv(index=False)).scales == plain.scales == ()


LISTS = {"as Python writes them": lambda row: str(row.tolist()), "as NumPy writes them": str}


@pytest.mark.parametrize("how", LISTS)
def test_lists_in_a_csv_file_are_vectors(tmp_path, how):
    frame = pd.DataFrame({"id": range(30), "title": ["a word"] * 30, "embedding": [LISTS[how](row) for row in VECTORS]})
    data = read(tmp_path, frame.to_csv(index=False))
    np.testing.assert_allclose(data.X, VECTORS, atol=1e-6)
    assert (data.columns.features, data.columns.unused) == (("embedding",), ("title",))
    frame.loc[25, "embedding"] = "[1.5, 2]"
    with pytest.raises(InputError, match=r"line 27, column 'embedding': a list of 2 numbers, where others have 4"):
        read(tmp_path, frame.to_csv(index=False))
    with pytest.raises(InputError, match=r"line 27, column 'embedding'"):
        read(tmp_path, frame.to_csv(index=False), column="embedding")


def test_vectors_that_numpy_shortened_are_refused(tmp_path):
    rows = [str(row) for row in RNG.normal(size=(5, 2000))]
    with pytest.raises(InputError, match=r"line 2, column 'e': the list was shortened with '...' when it was written"):
        read(tmp_path, pd.DataFrame({"id": range(5), "e": rows}).to_csv(index=False))


def test_words_in_brackets_are_texts(tmp_path):
    texts = ["[deleted]", "[a note] on rain", "sun [1]", "[1]"]
    data = read(tmp_path, pd.DataFrame({"body": texts}).to_csv(index=False))
    assert list(data.X) == texts


def test_lists_of_true_and_false_are_vectors(tmp_path):
    path = written(tmp_path, {"id": range(30), "fingerprint": (VECTORS > 0).tolist()})
    np.testing.assert_array_equal(open_data(str(path)).X, VECTORS > 0)


def test_bytes_are_no_texts(tmp_path):
    path = str(written(tmp_path, {"id": range(30), "embedding": [row.tobytes() for row in VECTORS]}))
    with pytest.raises(InputError, match=r"row 1, column 'embedding': b.* is not a number"):
        open_data(path)
    with pytest.raises(InputError, match="row 1, column 'embedding': bytes instead of a text"):
        open_data(path, column="embedding")


def test_lists_nobody_needs_do_not_stand_in_the_way(tmp_path):
    tokens = [list(range(1 + i % 9)) for i in range(30)]
    path = str(written(tmp_path, {"text": [f"some words {i}" for i in range(30)], "tokens": tokens}))
    assert open_data(path).X[3] == "some words 3"
    with pytest.raises(InputError, match=r"column 'tokens': \[0\] is not a number"):
        open_data(path, columns=("tokens",))


def test_a_text_that_is_missing_is_empty(tmp_path):
    path = written(tmp_path, {"text": ["a word", None, "two words"]})
    assert open_data(str(path)).X == ["a word", "", "two words"]
    lines = read(tmp_path, '{"text": "a word"}\n{"text": null}\n', "x.jsonl")
    assert lines.X == ["a word", ""]


def test_a_parquet_column_there_twice_is_refused(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as parquet

    parquet.write_table(pa.Table.from_arrays([pa.array([1.0])] * 2, names=["a", "a"]), tmp_path / "x.parquet")
    with pytest.raises(InputError, match="the column 'a' appears twice"):
        open_data(str(tmp_path / "x.parquet"))


def test_texts_in_json_keep_their_labels_ids_and_other_fields(tmp_path):
    rows = [{"key": f"k{i}", "text": f"text {i}", "label": "uv"[i % 2], "source": "web"} for i in range(9)]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    data = read(tmp_path, text, "x.jsonl")
    assert list(data.ids) == [f"k{i}" for i in range(9)]
    assert data.y.tolist() == ["u", "v"] * 4 + ["u"]
    assert data.beside == {"source": ["web"] * 9}
    assert about_reading(data)[0] == "columns: texts text; id key; label label; not used source"
    assert read(tmp_path, text, "x.jsonl", drop=("label",)).y is None
    assert list(read(tmp_path, text, "x.jsonl", id_column="source").ids) == ["web"] * 9


def test_vectors_beside_texts_are_taken_in_every_kind_of_file(tmp_path):
    rows = [{"text": f"text {i}", "embedding": row.tolist()} for i, row in enumerate(VECTORS)]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    found = [
        read(tmp_path, lines, "x.jsonl"),
        read(tmp_path, pd.DataFrame(rows).to_csv(index=False)),
        open_data(str(written(tmp_path, pd.DataFrame(rows).to_dict("list")))),
    ]
    for data in found:
        np.testing.assert_allclose(data.X, VECTORS)
        assert said(data, "the vectors in embedding are clustered, not the texts in text")
    assert read(tmp_path, lines, "x.jsonl", column="text").X[5] == "text 5"
    rows[3]["embedding"] = None
    with pytest.raises(InputError, match="line 4, column 'embedding': no complete list of numbers"):
        read(tmp_path, "".join(json.dumps(row) + "\n" for row in rows), "x.jsonl")


def test_short_lists_beside_texts_are_left_out(tmp_path):
    lines = [{"text": f"rain and wind {i}", "spans": [i, i + 5]} for i in range(12)]
    (tmp_path / "x.jsonl").write_text("\n".join(map(json.dumps, lines)))
    data = open_data(str(tmp_path / "x.jsonl"))
    assert list(data.X) == [line["text"] for line in lines]
    assert data.columns.unused == ("spans",)


def test_a_title_above_the_header_is_pointed_out(tmp_path):
    with pytest.raises(InputError, match="line 1 has several columns without a name; name them, or remove lines above"):
        read(tmp_path, "Report 2024,,\na,b,c\n1,2,3\n4,5,6\n")


def test_a_data_frame_with_ids_is_pointed_out():
    model = KMeans(2, n_init=1, random_state=0)
    with pytest.warns(HealthWarning, match="identify or number the rows are used as features: customer_id, nr; drop"):
        model.fit(FRAME.assign(customer_id=RNG.permutation(99)[:40] / 1, nr=np.arange(40)))
    with warnings.catch_warnings(action="error"):
        model.fit(FRAME)
        model.fit(pd.DataFrame(RNG.integers(0, 9, (40, 3)), columns=["a", "b", "store_id"]))


@pytest.mark.parametrize(
    "column",
    [
        ["a", "b"] * 20,
        pd.Categorical(["a", "b"] * 20),
        pd.Timestamp("2024-01-01"),
        pd.Timedelta("1h"),
        [[1], [2, 3]] * 20,
    ],
    ids=["words", "kinds", "dates", "times", "lists"],
)
def test_columns_of_a_data_frame_that_are_no_numbers_are_named(column):
    frame = FRAME.assign(city=column, even=[True, False] * 20, n=np.arange(40) // 2, o=FRAME["a"].astype(object))
    with pytest.raises(InputError, match=r"columns of X that do not hold numbers: city; drop them, or turn them into"):
        KMeans(2).fit(frame)
    KMeans(2, n_init=1).fit(frame.drop(columns="city"))


def test_a_data_frame_of_texts_alone_is_told_from_its_column():
    frame = pd.DataFrame({"said": ["rain and sun", "goal and match"] * 10})
    with pytest.raises(InputError, match=r"do not hold numbers: said; to cluster texts, pass the column.*X\['said'\]"):
        KMeans(2).fit(frame)


@pytest.mark.parametrize("X", [None, {"a": [1, 2]}, {1, 2}, (row for row in [[1.0], [2.0]])])
def test_what_is_no_sequence_of_samples_is_said_to_be_none(X):
    """They were taken for a single number, with the advice to reshape it."""
    with pytest.raises(
        InputError, match=r"X is (None|a dict|a set|a generator); pass an array, a data frame or a list"
    ):
        KMeans(2).fit(X)


def test_a_column_of_vectors_is_an_array():
    """It was refused, with the advice to reshape it."""
    vectors = RNG.normal(size=(40, 3))
    column = pd.Series(list(vectors), index=range(100, 140))
    expected = KMeans(2, n_init=1, random_state=0).fit(vectors).labels_
    np.testing.assert_array_equal(KMeans(2, n_init=1, random_state=0).fit(column).labels_, expected)
    column[107] = [1.0, 2.0]
    with pytest.raises(InputError, match=r"3 numbers in row 0, 2 in row 7"):
        KMeans(2).fit(column)


@pytest.mark.parametrize("labels", [["a"], ["a", "b"], {"a": 1}, [0, 1, 0]])
def test_several_labels_of_a_text_are_neither_labels_nor_vectors(tmp_path, labels):
    """They ended in a traceback, and lists of numbers were clustered instead of the texts."""
    rows = [{"text": f"rain {i}", "labels": ["c"] if i == 3 and labels == ["a", "b"] else labels} for i in range(5)]
    data = read(tmp_path, "".join(json.dumps(row) + "\n" for row in rows), "x.jsonl")
    assert list(data.X) == [row["text"] for row in rows]
    assert data.y is None
    assert said(data, "column labels holds more than one label for each sample: not used")


def test_labels_beside_vectors_are_no_vectors(tmp_path):
    frame = pd.DataFrame({"embedding": list(VECTORS), "label": [[0.0, 1.0]] * len(VECTORS)})
    data = open_data(str(written(tmp_path, frame, "x.parquet")))
    assert data.columns.features == ("embedding",)


def test_an_empty_data_frame_is_said_to_be_empty():
    with pytest.raises(InputError, match="0 sample"):
        KMeans(2).fit(pd.DataFrame({"a": np.zeros(0, int)}))


def test_pages_of_html_are_pointed_out(tmp_path):
    page = read(tmp_path, "".join(f"<p>rain <b>{i}</b></p>\n" for i in range(5)), "x.txt")
    assert "most texts contain HTML tags, which are read as words; remove them first" in about_reading(page)
    assert not about_reading(read(tmp_path, "if a < b\nand b > a\n</b> once\n", "x.txt"))


def test_masked_values_are_not_used_as_if_they_were_there():
    X = np.ma.masked_array(VECTORS, mask=VECTORS > 1)
    with pytest.raises(
        InputError, match=rf"X is a masked array with {(VECTORS > 1).sum()} values masked; fill them in"
    ):
        KMeans(2).fit(X)
    KMeans(2, n_init=1).fit(np.ma.masked_array(VECTORS))


def test_a_gap_among_texts_is_named_and_nobody_is_told_to_reshape_a_name():
    with pytest.raises(InputError, match=r"X contains texts, but row 2 \(counting from 0\) is None; fill it in"):
        KMeans(2).fit(["red apple", "blue car", None])
    with pytest.raises(
        InputError, match=r"X is a single name, 'photos'; to read a file or folder, use lsdc\.open_data"
    ):
        KMeans(2).fit("photos")


def test_texts_without_a_known_word_are_pointed_out():
    """They had all the same empty vector, and a cluster like any other."""
    texts = ["red apple", "blue car", "green apple", "fast car"] * 5
    model = KMeans(2, n_init=1, random_state=0)
    with pytest.warns(HealthWarning, match="4 of 24 texts contain none of the 6 words"):
        model.fit([*texts, "", "the", "of", "!"])
    with pytest.warns(HealthWarning, match="1 of 2 texts contain none of the 6 words"):
        model.predict(["ein Apfel", "red"])
    with warnings.catch_warnings(action="error"):
        model.fit([*texts, ""])
    with pytest.raises(InputError, match="X contains texts, but no words to tell them apart by"):
        model.fit(["the", "of"])


def test_predict_says_that_new_texts_have_no_known_word(tmp_path):
    (tmp_path / "x.txt").write_text("red apple\nblue car\ngreen apple\nfast car\n" * 5)
    (tmp_path / "new.txt").write_text("ein Apfel\nein Auto\nred car\n")
    assert inside("fit", "x.txt", *KMEANS, cwd=tmp_path).returncode == 0
    done = inside("predict", "run", "new.txt", cwd=tmp_path)
    assert done.returncode == 0
    assert done.stderr.startswith("warning: 2 of 3 texts contain none of the 6 words that texts are compared by")


def test_a_run_that_is_looked_at_from_elsewhere_says_where_its_data_is(tmp_path):
    """It said that its own data was no file, folder or built-in data set."""
    FRAME.to_csv(tmp_path / "x.csv", index=False)
    (tmp_path / "elsewhere").mkdir()
    assert inside("fit", "x.csv", *KMEANS, cwd=tmp_path).returncode == 0
    done = inside("export", "../run", "--features", "f.npy", cwd=tmp_path / "elsewhere")
    refused(done, "x.csv: not found", "run this command where it was fitted")
