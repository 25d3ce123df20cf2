"""Thousands of spoilt files: each is read and used, or refused by an InputError of one line; nothing else happens."""

import io
import json
import resource
import zipfile
from collections import Counter

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

import lsdc
from lsdc import LSDC, InputError, KMeans
from lsdc.data.files import open_data, read_labels
from mutations import bytes_of, joined, json_of, npy_of, parts
from test_cli import inside, refused

EXAMPLES = {
    "model bytes": 450,
    "model header": 450,
    "tensor header": 200,
    "config": 250,
    "config bytes": 100,
    "labels": 150,
    "metrics": 100,
    "checkpoint": 60,
    "csv": 250,
    "jsonl": 150,
    "txt": 50,
    "npy": 200,
    "npz": 200,
    "images": 400,
}
MOST_MEMORY = 2**20  # kilobytes that any of the tests may need beyond what was needed before
pytestmark = [
    pytest.mark.filterwarnings("ignore::lsdc.HealthWarning"),  # of fits on four samples
    pytest.mark.filterwarnings("ignore::hypothesis.errors.HypothesisWarning"),  # a failing file is shown at length
]


def fuzz(name, strategy, law):
    """Hold a law against as many spoilt files as are promised, the same ones on every machine."""
    seen = Counter()

    @settings(
        max_examples=EXAMPLES[name],
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def check(case):
        seen["cases"] += 1
        said = "nothing was wrong"
        try:
            law(case)
        except InputError as error:
            said = str(error)
            seen["refused"] += 1
        assert said.isprintable()
        assert 10 < len(said) < 2500

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    check()
    assert seen["cases"] >= EXAMPLES[name]
    assert seen["refused"] > EXAMPLES[name] // 10 or name == "metrics"  # lines that are none are left out
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MOST_MEMORY


def test_there_are_enough():
    assert sum(EXAMPLES.values()) >= 2000


VECTORS = np.random.default_rng(0).normal(size=(12, 3)).astype(np.float32)
PICTURES = np.random.default_rng(0).integers(0, 255, (8, 8, 8)).astype(np.uint8)
TEXTS = ["cat dog pet", "stock bond price", "dog cat fur", "price bond market"]
QUICK = {"epochs": 1, "width": 0.02, "pretext": "none", "batch_size": 4, "pool": 8, "random_state": 0}


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
    fuzz("model bytes", cases, loads(tmp_path / "model.safetensors"))


@pytest.mark.parametrize(("name", "which"), [("model header", 1), ("tensor header", 0)])
def test_headers_of_model_files(models, tmp_path, name, which):
    def spoilt(model):
        known = parts(model[0])
        changed = json_of(known[which]).map(lambda new: joined(*(new if i == which else known[i] for i in range(3))))
        return st.tuples(changed, st.just(model[1]))

    fuzz(name, st.sampled_from(models).flatmap(spoilt), loads(tmp_path / "model.safetensors"))


def commands(folder, name, write):
    """A law of run folders: every command either works or refuses in one line, and gives the file back."""
    path = folder / "run" / name
    whole = path.read_bytes()

    def law(case):
        try:
            path.write_bytes(write(case))
            for command in ("evaluate", "report"):
                result = inside(command, "run", cwd=folder)
                if result.returncode:
                    refused(result)
                    raise InputError(result.stderr.strip())
        finally:
            path.write_bytes(whole)

    return law


def test_configs(run):
    content = json.loads((run / "run" / "config.json").read_text())
    fuzz("config", json_of(content), commands(run, "config.json", lambda new: json.dumps(new).encode()))


@pytest.mark.parametrize(
    ("name", "file"), [("config bytes", "config.json"), ("labels", "labels.csv"), ("metrics", "metrics.jsonl")]
)
def test_files_of_a_run(run, name, file):
    cases = bytes_of((run / "run" / file).read_bytes())
    fuzz(name, cases, commands(run, file, lambda new: new))


def test_checkpoints(run):
    path = run / "run" / "checkpoint" / "clustering.safetensors"
    whole = path.read_bytes()
    known = parts(whole)
    headers = json_of(known[1]).map(lambda new: joined(known[0], new, known[2]))
    slots = json_of(known[0]).map(lambda new: joined(new, *known[1:]))
    kept = {file: file.read_bytes() for file in (run / "run").rglob("*") if file.is_file()}

    def law(content):
        try:
            path.write_bytes(content)
            result = inside("fit", "x.npy", "--out", "run", "--resume", cwd=run)
            if result.returncode == 2:
                refused(result)
                raise InputError(result.stderr.strip())
            assert result.returncode == 0 or (result.returncode == 1 and "smaller lr" in result.stderr)
        finally:
            for file, before in kept.items():
                file.write_bytes(before)

    fuzz("checkpoint", st.one_of(bytes_of(whole, head=3000), headers, slots), law)


def reads(path, **options):
    """A law of data files: what is read can be clustered."""

    def law(content):
        path.write_bytes(content)
        dataset = open_data(str(path), **options)
        KMeans(1, n_init=1, random_state=0).fit(dataset)

    return law


TABLE = "id,a,b,label\n" + "\n".join(f"r{i},{x:.3f},{y:.2e},{i % 2}" for i, (x, y, _) in enumerate(VECTORS)) + "\n"
LINES = "".join(json.dumps({"text": text, "id": i, "more": [1, {"a": None}]}) + "\n" for i, text in enumerate(TEXTS))


@pytest.mark.parametrize(("name", "content"), [("csv", TABLE), ("jsonl", LINES), ("txt", "\n".join(TEXTS))])
def test_texts(tmp_path, name, content):
    fuzz(name, bytes_of(content.encode()), reads(tmp_path / f"x.{name}"))


ROWS = {"data": [1.0, 2.0, 3.0], "indices": [0, 2, 1], "indptr": [0, 1, 2, 3], "shape": [3, 3], "format": "csr"}
MATRICES = [
    ROWS,
    {**ROWS, "format": "csc"},
    {**ROWS, "format": "bsr", "data": [[[1.0]], [[2.0]], [[3.0]]]},
    {"data": [1.0, 2.0, 3.0], "row": [0, 1, 2], "col": [0, 2, 1], "shape": [3, 3], "format": "coo"},
    {"data": [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], "offsets": [0, 1], "shape": [3, 3], "format": "dia"},
]


def saved(value):
    """The .npy file of whatever it is, without ever a pickle."""
    stream = io.BytesIO()
    try:
        np.save(stream, value, allow_pickle=False)
    except ValueError:
        np.save(stream, str(value))
    return stream.getvalue()


def zipped(files):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return stream.getvalue()


def test_arrays(tmp_path):
    law = reads(tmp_path / "x.npy")

    def both(content):
        law(content)
        read_labels(tmp_path / "x.npy")

    fuzz("npy", st.one_of(bytes_of(saved(VECTORS), head=80), npy_of(VECTORS.tobytes())), both)


def test_archives(tmp_path):
    streams = [io.BytesIO() for _ in range(3)]
    np.savez(streams[0], X=VECTORS, y=np.arange(12) % 2)
    np.savez_compressed(streams[1], X=VECTORS)
    sp.save_npz(streams[2], sp.csr_matrix(np.abs(VECTORS).round()))
    spoilt = st.sampled_from([stream.getvalue() for stream in streams]).flatmap(bytes_of)
    headers = npy_of(VECTORS.tobytes()).map(lambda array: zipped({"X.npy": array}))
    matrices = st.sampled_from(MATRICES).flatmap(json_of)
    indices = matrices.map(lambda new: zipped({f"{name}.npy": saved(value) for name, value in new.items()}))
    fuzz("npz", st.one_of(spoilt, headers, indices), reads(tmp_path / "x.npz"))


def test_images(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 255, (12, 10, 3)).astype(np.uint8)
    wholes = []
    for kind in ("PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP"):
        stream = io.BytesIO()
        Image.fromarray(pixels).save(stream, kind)
        wholes.append(stream.getvalue())
    (tmp_path / "photos").mkdir()
    Image.fromarray(pixels).save(tmp_path / "photos" / "good.png")

    def law(content):
        (tmp_path / "photos" / "x.png").write_bytes(content)
        dataset = open_data(str(tmp_path / "photos"), image_size=8)
        assert dataset.X.shape == (2, 8, 8, 3)

    fuzz("images", st.sampled_from(wholes).flatmap(lambda whole: bytes_of(whole, head=60)), law)
