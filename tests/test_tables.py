"""Ordinary tables as people's programs write them: which columns are features, ids and labels, and what is said."""

import numpy as np
import pandas as pd
import pytest

from lsdc.data.files import open_data
from lsdc.errors import InputError
from test_cli import inside, refused

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame({"a": RNG.normal(size=40), "b": RNG.normal(size=40), "c": RNG.normal(size=40)})


def read(tmp_path, text, name="x.csv", **how):
    (tmp_path / name).write_text(text)
    return open_data(str(tmp_path / name), **how)


def said(data, *parts):
    return any(all(part in note for part in parts) for note in data.notes)


def test_the_index_of_pandas_is_the_id(tmp_path):
    data = read(tmp_path, FRAME.to_csv())
    assert data.columns.features == ("a", "b", "c")
    np.testing.assert_allclose(data.X, FRAME)
    assert list(data.ids) == [str(i) for i in range(40)]
    assert said(data, "(unnamed)", "used as the id")
    shuffled = read(tmp_path, FRAME.sample(frac=1, random_state=0).to_csv())
    assert shuffled.columns.features == ("a", "b", "c")
    assert shuffled.ids[0] != "0"


def test_an_index_of_words_is_the_id_too(tmp_path):
    data = read(tmp_path, FRAME.set_axis([f"row {i}" for i in range(40)]).to_csv())
    assert data.columns.features == ("a", "b", "c")
    assert list(data.ids[:2]) == ["row 0", "row 1"]
    assert said(data, "(unnamed)", "has no name and has a different value in every row", "used as the id")
    texts = read(tmp_path, ",label\n" + "".join(f"text number {i},x\n" for i in range(9)))
    assert texts.X[0] == "text number 0"


def test_pandas_frames_without_names_keep_every_row_and_column(tmp_path):
    frame = pd.DataFrame(FRAME.to_numpy())
    np.testing.assert_allclose(read(tmp_path, frame.to_csv()).X, frame)
    data = read(tmp_path, frame.to_csv(index=False))
    np.testing.assert_allclose(data.X, frame)
    assert said(data, "line 1", "header")


@pytest.mark.parametrize("name", ["customer_id", "ID", "CustomerID", "userId", "order key", "Index"])
def test_numbers_named_like_ids_are_ids(tmp_path, name):
    numbers = RNG.permutation(10**6)[:40]
    data = read(tmp_path, FRAME.assign(**{name: numbers}).to_csv(index=False))
    assert data.columns.id == name
    assert data.columns.features == ("a", "b", "c")
    assert list(data.ids) == [str(number) for number in numbers]


@pytest.mark.parametrize("name", ["income", "paid", "grid", "COVID", "humidity", "keys pressed"])
def test_whole_numbers_of_other_names_are_features(tmp_path, name):
    frame = pd.DataFrame({name: RNG.permutation(10**6)[:40]}).join(FRAME)
    data = read(tmp_path, frame.to_csv(index=False))
    assert data.columns.features == (name, "a", "b", "c")
    assert data.ids is None


def test_numbers_of_any_length_are_read(tmp_path):
    with pytest.raises(InputError, match=r"line 2, column 'key': '9{60,}\.\.\. is infinite or too large"):
        read(tmp_path, f"key,a\n{'9' * 5000},1\n1,2\n")
    with pytest.raises(InputError, match="line 3, column 'a': 'inf' is infinite or too large"):
        read(tmp_path, "a,b\n1,2\ninf,4\n")


def test_ids_that_repeat_are_features(tmp_path):
    data = read(tmp_path, FRAME.assign(store_id=np.arange(40) % 3).to_csv(index=False))
    assert data.columns.features == ("a", "b", "c", "store_id")
    assert said(data, "named like ids, but with repeated values: store_id")


def test_a_column_that_counts_the_rows_is_the_id_whatever_its_name(tmp_path):
    data = read(tmp_path, FRAME.assign(nr=np.arange(40) + 1).to_csv(index=False))
    assert data.columns.id == "nr"
    assert said(data, "column nr counts the rows: used as the id, not as a feature")
    data = read(tmp_path, "\n".join(f"{i},{x},{y}" for i, (x, y) in enumerate(FRAME[["a", "b"]].to_numpy())))
    assert data.X.shape == (40, 2)
    assert list(data.ids[:2]) == ["0", "1"]
    measured = read(tmp_path, FRAME.assign(t=np.arange(40) * 1.0).to_csv(index=False))
    assert "t" in measured.columns.features


