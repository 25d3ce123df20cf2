"""Damaged models and run folders: each is read and used, or refused by an InputError of one line; nothing else."""

import json

import numpy as np
import pytest
from hypothesis import strategies as st

import lsdc
from fuzzing import EXAMPLES, fuzz
from lsdc import LSDC, InputError, KMeans
from mutations import bytes_of, joined, json_of, parts
from test_cli import inside, refused

pytestmark = [
    pytest.mark.filterwarnings("ignore::lsdc.HealthWarning"),  # of fits on four samples
    pytest.mark.filterwarnings("ignore::hypothesis.errors.HypothesisWarning"),  # a failing file is shown at length
]
VECTORS = np.random.default_rng(0).normal(size=(12, 3)).astype(np.float32)
PICTURES = np.random.default_rng(0).integers(0, 255, (8, 8, 8)).astype(np.uint8)
TEXTS = ["cat dog pet", "stock bond price", "dog cat fur", "price bond market"]
QUICK = {"epochs": 1, "width": 0.02, "pretext": "none", "batch_size": 4, "pool": 8, "random_state": 0}
COMMANDS = (
    ("evaluate", "run"),
    ("report", "run"),
    ("predict", "run", "x.npy"),
    ("fit", "x.npy", "--out", "run", "--resume"),
)


def test_there_are_enough():
    assert sum(EXAMPLES.values()) >= 2000


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Small models of every kind, as the bytes of their files, with samples they can predict."""
    fitted = [
        (KMeans(2, n_init=1, random_state=0).fit(VECTORS), VECTORS),
        (KMeans(2, n_init=1, random_state=0).fit(TEXTS), TEXTS),
        (LSDC(2, **QUICK).fit(VECTORS), VECTORS),
        (LSDC(2, **QUICK).fit(PICTURES), PICTURES),
    ]
    path = tmp_path_factory.mktemp("models") / "model.safetensors"
    result = []
    for model, X in fitted:
        model.save(path)
        result.append((path.read_bytes(), X))
    return result


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A small finished run, by the command line."""
    folder = tmp_path_factory.mktemp("run")
    np.save(folder / "x.npy", VECTORS)
    quick = [f"--set={key}={value}" for key, value in QUICK.items() if key != "random_state"]
    assert inside("fit", "x.npy", "-k", 2, *quick, "--set=epochs=2", "--out", "run", cwd=folder).returncode == 0
    return folder


def loads(path):
    """A law of model files: what is loaded predicts finite probabilities."""

    def law(case):
        content, X = case
        path.write_bytes(content)
        model = lsdc.load(path)
        p = model.predict_proba(X)
        assert p.shape == (len(X), model.n_clusters)
        assert np.isfinite(p).all()

    return law


def test_model_files(models, tmp_path):
    cases = st.sampled_from(models).flatmap(lambda m: st.tuples(bytes_of(m[0], head=6000), st.just(m[1])))
    fuzz("model bytes", cases, loads(tmp_path / "model.safetensors"), lambda broken: [(broken, m[1]) for m in models])


@pytest.mark.parametrize(("name", "which"), [("model header", 1), ("tensor header", 0)])
def test_headers_of_model_files(models, tmp_path, name, which):
    def damaged(model):
        known = parts(model[0])
        changed = json_of(known[which]).map(lambda new: joined(*(new if i == which else known[i] for i in range(3))))
        return st.tuples(changed, st.just(model[1]))

    law = loads(tmp_path / "model.safetensors")
    fuzz(name, st.sampled_from(models).flatmap(damaged), law, lambda broken: [(broken, m[1]) for m in models])


def commands(folder, name):
    """A law of run folders: a command either works or refuses in one line; then the run is as it was."""
    kept = {file: file.read_bytes() for file in (folder / "run").rglob("*") if file.is_file()}

    def law(case):
        content, words = case
        try:
            (folder / "run" / name).write_bytes(content)
            result = inside(*words, cwd=folder)
            if result.returncode == 2:
                refused(result)
                raise InputError(result.stderr.strip())
            assert result.returncode == 0 or (result.returncode == 1 and "try a smaller lr" in result.stderr)
        finally:
            for file, content in kept.items():
                file.write_bytes(content)

    return law


def test_configs(run):
    content = json.loads((run / "run" / "config.json").read_text())
    damaged = json_of(content).map(lambda new: json.dumps(new).encode())
    cases = st.tuples(damaged, st.sampled_from(COMMANDS))
    fuzz("config", cases, commands(run, "config.json"), lambda broken: [(broken, words) for words in COMMANDS])


@pytest.mark.parametrize(
    ("name", "file", "words"),
    [
        ("config bytes", "config.json", COMMANDS),
        ("labels", "labels.csv", COMMANDS[:2]),
        ("metrics", "metrics.jsonl", COMMANDS[1:2]),
    ],
)
def test_files_of_a_run(run, name, file, words):
    damaged = bytes_of((run / "run" / file).read_bytes())
    cases = st.tuples(damaged, st.sampled_from(words))
    fuzz(name, cases, commands(run, file), lambda broken: [(broken, command) for command in words])


def test_checkpoints(run):
    whole = (run / "run" / "checkpoint" / "clustering.safetensors").read_bytes()
    known = parts(whole)
    headers = json_of(known[1]).map(lambda new: joined(known[0], new, known[2]))
    slots = json_of(known[0]).map(lambda new: joined(new, *known[1:]))
    damaged = st.one_of(bytes_of(whole, head=3000), headers, slots)
    law = commands(run, "checkpoint/clustering.safetensors")
    fuzz("checkpoint", st.tuples(damaged, st.just(COMMANDS[3])), law, lambda broken: [(broken, COMMANDS[3])])
