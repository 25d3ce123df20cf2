"""labels.csv: harmless in a spreadsheet, plain CSV for everybody else, and read back to the letter."""

import csv
import os

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from PIL import Image

from lsdc.data.files import open_data
from lsdc.runs.folder import Run
from lsdc.runs.labels import labels_csv, read_labels
from test_cli import inside
from victims import surrounded, undisturbed

FORMULAS = [
    *(
        "=1+1",
        "+1+1",
        "-1+1",
        "@SUM(A1)",
        "\t=1",
        "\r=1",
        "\n=1",
        " =1",
        "=cmd|' /C calc'!A0",
        '=HYPERLINK("http://x")',
    ),
    *("'=1", "''=1", "＝1+1", "\ufeff=1", "-", "+", "=", "--5", "-5a", "- 5", "-5\n=1"),
]
NAMES = [
    *(
        "a,b",
        'say "hi"',
        "two\nlines",
        "two\r\nlines",
        "return\rhere",
        "a;=1+1;b",
        "tab\t=1",
        "'tis",
        "",
        " ",
        "\\",
        "é",
        "日本",
    ),
    *("\udcff.png", "\\udcff.png", "\\\udcff", "\\\\udcff", "\\ud8", "a\x00b", "\u2028", "x" * 200_000),
]


def read(text, path):
    """A labels file as a program reads it, and as we do."""
    path.write_bytes(text.encode())
    with path.open(newline="", encoding="utf-8") as file:
        csv.field_size_limit(2**20)
        rows = list(csv.DictReader(file))
    return [row["id"] for row in rows], read_labels(path, {})[0]


def is_safe(cell):
    """Whether a spreadsheet takes a cell for text or for a plain number."""
    try:
        float(cell)
    except ValueError:
        return cell.strip()[:1] not in tuple("=+-@＝＋－＠") and cell[:1] not in tuple("\t\r\n")
    return True


@pytest.mark.parametrize("name", FORMULAS)
def test_formulas_are_text(tmp_path, name):
    ((cell,), ours) = read(labels_csv([name], [0], [0.5]), tmp_path / "labels.csv")
    assert cell == f"'{name}"
    assert ours == [name]


@pytest.mark.parametrize("name", NAMES)
def test_other_names_are_as_they_are(tmp_path, name):
    ((cell,), ours) = read(labels_csv([name], [0], [0.5]), tmp_path / "labels.csv")
    assert cell == name or "\\" in cell  # what UTF-8 cannot hold is escaped
    assert ours == [name]


@pytest.mark.parametrize("number", [-5, "-5", "+5", "-1.5", "-2e-3", 0, 7, -(10**30), 2.5, None, True])
def test_numbers_stay_numbers(tmp_path, number):
    ((cell,), ours) = read(labels_csv([number], [0], [0.5]), tmp_path / "labels.csv")
    assert cell == str(number) == ours[0]


def test_semicolons_do_not_end_a_cell():
    """Where the comma is for decimals, spreadsheets split at semicolons."""
    text = labels_csv(["a;=1+1", "b\t=1+1"], [0, 1], [0.5, 0.5])
    assert [row[0] for row in csv.reader(text.splitlines()[1:], delimiter=";")] == [
        "a;=1+1,0,0.500000",
        "b\t=1+1,1,0.500000",
    ]


@given(st.lists(st.text(st.characters(), max_size=12), min_size=1, max_size=5))
@example(["=", "\\", "\\\ud800", "'", "\r", "", "\n\n"])
def test_every_name_comes_back(tmp_path_factory, names):
    path = tmp_path_factory.getbasetemp() / "labels.csv"
    n = len(names)
    cells, ours = read(labels_csv(names, range(n), np.linspace(0, 1, n)), path)
    assert ours == names
    assert all(map(is_safe, cells))
    _, clusters, confidence = read_labels(path, {"data": {"n": n}})
    assert clusters.tolist() == list(range(n))
    np.testing.assert_allclose(confidence, np.linspace(0, 1, n), atol=1e-6)


@pytest.fixture
def photos(tmp_path):
    """A folder of images whose names are formulas, bytes that are no text, and two lines."""
    names = [b"=1+1.png", b"-2.png", b"@x.png", b"a,b.png", b"\xff.png", b"two\nlines.png", b"sub/=1.png", b"+/x.png"]
    for i, name in enumerate(names):
        file = os.path.join(os.fsencode(tmp_path / "photos"), name)
        os.makedirs(os.path.dirname(file), exist_ok=True)
        with open(file, "wb") as stream:
            Image.new("RGB", (8, 8), (30 * i, 0, 0)).save(stream, "PNG")
    return tmp_path


def test_paths_still_lead_to_their_files(photos):
    data = open_data(str(photos / "photos"))
    assert {"./=1+1.png", "./-2.png", "./@x.png", "./+/x.png", "sub/=1.png", "\udcff.png"} <= set(data.ids)
    assert all((photos / "photos" / name).is_file() for name in data.ids)


def test_folders_with_any_names_go_the_whole_way(photos):
    words = ["fit", "photos", "-k", 2, "--method", "kmeans", "--image-size", 8, "--out", "run"]
    assert inside(*words, cwd=photos).returncode == 0
    ids, _, _ = Run.open(photos / "run").read_labels()
    assert all((photos / "photos" / name).is_file() for name in ids)
    assert inside("predict", "run", "photos", "--out", "new.csv", cwd=photos).returncode == 0
    assert (photos / "new.csv").read_bytes() == (photos / "run" / "labels.csv").read_bytes()
    code, _, said = surrounded(photos, undisturbed, "predict", "run", "photos")
    assert code == 0, said
    assert (photos / "out").read_bytes() == (photos / "new.csv").read_bytes()


def test_ids_of_tables_come_back(tmp_path):
    rows = "".join(f'"{name}",{i},{i % 3}\n' for i, name in enumerate(["=1", "-5", "@x", "a;b", "'q", "two\nlines"]))
    (tmp_path / "x.csv").write_text("id,a,b\n" + rows)
    assert inside("fit", "x.csv", "-k", 2, "--method", "kmeans", "--out", "run", cwd=tmp_path).returncode == 0
    assert Run.open(tmp_path / "run").read_labels()[0] == ["=1", "-5", "@x", "a;b", "'q", "two\nlines"]
    assert "\n'=1,0," in (tmp_path / "run" / "labels.csv").read_text().replace(",1,", ",0,")


def test_pandas_reads_and_writes_the_same_file(photos):
    """Every row once, paths that lead to their files, numbers as numbers; written again it is the same file."""
    words = ["fit", "photos", "-k", 2, "--method", "kmeans", "--image-size", 8, "--out", "run"]
    assert inside(*words, cwd=photos).returncode == 0
    path = photos / "run" / "labels.csv"
    table = pd.read_csv(path)
    assert table.columns.tolist()[:3] == ["id", "cluster", "confidence"]
    assert (table["cluster"].dtype.kind, table["confidence"].dtype.kind) == ("i", "f")
    ids, clusters, confidence = Run.open(photos / "run").read_labels()
    assert table["cluster"].tolist() == clusters.tolist()
    assert table["confidence"].tolist() == confidence.tolist()
    whole = [name for name in ids if "\udcff" not in name]  # pandas knows no names that are not UTF-8
    assert [name for name in table["id"] if "\\udcff" not in name] == whole
    assert all((photos / "photos" / name).is_file() for name in whole)
    assert table.to_csv(index=False, float_format="%.6f", lineterminator="\n") == path.read_text()
