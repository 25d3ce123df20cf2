"""People's files: what is read, and what is said of those that cannot be."""

import json
import struct

import numpy as np
import pytest
import scipy.sparse as sp
from PIL import Image

from lsdc.data.files import open_data
from lsdc.errors import InputError


@pytest.mark.parametrize("large", [True, False])
def test_arrays(tmp_path, monkeypatch, large):
    X = np.random.default_rng(0).random((10, 3))
    np.save(tmp_path / "x.npy", X)
    monkeypatch.setattr("lsdc.data.arrays.IN_MEMORY", 0 if large else 2**28)
    data = open_data(str(tmp_path / "x.npy"))
    assert np.array_equal(data.X, X)
    assert isinstance(data.X, np.memmap) == large
    assert data.y is None


def test_archives_with_labels(tmp_path):
    np.savez(tmp_path / "x.npz", X=np.zeros((4, 2)), y=np.array(["a", "b", "a", "b"]))
    data = open_data(str(tmp_path / "x.npz"))
    assert data.class_names == ("a", "b")
    assert data.n_clusters == 2


def test_sparse_archives(tmp_path):
    X = sp.random(10, 5, 0.5, format="csr", random_state=0)
    sp.save_npz(tmp_path / "x.npz", X)
    assert (open_data(str(tmp_path / "x.npz")).X != X).nnz == 0


@pytest.mark.parametrize("header", ["", "a,b\n"])
def test_tables_of_numbers(tmp_path, header):
    (tmp_path / "x.csv").write_text(f"{header}1,2\n3,-4.5e1\n")
    assert open_data(str(tmp_path / "x.csv")).X.tolist() == [[1, 2], [3, -45]]


def test_ids_name_the_rows(tmp_path):
    (tmp_path / "x.csv").write_text("id,a,b\nfirst,1,2\nsecond,3,4\n")
    data = open_data(str(tmp_path / "x.csv"))
    assert list(data.ids) == ["first", "second"]
    assert data.X.shape == (2, 2)


def test_texts(tmp_path):
    (tmp_path / "x.csv").write_text('id,text\n7,"one, two"\n8,three\n')
    (tmp_path / "x.txt").write_text("one\ntwo\n")
    (tmp_path / "x.jsonl").write_text('{"text": "one", "id": "a"}\n{"text": "two"}\n')
    (tmp_path / "other.csv").write_text("body,length\nhello,3\nthere,4\n")
    assert open_data(str(tmp_path / "x.csv")).X == ["one, two", "three"]
    assert open_data(str(tmp_path / "x.txt")).X == ["one", "two"]
    data = open_data(str(tmp_path / "x.jsonl"))
    assert data.X == ["one", "two"]
    assert list(data.ids) == ["a", 2]
    assert open_data(str(tmp_path / "other.csv"), column="body").X == ["hello", "there"]


