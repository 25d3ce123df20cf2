"""True labels as people keep them: in another order, with headers, separators and mistakes of all kinds."""

import json

import numpy as np
import pytest

from lsdc.data.truth import read_true_labels
from lsdc.errors import InputError
from test_cli import inside, refused

IDS = ["a", "b", "c", "d"]
LABELS = ["x", "y", "x", "z"]


def read(tmp_path, text, name="y.csv", ids=IDS, **more):
    (tmp_path / name).write_text(text)
    y, said = read_true_labels(tmp_path / name, ids, **more)
    return y.tolist(), " ".join(said)


@pytest.mark.parametrize(
    "text",
    [
        "id,label\nd,z\nb,y\na,x\nc,x\n",
        "label;id\nz;d\ny;b\nx;a\nx;c\n",
        "id\tclass\textra\nd\tz\t1\nb\ty\t2\na\tx\t3\nc\tx\t4\n",
        "file,species\nd,z\nb,y\na,x\nc,x\n",
        "d,z\nb,y\na,x\nc,x\n",
        ",label\nd,z\nb,y\na,x\nc,x\n",
        "number,customer,label\n1,d,z\n2,b,y\n3,a,x\n4,c,x\n",
    ],
)
def test_labels_are_joined_by_id(tmp_path, text):
    y, said = read(tmp_path, text)
    assert y == LABELS
    assert "matched by the ids in" in said


def test_labels_without_ids_are_in_the_order_of_the_data(tmp_path):
    np.save(tmp_path / "y.npy", np.arange(4))
    assert read_true_labels(tmp_path / "y.npy", IDS)[0].tolist() == [0, 1, 2, 3]
    assert read(tmp_path, "x\ny\nx\nz\n", "y.txt") == (LABELS, "")
    assert read(tmp_path, "label\nx\ny\nx\nz\n") == (LABELS, "")
    y, said = read(tmp_path, "size,label\n1,x\n2,y\n3,x\n4,z\n")
    assert y == LABELS
    assert "read in the order of the data" in said
    commas = ["cats, dogs", "birds", "cats, dogs", "a, b, c"]
    assert read(tmp_path, "\n".join(commas) + "\n", "y.txt") == (commas, "")


def test_the_column_that_named_the_rows_in_the_run_is_the_id(tmp_path):
    text = "id,customer,label\n1,d,z\n2,b,y\n3,a,x\n4,c,x\n"
    assert read(tmp_path, text, id_column="customer")[0] == LABELS


def test_a_line_too_many_is_a_header_only_if_it_can_be_one(tmp_path):
    y, said = read(tmp_path, "species\nx\ny\nx\nz\n")
    assert y == LABELS
    assert "line 1 ('species') is read as the header" in said
    with pytest.raises(InputError, match=r"5 labels, but the run has 4 samples; line 1 \('x'\) looks like a label"):
        read(tmp_path, "x\nx\ny\nx\nz\n")
    with pytest.raises(InputError, match="5 labels, but the run has 4 samples; line 1"):
        read(tmp_path, "3\n0\n1\n1\n2\n")
    np.save(tmp_path / "y.npy", np.arange(5))
    with pytest.raises(InputError, match="5 labels, but the run has 4 samples"):
        read_true_labels(tmp_path / "y.npy", IDS)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id,label\na,x\nb,y\nc,x\n", r"samples of the run without a label: 1 \(first: 'd'\)"),
        ("id,label\na,x\nb,y\nc,x\nd,z\ne,z\n", r"ids that are not in the run: 1 \(first: 'e'\)"),
        ("id,label\n1,x\n2,y\n3,x\n4,z\n", r"label: 4 \(first: 'a'\), ids that are not in the run: 4 \(first: '1'\)"),
        ("id,label\na,x\nb,y\na,x\nd,z\n", "the id 'a' appears twice, in lines 2 and 4"),
        ("a,x,1\nb,y,2\nc,x,3\nd,z,4\n", "which column has the labels"),
        ("id,label\na,x\nb\n", "line 3 has 1 column, the first has 2"),
        ("", "is empty"),
        ("x\ny\n", "2 labels, but the run has 4 samples"),
    ],
)
def test_labels_that_do_not_fit_are_named(tmp_path, text, message):
    with pytest.raises(InputError, match=message):
        read(tmp_path, text)


def test_labels_that_are_not_there_are_said_in_plain_words(tmp_path):
    with pytest.raises(InputError, match=r"no.csv: cannot be read \(No such file or directory\)"):
        read_true_labels(tmp_path / "no.csv", IDS)


def test_ids_that_are_not_unique_join_nothing(tmp_path):
    with pytest.raises(InputError, match="several samples with the id 'a'"):
        read(tmp_path, "id,label\na,x\nb,y\n", ids=["a", "a", "b"])


def test_evaluate_joins_by_id(tmp_path):
    rng = np.random.default_rng(0)
    rows = [f"c{i},{rng.normal() + 9 * (i % 2)},{rng.normal()}" for i in range(40)]
    (tmp_path / "x.csv").write_text("customer_id,a,b\n" + "\n".join(rows) + "\n")
    assert inside("fit", "x.csv", "-k", 2, "--method", "kmeans", "--out", "run", cwd=tmp_path).returncode == 0
    truth = [f"c{i};{'ab'[i % 2]}" for i in rng.permutation(40)]
    (tmp_path / "y.csv").write_text("customer_id;label\n" + "\n".join(truth) + "\n")
    done = inside("evaluate", "run", "--labels", "y.csv", "--json", cwd=tmp_path)
    assert json.loads(done.stdout)["kmeans"]["acc"] == 1
    assert "matched by the ids in customer_id" in done.stderr
    (tmp_path / "y.csv").write_text("customer_id;label\n" + "\n".join(truth[1:]) + "\n")
    refused(inside("evaluate", "run", "--labels", "y.csv", cwd=tmp_path), "y.csv", "without a label: 1")
    refused(inside("evaluate", "run", "--labels", "no.csv", cwd=tmp_path), "no.csv", "cannot be read")


@pytest.mark.parametrize("name", ["y.jsonl", "y.parquet", "y.npz"])
def test_files_of_other_kinds_are_not_read_as_lines_of_labels(tmp_path, name):
    """JSON has commas too: shuffled rows of {"id": ..., "label": ...} once gave an ACC of .43 where it was 1."""
    text = "".join(json.dumps({"id": i, "label": y}) + "\n" for i, y in zip(IDS, LABELS, strict=True))
    with pytest.raises(InputError, match=r"labels are not read from \.\w+ files; save them as \.csv"):
        read(tmp_path, text, name)
