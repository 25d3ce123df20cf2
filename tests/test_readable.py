"""What is written can be read: whatever was fitted, set or thrown at it, a file that is there is a file that loads."""

import json
import os

import numpy as np
import pytest
import torch

from attacks import VECTORS
from lsdc import InputError, KMeans, load
from lsdc.data.files import open_data
from lsdc.methods import METHODS
from lsdc.runs.checkpoint import Checkpoint
from lsdc.runs.tensors import write_tensors
from lsdc.runs.untrusted import JSON_BYTES
from lsdc.training.health import examine, thinned
from victims import exit_code_of

IMAGES = np.random.default_rng(0).random((40, 8, 8)).astype(np.float32)
TEXTS = [f"{'apples pears' if i % 2 else 'cars trains'} {i} {'x' * 40_000}{i:05d}" for i in range(2000)]


def small(name):
    """A method of which little is asked."""
    wanted = {"epochs": 1, "width": 0.05, "pretext_plan": {"epochs": 1}, "random_state": 0}
    known = METHODS[name]().get_params()
    return METHODS[name](3, **{key: value for key, value in wanted.items() if key in known})


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", METHODS)
def test_what_is_set_after_a_fit_is_not_what_was_fitted(tmp_path, name):
    X = VECTORS if "dense vectors" in METHODS[name].takes else IMAGES
    model = small(name).fit(X)
    model.set_params(n_clusters=5).save(tmp_path / "m.safetensors")
    again = load(tmp_path / "m.safetensors")
    assert again.n_clusters == 3
    assert (again.predict_proba(X) == model.predict_proba(X)).all()
    again.set_params(n_clusters=7).save(tmp_path / "n.safetensors")
    assert load(tmp_path / "n.safetensors").n_clusters == 3


def test_words_as_long_as_files_are_no_words(tmp_path):
    """2,000 blobs of 40,000 letters once made a header of 80 MB, and a model that nobody could load."""
    model = KMeans(2, random_state=0).fit(TEXTS)
    assert max(map(len, model.words_.words)) < 40
    model.save(tmp_path / "m.safetensors")
    assert (load(tmp_path / "m.safetensors").predict(TEXTS) == model.labels_).all()


def test_long_histories_of_many_clusters_can_be_read(tmp_path):
    n, history = 10_000, []
    shares = np.random.default_rng(0).dirichlet(np.ones(n)).tolist()
    for epoch in range(400):
        record = {"stage": "clustering", "epoch": epoch + 1, "loss": 1 / 3, "shares": shares}
        history = thinned([*history, record | examine(record, history, 10**9)])
    assert [record["epoch"] for record in history] == list(range(1, 401))
    assert "shares" in history[-1]
    assert "shares" in history[-10]
    content = Checkpoint({"w": torch.zeros(3)}, {}, history).to_bytes({"stage": "clustering"})
    assert int.from_bytes(content[:8], "little") < JSON_BYTES // 2
    (tmp_path / "c.safetensors").write_bytes(content)
    assert Checkpoint.read(tmp_path / "c.safetensors")[0].history == json.loads(json.dumps(history))


def test_short_histories_keep_all_they_know():
    history = [{"epoch": epoch, "shares": [0.5, 0.5]} for epoch in range(1000)]
    assert thinned(history) == history


def test_a_header_that_cannot_be_read_is_not_written(tmp_path):
    with pytest.raises(InputError, match=r"history is too long to be read back: .* of 67,108,864 at most"):
        write_tensors(tmp_path / "t", {"w": torch.zeros(1)}, {"a": 1, "history": "x" * JSON_BYTES})
    assert not list(tmp_path.iterdir())


def test_names_that_no_model_has_room_for_are_refused_before_the_fit(tmp_path):
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame(VECTORS, columns=[f"{i}{'n' * 4_000_000}" for i in range(5)])
    with pytest.raises(InputError, match=r"X has 5 columns whose names take 20,\d+,\d+ bytes"):
        KMeans(2).fit(X, run=tmp_path / "run")
    assert not (tmp_path / "run" / "config.json").exists()


def test_a_model_that_is_not_finite_is_not_written(tmp_path):
    model = KMeans(2, random_state=0).fit(VECTORS)
    model.spec_ = type(model.spec_)(model.spec_.shape, model.spec_.offset, torch.tensor(torch.inf))
    with pytest.raises(InputError, match=r"m.safetensors: cannot write the model \(scale holds values that are not"):
        model.save(tmp_path / "m.safetensors")
    assert not list(tmp_path.iterdir())


def damage(*paths):
    """Load a model and its data, then overwrite their files in place and cut them short."""
    model, X = load(paths[0]), open_data(str(paths[1])).X
    before = model.predict(X)
    for path in paths:
        with open(path, "r+b") as file:
            length = file.seek(0, 2)
            file.seek(length // 3)
            file.write(os.urandom(length // 2))
            file.flush()
            assert (model.predict(X) == before).all()
            file.truncate(64)
    assert (model.predict(X) == before).all()


@pytest.mark.parametrize("name", ["finch", "kmeans", "dec"])
@pytest.mark.filterwarnings("ignore")
def test_a_loaded_model_and_its_data_do_not_depend_on_their_files(tmp_path, name):
    """Overwritten in place and cut short, in a process that a mapped file would end by SIGBUS."""
    X = np.random.default_rng(0).normal(size=(3000, 5))
    np.save(tmp_path / "x.npy", X)
    small(name).fit(X).save(tmp_path / "m.safetensors")
    assert exit_code_of(damage, tmp_path / "m.safetensors", tmp_path / "x.npy") == 0
