"""What surrounds a fit and must not matter: PyTorch's modes, terminals, names of files, other people's runs."""

import datetime
import json
import shutil
import sys

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from threadpoolctl import threadpool_limits

from attacks import VECTORS
from lsdc import LSDC, InputError, KMeans, load
from lsdc.experiments.table import SCORED, latex
from lsdc.training.modes import LITTLE, threads_for
from test_cli import inside, refused
from test_readable import small
from victims import surrounded

MODES = {
    "no_grad": torch.no_grad,
    "inference_mode": torch.inference_mode,
    "autocast": lambda: torch.autocast("cpu", torch.bfloat16),
}


@pytest.fixture
def double():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.fixture(scope="module")
def expected():
    return {name: small(name).fit(VECTORS).predict_proba(VECTORS) for name in ("lsdc", "dec", "finch")}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["lsdc", "dec", "finch"])
def test_a_mode_of_the_caller_changes_nothing(tmp_path, expected, mode, name):
    with MODES[mode]():
        model = small(name).fit(VECTORS)
        assert (model.predict_proba(VECTORS) == expected[name]).all()
        model.save(tmp_path / "m.safetensors")
        assert (load(tmp_path / "m.safetensors").predict_proba(VECTORS) == expected[name]).all()
        assert torch.is_inference_mode_enabled() == (mode == "inference_mode")
        assert torch.is_autocast_enabled("cpu") == (mode == "autocast")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["lsdc", "dec", "finch"])
def test_another_default_precision_changes_nothing(tmp_path, expected, double, name):
    model = small(name).fit(VECTORS)
    assert (model.predict_proba(VECTORS) == expected[name]).all()
    model.save(tmp_path / "m.safetensors")
    assert (load(tmp_path / "m.safetensors").predict_proba(VECTORS) == expected[name]).all()
    assert torch.get_default_dtype() == torch.float64


def test_tables_of_dates_are_refused():
    pandas = pytest.importorskip("pandas")
    days = pandas.date_range("2024-01-01", periods=10)
    frames = (
        pandas.DataFrame({"a": days}),
        pandas.DataFrame({"a": days, "b": range(10)}),
        pandas.DataFrame({"a": [datetime.date(2024, 1, 1 + i) for i in range(10)], "b": range(10)}),
    )
    for frame in frames:
        with pytest.raises(InputError, match=r"columns of X that do not hold numbers: a; drop them, or turn"):
            KMeans(2).fit(frame)


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    """A comparison of data whose name holds dollars and a line end."""
    folder = tmp_path_factory.mktemp("compared")
    name = "cost$5_vs_\n$6.npz"
    np.savez(folder / name, X=VECTORS, y=np.arange(40) % 2)
    words = ("compare", name, "--methods", "kmeans", "--seeds", 1, "--jobs", 1, "--out", "out")
    return folder, words, inside(*words, cwd=folder)


def test_names_with_dollars_and_line_ends(compared):
    folder, _, done = compared
    assert done.returncode == 0, done.stderr
    assert (folder / "out" / "compare.svg").exists()
    comment, table, *_ = (folder / "out" / "compare.tex").read_text().splitlines()
    assert comment.startswith(r"% cost$5_vs_\n$6")
    assert table.startswith(r"\begin{tabular}")
    assert latex("t", SCORED, []).startswith("% t;")


ALTERED = {
    "seconds": "long",
    "alive": None,
    "sizes": "many",
    "peak_mb": [1],
    "title": 7,
    "n": 41,
    "scores": {"acc": 0.5, "nmi": 0.5, "ari": 0.5, "kmeans_features_acc": "high"},
    "confusion": [[1, 2], [3]],
    "history": [1],
    "config": [],
}


@pytest.mark.parametrize("key", ALTERED)
def test_altered_results_are_refused(compared, tmp_path, key):
    folder, words, _ = compared
    shutil.copytree(folder, tmp_path / "mine")
    file = tmp_path / "mine" / "out" / "cells" / "kmeans-seed0.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), key: ALTERED[key]}))
    refused(inside(*words, cwd=tmp_path / "mine"), "kmeans-seed0.json: not a result that lsdc wrote")


def without_letters():
    """What PYTHONIOENCODING=latin-1 does."""
    sys.stdout.reconfigure(encoding="latin-1")
    sys.stderr.reconfigure(encoding="latin-1", errors="backslashreplace")


def test_terminals_that_lack_a_letter(tmp_path):
    (tmp_path / "写真").mkdir()
    np.save(tmp_path / "写真" / "x.npy", VECTORS)
    words = ("fit", "写真/x.npy", "-k", 3, "--method", "kmeans", "--out", "写真/run")
    code, out, said = surrounded(tmp_path, without_letters, *words)
    assert code == 0, said
    assert r"run folder: \u5199\u771f/run" in out


def test_control_characters_of_a_strangers_run_stay_in_it(tmp_path):
    np.savez(tmp_path / "d.npz", X=VECTORS, y=np.arange(40) % 2)
    assert inside("fit", "d.npz", "-k", 2, "--method", "kmeans", "--out", "run", cwd=tmp_path).returncode == 0
    (tmp_path / "d\x1b]0;owned\x07.npz").write_bytes((tmp_path / "d.npz").read_bytes())
    path = tmp_path / "run" / "config.json"
    config = json.loads(path.read_text())
    config["data"]["source"] = "d\x1b]0;owned\x07.npz"
    path.write_text(json.dumps(config))
    for words in (("evaluate", "run"), ("report", "run")):
        done = inside(*words, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert not {"\x1b", "\x07"} & {*done.stdout, *done.stderr}


@pytest.mark.filterwarnings("ignore::lsdc.errors.HealthWarning")
def test_small_images_give_the_same_bits_with_any_number_of_threads():
    """One thread is faster for them, so the others would only round differently; the caller gets its threads back."""
    X, before = load_digits().images[:200].astype(np.float32), torch.get_num_threads()
    found = []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            with threadpool_limits(threads):
                model = LSDC(10, random_state=0, epochs=1, width=0.1, pretext_plan={"epochs": 1}).fit(X)
            found.append((model.labels_, model.network_.state_dict()))
            assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
    for labels, weights in found[1:]:
        assert np.array_equal(labels, found[0][0])
        assert all(torch.equal(weights[name], value) for name, value in found[0][1].items())


def test_threads_are_given_back_when_the_last_fit_ends():
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        with threads_for(LITTLE), threads_for(LITTLE + 1):
            first, second = threads_for(1), threads_for(1)
            first.__enter__()
            second.__enter__()
            first.__exit__(None, None, None)
            assert torch.get_num_threads() == 1
            second.__exit__(None, None, None)
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 2
        with threads_for(LITTLE + 1):
            assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
