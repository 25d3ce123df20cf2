"""What was read is said at the start of a fit, and kept in the run folder."""

import json

import numpy as np
import pytest
import scipy.sparse as sp
from PIL import Image

from lsdc.data.files import open_data
from lsdc.data.reading import Dataset
from lsdc.data.summary import in_one_line, summary
from lsdc.errors import InputError
from test_cli import inside, refused

KMEANS = ["-k", 2, "--method", "kmeans", "--out", "run"]


def said(X):
    return in_one_line(summary(Dataset("x", X)))


def test_figures_are_those_of_the_data():
    X = np.array([[0.0, 2], [0, 2], [-1, 3], [0, 9]])
    assert said(X) == "read: 4 dense vectors of 2, values from -1 to 9; 38% zeros; exact duplicates: 1"
    sparse = "read: 4 sparse vectors of 2, values from -1 to 9; 38% zeros; exact duplicates: 1"
    assert said(sp.csr_matrix(X)) == sparse
    assert said(["a", "bcd", "a", " "]) == "read: 4 texts of 1 to 3 characters; 25% of them empty; exact duplicates: 1"
    images = np.zeros((3, 9, 8, 3), np.uint8)
    assert said(images) == "read: 3 images of 3 x 9 x 8, values from 0 to 0; 100% zeros; exact duplicates: 2"


def test_a_run_keeps_what_was_read(tmp_path):
    (tmp_path / "x.csv").write_text("user_id,a,b,label\n" + "".join(f"{7 * i},{i % 5}.5,2.5,u\n" for i in range(20)))
    done = inside("fit", "x.csv", *KMEANS, cwd=tmp_path)
    assert "read: 20 dense vectors of 2, values from 0.5 to 4.5; 0% zeros; exact duplicates: 15" in done.stderr
    content = json.loads((tmp_path / "run" / "read.json").read_text())
    assert content["columns"] == {"features": ["a", "b"], "id": "user_id", "label": "label", "unused": []}
    assert (content["n"], content["kind"], content["duplicates"]) == (20, "dense vectors", 15)
    assert any("user_id" in note for note in content["notes"])
    again = inside("fit", "x.csv", *KMEANS, "--overwrite", cwd=tmp_path)
    assert again.returncode == 0


@pytest.fixture
def photos(tmp_path):
    folder = tmp_path / "photos"
    folder.mkdir()
    for i in range(12):
        Image.new("RGB", (9, 9), (20 * i, 0, 0)).save(folder / f"{i:02}.png")
    (folder / "03.png").write_bytes((folder / "03.png").read_bytes()[:40])
    (folder / "05.png").write_bytes(b"")
    return tmp_path


def test_images_that_cannot_be_read_are_listed_and_left_out(photos):
    done = inside("fit", "photos", *KMEANS, "--image-size", 9, cwd=photos)
    assert done.returncode == 0, done.stderr
    assert "left out, cannot be read: 2 images (03.png, 05.png); the full list is in run" in done.stderr
    skipped = json.loads((photos / "run" / "read.json").read_text())["skipped"]
    assert [entry["file"] for entry in skipped] == ["03.png", "05.png"]
    assert all("not a readable image" in entry["why"] for entry in skipped)
    labels = (photos / "run" / "labels.csv").read_text()
    assert len(labels.splitlines()) == 11
    predicted = inside("predict", "run", "photos", cwd=photos)
    assert predicted.stdout == labels
    assert "2 images (03.png, 05.png)" in predicted.stderr
    assert inside("evaluate", "run", cwd=photos).returncode == 0


def test_a_folder_of_nothing_but_broken_images_is_refused(photos):
    for i in range(12):
        (photos / "photos" / f"{i:02}.png").write_bytes(b"nothing")
    refused(
        inside("fit", "photos", *KMEANS, cwd=photos),
        "00.png: not a readable image",
        "the other 11 cannot be read either",
    )


def test_arrays_of_an_archive_are_chosen_by_name(tmp_path):
    first, second = np.random.default_rng(0).random((2, 20, 3))
    np.savez(tmp_path / "x.npz", train=first, test=second, names=np.array(["a", "b"]))
    with pytest.raises(
        InputError, match=r"no array is named 'X'; it has train \(20, 3\), .*; choose one of them \(array=...\)"
    ):
        open_data(str(tmp_path / "x.npz"))
    with pytest.raises(InputError, match=r"no array 'tset'; it has train \(20, 3\), test \(20, 3\), names"):
        open_data(str(tmp_path / "x.npz"), array="tset")
    with pytest.raises(InputError, match="must be an array of numbers"):
        open_data(str(tmp_path / "x.npz"), array="names")
    assert np.array_equal(open_data(str(tmp_path / "x.npz"), array="test").X, second)
    done = inside("fit", "x.npz", "--array", "test", *KMEANS, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert inside("predict", "run", "x.npz", cwd=tmp_path).stdout == (tmp_path / "run" / "labels.csv").read_text()
    assert inside("evaluate", "run", cwd=tmp_path).returncode == 0
    other = inside("predict", "run", "x.npz", "--array", "train", cwd=tmp_path)
    assert other.returncode == 0
    assert other.stdout.count("\n") == 21