def test_what_would_leave_nothing_is_a_feature(tmp_path):
    assert read(tmp_path, "x\n1\n2\n3\n").X.tolist() == [[1], [2], [3]]
    data = read(tmp_path, "id,x\n5,1\n6,2\n7,3\n")
    assert (data.columns.id, data.columns.features) == ("id", ("x",))


def test_an_index_beside_an_id_is_left_out(tmp_path):
    data = read(tmp_path, FRAME.assign(user_id=RNG.permutation(999)[:40]).to_csv())
    assert (data.columns.id, data.columns.features) == ("user_id", ("a", "b", "c"))
    assert said(data, "(unnamed)", "left out")


def test_words_named_like_ids_are_ids(tmp_path):
    data = read(tmp_path, FRAME.assign(user_id=[f"u{i}" for i in range(40)]).to_csv(index=False))
    assert (data.columns.id, data.columns.features) == ("user_id", ("a", "b", "c"))


def test_options_say_which_columns_are_what(tmp_path):
    text = FRAME.assign(n=np.arange(40), name=[f"x{i}" for i in range(40)]).to_csv(index=False)
    data = read(tmp_path, text, columns=("c", "n"), id_column="name", scale=False)
    assert data.X[:3, 1].tolist() == [0, 1, 2]
    assert data.ids[1] == "x1"
    assert data.columns.unused == ("a", "b")
    assert read(tmp_path, text, drop=("name", "a")).columns.features == ("b", "c")
    with pytest.raises(InputError, match=r"column 'name': 'x0' is not a number; leave the column out"):
        read(tmp_path, text)
    with pytest.raises(InputError, match="no columns d, e; it has a, b, c"):
        read(tmp_path, text, columns=("a", "d", "e"))
    with pytest.raises(InputError, match=r"'a' cannot be both a feature and dropped \(columns=..., drop=...\)"):
        read(tmp_path, text, columns=("a",), drop=("a",))
    with pytest.raises(InputError, match="'a' cannot be the id and also a feature"):
        read(tmp_path, text, columns=("a",), id_column="a")


@pytest.mark.parametrize(
    ("option", "value"), [("columns", ("a",)), ("drop", ("a",)), ("id_column", "a"), ("array", "a")]
)
def test_options_that_say_nothing_are_refused(tmp_path, option, value):
    np.save(tmp_path / "x.npy", FRAME)
    for name in (str(tmp_path / "x.npy"), str(tmp_path), "digits"):
        with pytest.raises(InputError, match=rf"not a (table|.npz file).* \({option}=...\)"):
            open_data(name, **{option: value})


KMEANS = ["-k", 2, "--method", "kmeans", "--out", "run"]


