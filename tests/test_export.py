"""What leaves a run: folders of images, arrays, tables, ONNX; and what Python users get beside labels."""

import os
import shutil
import unicodedata
from io import StringIO

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from PIL import Image
from rich.console import Console

from lsdc import FINCH, LSDC, InputError, KMeans, ProgressBar, load
from lsdc.cli.export import safe_name
from lsdc.methods.assignment import best_two
from lsdc.methods.onnx import export_onnx
from lsdc.report.estimate import Clock, planned
from lsdc.report.terminal import Live
from lsdc.training.context import Progress
from test_cli import inside, refused

NAMES = ["a.png", "b/a.png", "b__a.png", "it's, odd;$(x).png"]


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """Dark and bright pictures, some with odd names, and a run of K-means on them."""
    folder = tmp_path_factory.mktemp("photos")
    rng = np.random.default_rng(0)
    for i, name in enumerate([*NAMES, *(f"{i}.png" for i in range(20))]):
        path = folder / "in" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pixels = rng.integers(0, 60, (16, 16)) + 180 * (i % 2)
        Image.fromarray(pixels.astype(np.uint8)).save(path)
    done = inside("fit", "in", "-k", "2", "--method", "kmeans", "--image-size", "16", "--out", "run", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder


def labels(folder):
    return pd.read_csv(folder / "run" / "labels.csv", dtype={"id": str}).set_index("id")["cluster"]


@pytest.mark.parametrize("how", [(), ("--copy",)])
def test_images_are_put_into_a_folder_a_cluster(photos, tmp_path, how):
    done = inside("export", "run", "--folders", tmp_path / "out", *how, cwd=photos)
    assert done.returncode == 0, done.stderr
    placed = [file for file in (tmp_path / "out").rglob("*") if not file.is_dir()]
    assert len(placed) == 24
    assert all(file.is_symlink() == (not how) for file in placed)
    found = {(file.parent.name, file.read_bytes()) for file in placed}
    assert found == {(f"cluster-{c}", (photos / "in" / name).read_bytes()) for name, c in labels(photos).items()}
    refused(inside("export", "run", "--folders", tmp_path / "out", cwd=photos), "already exists")


def test_names_that_are_not_utf_8_are_written_as_escapes(photos, tmp_path):
    shutil.copytree(photos / "in", tmp_path / "in")
    shutil.copy(tmp_path / "in" / "a.png", os.fsencode(tmp_path / "in") + b"/ol\xe9.png")
    words = ("fit", "in", "-k", "2", "--method", "kmeans", "--image-size", "16", "--out", "run")
    assert inside(*words, cwd=tmp_path).returncode == 0
    done = inside("export", "run", "--features", "f.parquet", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "ol\\udce9.png" in pq.read_table(tmp_path / "f.parquet")["id"].to_pylist()
    assert "ol\\udce9.png" in labels(tmp_path).index


def test_names_of_files_become_harmless_and_stay_apart(photos, tmp_path):
    assert safe_name("b/a.png") == "b__a.png"
    assert safe_name("it's, odd;$(x).png") == "it_s, odd_(x).png"
    assert safe_name("../..") == "__"
    assert len(safe_name("x" * 500 + ".png")) <= 120
    assert len(safe_name("写真" * 60 + ".png").encode()) < 255
    assert safe_name("z\u0301.png") == safe_name("\u017a.png") == "\u017a.png"


def test_names_that_differ_in_case_stay_apart_on_disks_that_ignore_it(tmp_path):
    """Copied to such a disk, one of them would replace the other without a word."""
    rng = np.random.default_rng(0)
    (tmp_path / "in").mkdir()
    for name in ("Cat.png", "cat.PNG", "CAT.png", "z\u0301.png", "\u0179.png", *(f"{i}.png" for i in range(5))):
        Image.fromarray(rng.integers(0, 255, (8, 8)).astype(np.uint8)).save(tmp_path / "in" / name)
    words = ("fit", "in", "-k", "1", "--method", "kmeans", "--image-size", "8", "--out", "run")
    assert inside(*words, cwd=tmp_path).returncode == 0
    assert inside("export", "run", "--folders", "out", "--copy", cwd=tmp_path).returncode == 0
    names = [unicodedata.normalize("NFC", file.name).casefold() for file in (tmp_path / "out" / "cluster-0").iterdir()]
    assert len(set(names)) == len(names) == 10


def test_labels_that_name_other_files_are_refused(photos, tmp_path):
    shutil.copytree(photos / "run", tmp_path / "run")
    path = tmp_path / "run" / "labels.csv"
    path.write_text(path.read_text().replace("a.png", "../../a.png", 1))
    done = inside("export", tmp_path / "run", "--folders", tmp_path / "out", cwd=photos)
    refused(done, "outside")
    assert not (tmp_path / "out").exists()


def test_probabilities_and_features_are_those_of_the_model(photos, tmp_path):
    p, f = tmp_path / "p.parquet", tmp_path / "f.npy"
    done = inside("export", "run", "--probabilities", p, "--features", f, "--html", tmp_path / "r.html", cwd=photos)
    assert done.returncode == 0, done.stderr
    table = pq.read_table(p).to_pandas().set_index("id")
    assert table.columns.tolist() == ["cluster_0", "cluster_1"]
    assert (table.to_numpy().argmax(1) == labels(photos)[table.index]).all()
    assert np.load(f).shape == (24, 3 * 16 * 16)
    assert "<html" in (tmp_path / "r.html").read_text()


def test_what_cannot_be_exported_is_said(photos, tmp_path):
    refused(inside("export", "run", cwd=photos), "nothing to export")
    refused(inside("export", "run", "--features", tmp_path / "f.txt", cwd=photos), ".npy or .parquet")
    model = FINCH(2).fit(np.random.default_rng(0).normal(size=(20, 3)))
    with pytest.raises(InputError, match="finch cannot be exported"):
        export_onnx(model, tmp_path / "m.onnx")


def test_the_model_goes_to_onnx_and_back(photos, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    done = inside("export", "run", "--onnx", tmp_path / "m.onnx", cwd=photos)
    assert done.returncode == 0, done.stderr
    model, x = load(photos / "run"), np.random.default_rng(1).integers(0, 255, (5, 3, 16, 16)).astype(np.uint8)
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    p, f = session.run(None, {"x": x.astype(np.float32)})
    np.testing.assert_allclose(p, model.predict_proba(x), atol=1e-4)
    np.testing.assert_allclose(f, model.transform(x), atol=1e-4)


@pytest.mark.parametrize("shape", [(60, 40), (60, 10, 10)])
def test_networks_go_to_onnx_with_their_scaling(shape, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    X = np.random.default_rng(0).normal(50, 10, shape).astype(np.float32)
    X[::2] += 60
    few = {"width": 0.1, "pretext_plan": {"epochs": 1}} if len(shape) > 2 else {}
    model = LSDC(2, epochs=1, n_init=2, random_state=0, **few).fit(X)
    assert export_onnx(model, tmp_path / "m.onnx") <= 1e-4
    x = X[:7, None] if len(shape) > 2 else X[:7]
    p, _ = onnxruntime.InferenceSession(tmp_path / "m.onnx").run(None, {"x": x})
    np.testing.assert_allclose(p, model.predict_proba(X[:7]), atol=1e-4)


def test_the_second_best_cluster_is_the_second_largest_probability():
    found = best_two(np.array([[0.2, 0.5, 0.3], [0.6, 0.4, 0.0]], np.float32))
    assert (found.labels.tolist(), found.second.tolist()) == ([1, 0], [2, 1])
    assert found.second_confidence.tolist() == pytest.approx([0.3, 0.4])
    assert best_two(np.ones((3, 1), np.float32)).runner_up() == {}


def test_data_frames_keep_their_index():
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(30, 3)), index=[f"row {i}" for i in range(30)])
    X.columns = list("abc")
    f = KMeans(2, random_state=0).set_output(transform="pandas").fit(X).transform(X)
    assert f.index.tolist() == X.index.tolist()
    assert f.columns.tolist() == ["kmeans0", "kmeans1", "kmeans2"]


def test_a_callback_sees_every_epoch_and_the_bar_is_one(capsys):
    seen, X = [], np.random.default_rng(0).normal(size=(40, 3))
    LSDC(2, epochs=2, random_state=0).fit(X, callback=seen.append)
    assert [(step.stage, step.epoch) for step in seen if step.record] == [
        (stage, epoch) for stage in ("starts", "clustering") for epoch in (1, 2)
    ]
    with ProgressBar() as bar:
        LSDC(2, epochs=2, random_state=0).fit(X, callback=bar)
    assert "clustering: epoch 2/2" in capsys.readouterr().err
    LSDC(2, epochs=2, random_state=0).fit_predict(X, verbose=True)
    said = capsys.readouterr().err
    assert "clustering: epoch 2/2" in said
    assert "left in all" not in said
    with pytest.raises(InputError, match="verbose"):
        LSDC(2, epochs=2).fit(X, verbose=True, callback=print)


@pytest.fixture
def now(monkeypatch):
    """The time that the estimate sees; it passes as the test says."""
    now = [0.0]
    monkeypatch.setattr("lsdc.report.estimate.time.monotonic", lambda: now[0])
    return now


def test_without_a_plan_no_total_time_is_claimed(now):
    clock = Clock({})
    clock.update(Progress("pretext", 1, 100, 0, 0, {"loss": 0.0}))
    now[0] = 10.0
    clock.update(Progress("pretext", 2, 100, 0, 0, {"loss": 0.0}))
    assert clock.in_words() == ""


def test_the_time_that_is_left_counts_all_stages(now):
    now[0] = 100.0
    clock = Clock({"pretext": 10.0, "clustering": 30.0})
    clock.update(Progress("pretext", 1, 2, 0, 5))
    assert clock.left() is None
    now[0] += 5
    clock.update(Progress("pretext", 1, 2, 5, 5))
    assert clock.left() == pytest.approx(35)
    now[0] += 15
    clock.update(Progress("clustering", 1, 3, 0, 0, {"loss": 0.0}))
    clock.update(Progress("pretext", 2, 2, 0, 0, {"loss": 0.0}))
    assert clock.left() == pytest.approx(20)
    assert clock.in_words() == "about 20 s left in all"


def test_what_comes_before_the_first_step_is_not_taken_for_its_pace(now):
    """A graph of all samples may take as long as all the epochs that follow."""
    clock = Clock({"starts": 10.0, "clustering": 10.0})
    now[0] = 60.0
    clock.update(Progress("starts", 1, 10, 0, 0, {"loss": 0.0}))
    assert clock.left() is None
    now[0] = 61.0
    clock.update(Progress("starts", 2, 10, 0, 0, {"loss": 0.0}))
    assert clock.left() == pytest.approx(18)


def test_a_stage_done_again_takes_as_long_as_the_first_time(now):
    clock = Clock({"clustering": 30.0})
    for epoch in (1, 2):
        clock.update(Progress("clustering", epoch, 2, 0, 0, {"loss": 0.0}))
        now[0] += 15.0
    clock.update(Progress("clustering-2", 1, 2, 0, 0, {"loss": 0.0}))
    assert clock.left() == pytest.approx(15)


def test_lines_in_a_log_are_not_broken():
    said = StringIO()
    bar = Live(Console(file=said, width=40))
    record = {"loss": 0.25, "shares": [0.5, 0.5], "alive": 2, "confident": 0.5}
    bar(Progress("clustering", 1, 1, 0, 0, record))
    assert said.getvalue() == "clustering: epoch 1/1 · loss 0.2500 · 2/2 clusters alive · 50% confident\n"


def test_a_run_that_goes_on_counts_its_own_work_only(now):
    clock = Clock({"pretext": 10.0, "clustering": 30.0})
    clock.update(Progress("clustering", 3, 4, 0, 10))
    now[0] = 6.0
    clock.update(Progress("clustering", 3, 4, 10, 10))
    assert clock.left() == pytest.approx(6)


def test_the_stages_of_every_kind_of_fit_are_planned():
    rng = np.random.default_rng(0)
    settings = LSDC(3).resolved((1, 28, 28), 5000)
    assert list(planned(settings, 5000)) == ["pretext", "starts", "clustering", "choice", "agreement"]
    assert list(planned(LSDC(3).resolved((64,), 5000), 5000)) == ["starts", "clustering"]
    assert list(planned(LSDC(3, neighbours="batch").resolved((64,), 5000), 5000)) == ["pretext", "clustering"]
    assert planned(KMeans(3).fit(rng.normal(size=(9, 2))).settings_, 9) == {}


def test_a_disk_without_room_for_the_model_still_gets_labels(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("lsdc.methods.saving.write_tensors", full)
    X = np.random.default_rng(0).normal(size=(20, 2))
    with pytest.raises(InputError, match="cannot write the model"):
        KMeans(2, random_state=0).fit(X, run=tmp_path / "run")
    written = pd.read_csv(tmp_path / "run" / "labels.csv")
    assert written["cluster"].tolist() == KMeans(2, random_state=0).fit_predict(X).tolist()


def test_settings_are_listed_with_their_meanings(tmp_path):
    done = inside("list", "settings", "--method", "kmeans", cwd=tmp_path)
    assert "Starts from k-means++" in " ".join(done.stdout.split())


def test_flags_are_shown_without_a_value(tmp_path):
    done = inside("fit", "--help", cwd=tmp_path)
    assert "--resume" in done.stdout
    assert "<bool>" not in done.stdout
    assert "BOOLEAN" not in done.stdout
    assert "Examples:" in done.stdout


@pytest.fixture
def vectors(tmp_path):
    """Two groups of vectors in a file, and a run of K-means on them."""
    X = np.random.default_rng(0).normal(size=(20, 3)) + 9 * (np.arange(20) % 2)[:, None]
    np.save(tmp_path / "x.npy", X)
    assert inside("fit", "x.npy", "-k", 2, "--method", "kmeans", "--out", "run", cwd=tmp_path).returncode == 0
    return tmp_path


OVER = {
    "predict": ("predict", "run", "x.npy", "--out", "x.npy"),
    "a link": ("predict", "run", "x.npy", "--out", "link.npy"),
    "features": ("export", "run", "--features", "x.npy"),
    "probabilities": ("export", "run", "--probabilities", "x.npy"),
    "labels": ("predict", "run", "x.npy", "--out", "run/labels.csv"),
    "config": ("export", "run", "--html", "run/config.json"),
    "model": ("export", "run", "--onnx", "run/model.safetensors"),
}


@pytest.mark.parametrize("what", OVER)
def test_results_are_never_written_over_the_data_or_the_run(vectors, what):
    (vectors / "link.npy").symlink_to("x.npy")
    before = {file: file.read_bytes() for file in vectors.rglob("*") if file.is_file()}
    refused(inside(*OVER[what], cwd=vectors), "choose another file")
    assert before == {file: file.read_bytes() for file in vectors.rglob("*") if file.is_file()}


def test_the_report_of_a_run_may_be_written_again(vectors):
    assert inside("export", "run", "--html", "run/report.html", cwd=vectors).returncode == 0


def test_folders_are_made_beside_what_others_have_there(photos, tmp_path):
    (tmp_path / ".out.part").mkdir()
    (tmp_path / ".out.part" / "precious").write_text("mine")
    assert inside("export", "run", "--folders", tmp_path / "out", cwd=photos).returncode == 0
    assert (tmp_path / ".out.part" / "precious").read_text() == "mine"
    assert sorted(file.name for file in tmp_path.iterdir()) == [".out.part", "out"]