def test_folders_of_images(tmp_path):
    (tmp_path / "cats").mkdir()
    Image.new("RGB", (60, 40), (255, 0, 0)).save(tmp_path / "cats" / "red.png")
    Image.new("L", (20, 30), 128).save(tmp_path / "grey.jpg")
    (tmp_path / "notes.md").write_text("not an image")
    data = open_data(str(tmp_path), image_size=16)
    assert data.X.shape == (2, 16, 16, 3)
    assert data.X.dtype == np.uint8
    assert data.ids == ["cats/red.png", "grey.jpg"]
    assert data.X[0, 8, 8].tolist() == [255, 0, 0]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.npy", b"nonsense", "not an array of numbers"),
        ("x.npz", b"nonsense", "not an archive"),
        ("x.csv", b"", "is empty"),
        ("x.csv", b"a,b\n", "has no rows"),
        ("x.csv", b"a,b\n1,2\n3\n", "line 3 has 1 column, the first has 2"),
        ("x.csv", b"a,b\n1,2\n3,x\n", "line 3, column 'b': 'x' is not a number"),
        ("x.csv", b"\xff\xfe\x00", "begins like UTF-16"),
        ("x.txt", b"\n\n", "is empty"),
        ("x.jsonl", b'{"text": "a"}\nnot json\n', "line 2 is not a JSON object with fields"),
        ("x.xlsx", b"", "cannot read .xlsx"),
        ("x", b"", "a file without an extension"),
    ],
)
def test_bad_files_are_named(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        open_data(str(tmp_path / name))
    assert name in str(caught.value)
    assert "\n" not in str(caught.value)


def test_pickles_are_refused(tmp_path):
    np.save(tmp_path / "x.npy", np.array([{"a": 1}], object), allow_pickle=True)
    np.savez(tmp_path / "x.npz", X=np.array([{"a": 1}], object))
    for name in ("x.npy", "x.npz"):
        with pytest.raises(InputError, match=r"not an (array of numbers|archive of arrays)"):
            open_data(str(tmp_path / name))


@pytest.mark.parametrize(
    ("array", "what"),
    [
        (np.zeros((9, 2), complex), "complex128"),
        (np.zeros(9, [("a", float), ("b", float)]), "named fields"),
        (np.zeros((9, 2), "datetime64[s]"), "dates or times"),
    ],
)
def test_arrays_of_other_things_are_named(tmp_path, array, what):
    np.save(tmp_path / "x.npy", array)
    with pytest.raises(InputError, match=f"x.npy: not an array of numbers: it holds {what}; convert it"):
        open_data(str(tmp_path / "x.npy"))


def test_broken_images_are_named(tmp_path):
    (tmp_path / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\nnot really")
    with pytest.raises(InputError, match=r"broken.png: not a readable image"):
        open_data(str(tmp_path))
    with pytest.raises(InputError, match=r"^\S*broken.png: not a readable image"):
        open_data(str(tmp_path / "broken.png"))


def test_empty_folders_are_said(tmp_path):
    with pytest.raises(InputError, match="no images in this folder"):
        open_data(str(tmp_path))


def test_missing_files_suggest_a_data_set():
    with pytest.raises(
        InputError, match=r"digitz: no such file, folder or built-in data set; did you mean .* 'digits'"
    ):
        open_data("digitz")
    with pytest.raises(InputError, match=r"built in: digits"):
        open_data("nothing-like-it")
    with pytest.raises(InputError, match=r"there is no folder '/no/such'"):
        open_data("/no/such/place")


def test_missing_files_suggest_one_beside_them(tmp_path):
    (tmp_path / "Customers.csv").write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match=r"did you mean '.*/Customers.csv'\?"):
        open_data(str(tmp_path / "custmers.csv"))
    with pytest.raises(InputError, match=r"/x.npy: no such file, folder or built-in data set$"):
        open_data(str(tmp_path / "x.npy"))


def test_a_column_that_is_not_there_suggests_the_nearest(tmp_path):
    (tmp_path / "x.csv").write_text("AGE,income\n1,2\n")
    for asked, near in (("incme", "income"), ("age", "AGE")):
        with pytest.raises(InputError, match=rf"no column '{asked}' \(did you mean '{near}'\?\); it has AGE, income"):
            open_data(str(tmp_path / "x.csv"), columns=(asked,))


@pytest.mark.parametrize("name", ["x.npy", "x.txt", "digits", "photos"])
def test_only_tables_have_a_column_of_texts(tmp_path, name):
    with pytest.raises(InputError, match=r"not a table .* so it has no columns to choose \(column=...\)"):
        open_data(name, column="text")


def test_a_quotation_mark_that_is_never_closed_does_not_swallow_the_rest(tmp_path):
    (tmp_path / "x.csv").write_text('id,text\n1,one\n2,"two\n3,three\n4,four\n')
    with pytest.raises(InputError, match=r"line 3: a quotation mark opens a cell there and is never closed"):
        open_data(str(tmp_path / "x.csv"))
    (tmp_path / "x.csv").write_text('id,text\n1,one\n2,"two\n\n""2"" lines"\n')
    assert open_data(str(tmp_path / "x.csv")).X == ["one", 'two\n\n"2" lines']


def test_infinity_is_no_text(tmp_path):
    (tmp_path / "x.csv").write_text("a,b\n1,2\ninf,3\n")
    with pytest.raises(InputError, match=r"'inf' is infinite or too large; replace it, remove the row.* \(drop=...\)$"):
        open_data(str(tmp_path / "x.csv"))


def test_columns_must_exist(tmp_path):
    (tmp_path / "x.csv").write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match="no column 'text'; it has a, b"):
        open_data(str(tmp_path / "x.csv"), column="text")


def test_labels_must_fit(tmp_path):
    np.savez(tmp_path / "x.npz", X=np.zeros((4, 2)), y=np.zeros(3))
    with pytest.raises(InputError, match="4 samples, but labels y of shape"):
        open_data(str(tmp_path / "x.npz"))


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_other_delimiters(tmp_path, delimiter):
    (tmp_path / "x.csv").write_text(f"a{delimiter}b\n1{delimiter}2\n3{delimiter}4\n")
    assert open_data(str(tmp_path / "x.csv")).X.tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize("name", ["label", "y"])