def test_fit_says_what_the_columns_are(tmp_path):
    (tmp_path / "x.csv").write_text(FRAME.assign(label=["u", "v"] * 20).to_csv())
    done = inside("fit", "x.csv", *KMEANS, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    lines = done.stderr.splitlines()
    assert any("features a, b, c" in line and "id (unnamed)" in line and "label label" in line for line in lines[:3])
    assert (tmp_path / "run" / "labels.csv").read_text().splitlines()[40].startswith("39,")


def test_fit_takes_columns_by_option_and_the_run_remembers_them(tmp_path):
    (tmp_path / "x.csv").write_text(FRAME.assign(name=[f"x{i}" for i in range(40)], n=np.arange(40)).to_csv())
    words = ["--columns", "a, c", "--id-column", "name"]
    assert inside("fit", "x.csv", *KMEANS, *words, cwd=tmp_path).returncode == 0
    labels = (tmp_path / "run" / "labels.csv").read_text()
    assert labels.splitlines()[1].startswith("x0,")
    assert inside("predict", "run", "x.csv", cwd=tmp_path).stdout == labels
    assert inside("evaluate", "run", cwd=tmp_path).returncode == 0
    assert inside("fit", "x.csv", "--out", "run", "--resume", cwd=tmp_path).returncode == 0
    refused(inside("fit", "x.csv", "-k", 2, "--columns", "a,d", cwd=tmp_path), "x.csv", "no column 'd'")
    refused(inside("fit", "x.csv", "-k", 2, "--columns", " , ", cwd=tmp_path), "--columns", "name at least one")
    assert inside("compare", "x.csv", "-k", 2, "--methods", "kmeans", "--drop", "name", cwd=tmp_path).returncode == 0


def written(tmp_path, columns, name="x.parquet"):
    parquet = pytest.importorskip("pyarrow.parquet")
    import pyarrow as pa

    parquet.write_table(pa.table(columns), tmp_path / name)
    return tmp_path / name


@pytest.mark.parametrize("labels", [["a", None] * 20, [0, None] * 20], ids=["words", "numbers"])
def test_a_label_that_is_missing_in_parquet_is_named(tmp_path, labels):
    written(tmp_path, {"a": RNG.normal(size=40), "b": RNG.normal(size=40), "label": labels})
    refused(inside("fit", "x.parquet", *KMEANS, cwd=tmp_path), "x.parquet: row 2, column 'label': no value")


VECTORS = RNG.normal(size=(40, 5)).astype(np.float32)


@pytest.mark.parametrize("fixed", [False, True])
def test_lists_in_parquet_are_the_vectors(tmp_path, fixed):
    pa = pytest.importorskip("pyarrow")
    kind = pa.list_(pa.float32(), 5) if fixed else pa.list_(pa.float32())
    ids = [f"doc{i}" for i in range(40)]
    columns = {"id": ids, "embedding": pa.array(VECTORS.tolist(), kind), "text": ids, "n_words": range(40)}
    data = open_data(str(written(tmp_path, columns)))
    assert np.array_equal(data.X, VECTORS)
    assert data.X.dtype == np.float32
    assert list(data.ids) == ids
    assert (data.columns.features, data.columns.unused) == (("embedding",), ("text", "n_words"))
    done = inside("fit", "x.parquet", *KMEANS, cwd=tmp_path)
    assert "features embedding" in done.stderr
    assert inside("predict", "run", "x.parquet", cwd=tmp_path).stdout == (tmp_path / "run" / "labels.csv").read_text()


def test_lists_in_parquet_that_are_no_vectors_are_named(tmp_path):
    rows = VECTORS.tolist()
    rows[7] = rows[7][:3]
    with pytest.raises(InputError, match="row 8, column 'e': a list of 3 numbers, where others have 5"):
        open_data(str(written(tmp_path, {"e": rows})))
    rows[7] = None
    with pytest.raises(InputError, match="row 8, column 'e': no complete list of numbers"):
        open_data(str(written(tmp_path, {"e": rows})))
    rows[7] = [1.0, None, 2.0, 3.0, 4.0]
    with pytest.raises(InputError, match="row 8, column 'e': no complete list of numbers"):
        open_data(str(written(tmp_path, {"e": rows})))
    path = str(written(tmp_path, {"e": VECTORS.tolist(), "f": (2 * VECTORS).tolist(), "n": range(40)}))
    with pytest.raises(InputError, match=r"e, f all hold vectors; choose one \(columns=...\)"):
        open_data(path)
    assert np.array_equal(open_data(path, columns=("e", "f")).X, np.hstack([VECTORS, 2 * VECTORS]))
    assert np.array_equal(open_data(path, drop=("e",)).X, 2 * VECTORS)


def test_parquet_tables_are_read_as_csv_tables_are(tmp_path):
    pytest.importorskip("pyarrow")
    frame = FRAME.assign(customer_id=RNG.permutation(999)[:40], label=["u", "v"] * 20)
    frame.sample(frac=1, random_state=0).to_parquet(tmp_path / "x.parquet")  # with an index that is no range
    data = open_data(str(tmp_path / "x.parquet"))
    assert (data.columns.id, data.columns.label, data.columns.features) == ("customer_id", "label", ("a", "b", "c"))
    frame.loc[4, "b"] = None
    frame.to_parquet(tmp_path / "x.parquet")
    with pytest.raises(InputError, match="row 5, column 'b': no value"):
        open_data(str(tmp_path / "x.parquet"))
    (tmp_path / "x.parquet").write_bytes(b"PAR1 nonsense")
    with pytest.raises(InputError, match="not a Parquet file"):
        open_data(str(tmp_path / "x.parquet"))


def fitted(tmp_path, frame=FRAME, **options):
    (tmp_path / "x.csv").write_text(frame.to_csv(index=False, **options))
    done = inside("fit", "x.csv", *KMEANS, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    return [line.split(",", 1)[1] for line in (tmp_path / "run" / "labels.csv").read_text().splitlines()]


def predicted(tmp_path, text):
    (tmp_path / "new.csv").write_text(text)
    return inside("predict", "run", "new.csv", cwd=tmp_path)


def test_columns_of_new_data_are_found_by_name(tmp_path):
    labels = fitted(tmp_path)
    done = predicted(tmp_path, FRAME[["c", "a", "b"]].assign(more=RNG.normal(size=40)).to_csv())
    rows = [line.split(",", 1)[1].rpartition(",") for line in done.stdout.splitlines()]
    assert [row[0] for row in rows] == labels
    assert rows[0][2] == "more"  # what is not used stands beside the clusters
    assert "features a, b, c" in done.stderr
    assert "not used more" in done.stderr
    one = predicted(tmp_path, FRAME[["c", "a", "b"]].head(1).to_csv(index=False))
    assert one.stdout.splitlines()[1].split(",", 1)[1] == labels[1]


def test_new_data_with_other_names_is_refused(tmp_path):
    fitted(tmp_path)
    other = predicted(tmp_path, FRAME.rename(columns={"b": "d"}).to_csv(index=False))
    refused(other, "new.csv", "no column 'b'", "it has a, d, c", "the run was fitted on a, b, c")
    refused(predicted(tmp_path, FRAME[["a"]].to_csv(index=False)), "no columns b, c")
    refused(predicted(tmp_path, "1,2\n3,4\n"), "new.csv", "no header and 2 columns", "a, b, c")


def test_columns_of_new_data_can_be_named(tmp_path):
    labels = fitted(tmp_path, FRAME.assign(user_id=range(100, 140)))
    (tmp_path / "new.csv").write_text(FRAME.rename(columns=str.upper).to_csv(index=False))
    done = inside("predict", "run", "new.csv", "--columns", "A,B,C", cwd=tmp_path)
    assert [line.split(",", 1)[1] for line in done.stdout.splitlines()] == labels


def test_texts_of_new_data_are_found_by_name_or_named(tmp_path):
    texts = [f"{word} {i}" for i, word in enumerate(["rain and sun", "goal and match"] * 10)]
    pd.DataFrame({"id": range(20), "text": texts, "n": range(20)}).to_csv(tmp_path / "x.csv", index=False)
    assert inside("fit", "x.csv", "-k", "2", "--set", "epochs=1", "--out", "run", cwd=tmp_path).returncode == 0
    shown = inside("evaluate", "run", cwd=tmp_path).stdout
    assert "rain" in shown
    assert "goal" in shown
    other = pd.DataFrame({"id": range(20), "when": ["May"] * 20, "body": texts})
    refused(predicted(tmp_path, other.to_csv(index=False)), "no column 'text'", "it has id, when, body", "--column")
    done = inside("predict", "run", "new.csv", "--column", "body", cwd=tmp_path)
    same = predicted(tmp_path, other.rename(columns={"body": "text"}).to_csv(index=False))
    found = [[row.split(",")[:2] for row in result.stdout.splitlines()] for result in (done, same)]
    assert found[0] == found[1]
    assert len(found[0]) == 21


def test_new_data_without_a_header_is_taken_in_order(tmp_path):
    labels = fitted(tmp_path)
    for index in (False, True):
        done = predicted(tmp_path, FRAME.to_csv(index=index, header=False))
        assert [line.split(",", 1)[1] for line in done.stdout.splitlines()] == labels
        assert "no header: its columns are read in the order a, b, c" in done.stderr


def test_a_run_without_names_takes_new_columns_by_their_places(tmp_path):
    labels = fitted(tmp_path, header=False)
    done = predicted(tmp_path, FRAME.to_csv(index=False))
    assert [line.split(",", 1)[1] for line in done.stdout.splitlines()] == labels
    assert "without a header: a, b, c are used by position" in done.stderr


def test_ids_of_new_data_are_kept(tmp_path):
    fitted(tmp_path, FRAME.assign(user_id=range(100, 140)))
    done = predicted(tmp_path, FRAME.assign(user_id=range(200, 240)).to_csv(index=False))
    assert done.stdout.splitlines()[1].startswith("200,")
    assert predicted(tmp_path, FRAME.to_csv(index=False)).stdout.splitlines()[1].startswith("0,")


@pytest.mark.parametrize("text", ['x\n1\n2\n""\n4\n', "id,x\na,1\nb,2\nc,\nd,4\n", "x;z\n1;1\n2;2\n3;\n4;4\n"])
def test_one_blank_does_not_make_texts_of_numbers(tmp_path, text):
    with pytest.raises(InputError, match=r"line 4, column '[xz]': no value; fill it in, remove the row"):
        read(tmp_path, text)


def test_words_for_nothing_are_no_numbers(tmp_path):
    with pytest.raises(InputError, match=r"line 3, column 'x': no value \('N/A'\)"):
        read(tmp_path, "x,y\n1,2\nN/A,4\n")
    with pytest.raises(InputError, match=r"line 1, column '1': no value"):
        read(tmp_path, "1,,3\n4,5,6\n")
    with pytest.raises(InputError, match=r"line 6, column 'x': 'two' is not a number"):
        read(tmp_path, 'x,text2\n1,2\n\n"3\n",4\ntwo,5\n', drop=("text2",))  # blank lines and long cells count


@pytest.mark.parametrize("separator", [";", "\t"])
@pytest.mark.parametrize("header", [True, False])
def test_decimal_commas(tmp_path, separator, header):
    data = read(tmp_path, FRAME.to_csv(index=False, sep=separator, decimal=",", header=header), "x.tsv")
    np.testing.assert_allclose(data.X, FRAME)
    assert said(data, "1,5 is read as 1.5")


def test_commas_and_points_in_one_file_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"'1,5' in line 2 has a decimal comma, '2.500' in line 3 a decimal point"):
        read(tmp_path, "a;b\n1,5;2\n3,5;2.500\n")


def test_the_header_alone_does_not_decide_what_separates(tmp_path):
    data = read(tmp_path, "size; in cm; tall,weight\n1,2\n3,4\n")
    assert data.columns.features == ("size; in cm; tall", "weight")
    assert data.X.tolist() == [[1, 2], [3, 4]]
    data = read(tmp_path, "size, in cm;weight, in kg, dry\n1,5;2\n3;4,5\n")
    assert data.columns.features == ("size, in cm", "weight, in kg, dry")
    assert data.X.tolist() == [[1.5, 2], [3, 4.5]]


def test_texts_with_separators_in_them_stay_whole(tmp_path):
    texts = ["one; two, three", "four\tfive; six", "7", "eight, nine"]
    data = read(tmp_path, pd.DataFrame({"id": range(4), "body": texts}).to_csv(index=False))
    assert list(data.X) == texts


def test_columns_that_are_no_features_stand_beside_the_clusters(tmp_path):
    more = {"name": [f"=row {i}" for i in range(40)], "cluster": ["a", "b"] * 20, "note": ["x" * 201] * 40}
    FRAME.assign(key=RNG.permutation(999)[:40], **more).to_csv(tmp_path / "x.csv", index=False)
    words = ["x.csv", "-k", "2", "--method", "kmeans", "--drop", "name,cluster,note", "--out", "run"]
    assert inside("fit", *words, cwd=tmp_path).returncode == 0
    labels = pd.read_csv(tmp_path / "run" / "labels.csv")
    assert [*labels] == ["id", "cluster", "confidence", "second", "second_confidence", "name", "cluster (data)"]
    assert labels.name[3] == "'=row 3"
    assert labels["cluster (data)"].tolist() == more["cluster"]
    assert set(labels.cluster) == {0, 1}
    new = inside("predict", "run", "x.csv", cwd=tmp_path)
    assert new.stdout == (tmp_path / "run" / "labels.csv").read_text()
    assert inside("evaluate", "run", cwd=tmp_path).returncode == 0


WORDLESS = {
    "numbers between spaces": "1.5 2.5 3\n4 5e-1 6\n7 8 9.25\n0.5 1 2\n",
    "amounts in brackets": "cost\n(1.5)\n(2.5)\n(7)\n(9.5)\n",
    "telephone numbers": "phone\n+1 555 0100\n+1 555 0199\n+44 20 7946\n+49 30 901820\n",
    "dates": "when\n2024-01-01\n2024-02-03\n2024-03-04\n2024-05-06\n",
}


@pytest.mark.parametrize("what", WORDLESS)
def test_cells_without_a_word_are_no_texts(tmp_path, what):
    """A single column that is not numbers was clustered by its digits, as if they were words."""
    with pytest.raises(InputError, match=r"line \d.* is not a number"):
        read(tmp_path, WORDLESS[what])
    if what == "telephone numbers":
        assert len(read(tmp_path, WORDLESS[what], column="phone").X) == 4


def test_a_single_column_of_amounts_is_numbers(tmp_path):
    assert read(tmp_path, "rate\n1 %\n3 %\n2.5 %\n").X.ravel().tolist() == [1, 3, 2.5]


def test_bars_separate_columns(tmp_path):
    assert read(tmp_path, "a|b\n1.5|2\n3|4\n5|1\n").X.tolist() == [[1.5, 2], [3, 4], [5, 1]]


@pytest.mark.parametrize("blank", ["", " "])
def test_blank_labels_are_no_class(tmp_path, blank):
    """As in Parquet: a class of all that was left blank would be scored like any other."""
    with pytest.raises(InputError, match=r"line 3, column 'label': no value; fill it in, .* leave the column out"):
        read(tmp_path, f"a,b,label\n1.5,2,u\n3,4,{blank}\n5,1,v\n")
    data = read(tmp_path, f"a,b,label\n1.5,2,{blank}\n3,4,{blank}\n5,1,{blank}\n")
    assert data.y is None
    assert said(data, "label", "empty")