def test_label_columns_are_for_evaluation_only(tmp_path, name):
    (tmp_path / "x.csv").write_text(f"a,b,{name}\n1,2,cat\n3,4,dog\n")
    data = open_data(str(tmp_path / "x.csv"))
    assert data.X.tolist() == [[1, 2], [3, 4]]
    assert data.y.tolist() == ["cat", "dog"]
    assert data.n_clusters == 2


def test_columns_there_twice_are_refused(tmp_path):
    (tmp_path / "x.csv").write_text("a,a,b\n1,2,3\n")
    with pytest.raises(InputError, match="the column 'a' appears twice"):
        open_data(str(tmp_path / "x.csv"))


def test_only_line_ends_end_lines(tmp_path):
    (tmp_path / "x.txt").write_text("one\u2028still one\ntwo\x0bstill two\n")
    (tmp_path / "x.jsonl").write_text('{"text": "one\u2028still"}\n\n{"text": "two"}\n')
    assert len(open_data(str(tmp_path / "x.txt")).X) == 2
    assert open_data(str(tmp_path / "x.jsonl")).X == ["one\u2028still", "two"]


@pytest.mark.parametrize("format", ["csr", "csc", "coo"])
def test_every_sparse_format(tmp_path, format):
    X = sp.random(6, 6, 0.5, format=format, random_state=0)
    sp.save_npz(tmp_path / "x.npz", X)
    assert np.array_equal(open_data(str(tmp_path / "x.npz")).X.toarray(), X.toarray())


def test_truncated_archives_are_refused(tmp_path):
    np.savez(tmp_path / "x.npz", X=np.zeros((100, 3)))
    whole = (tmp_path / "x.npz").read_bytes()
    (tmp_path / "x.npz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match="truncated"):
        open_data(str(tmp_path / "x.npz"))
    (tmp_path / "y.npz").write_bytes((tmp_path / "x.npz").read_bytes()[:0])
    with pytest.raises(InputError, match="truncated"):
        open_data(str(tmp_path / "y.npz"))


def test_rotated_photos_stand_upright(tmp_path):
    image = Image.new("RGB", (16, 16))
    image.paste((255, 255, 255), (0, 0, 16, 8))  # bright above
    exif = image.getexif()
    exif[0x0112] = 3  # taken upside down
    image.save(tmp_path / "a.png", exif=exif)
    X = open_data(str(tmp_path), image_size=16).X
    assert X[0, 12].mean() > 200 > X[0, 3].mean()


def test_json_ids_survive(tmp_path):
    (tmp_path / "x.jsonl").write_text(json.dumps({"text": "a", "id": 5}) + "\n")
    assert list(open_data(str(tmp_path / "x.jsonl")).ids) == [5]


def exif_with(kind, count, value):
    """EXIF of one tag, the orientation, of any type and length, pointing anywhere."""
    entry = struct.pack("<HHII", 0x0112, kind, count, value)
    return b"Exif\0\0II*\0" + struct.pack("<IH", 8, 1) + entry + bytes(4)


def test_photos_with_malformed_tags_are_read_or_left_out(tmp_path):
    Image.new("RGB", (16, 16)).save(tmp_path / "good.jpg")
    tags = [(k, n, v) for k in range(14) for n in (0, 1, 2, 2**31) for v in (0, 3, 9, 2**32 - 1)]
    for i, tag in enumerate(tags):
        Image.new("RGB", (16, 16)).save(tmp_path / f"{i}.jpg", exif=exif_with(*tag))
    data = open_data(str(tmp_path), image_size=8)
    assert len(data.X) + len(data.skipped) == 1 + len(tags)
    assert len(data.X) > len(tags) // 2
    assert all("not a readable image" in why for _, why in data.skipped)


@pytest.mark.parametrize("text", ["1\n2\n3.5\n", "1.5e+00 2.5e+00\n\n3 4\n", "1;2\n3;nan\n"])
def test_numbers_are_no_texts(tmp_path, text):
    """What numpy's savetxt writes was clustered by its digits; a run of texts still takes a line of numbers."""
    (tmp_path / "x.txt").write_text(text)
    with pytest.raises(InputError, match=r"x.txt: holds numbers, not texts; save it as .csv"):
        open_data(str(tmp_path / "x.txt"))
    texts = open_data(str(tmp_path / "x.txt"), matched=True).X
    assert texts == text.splitlines()
