"""Model files that were made to do harm are refused in one line, before memory is taken or anything runs."""

import json
import struct

import numpy as np
import pytest

from attacks import BIAS, F4, HUGE, QUICK, VECTORS, edited, memory, reject, retyped, sparse_file
from lsdc import FINCH, LSDC, InputError, KMeans, load

pytestmark = pytest.mark.filterwarnings("ignore::lsdc.HealthWarning")  # one epoch leaves clusters unborn


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """The files of good models: LSD-C, K-means, K-means of texts, and FINCH, which finds the number of clusters."""
    path = tmp_path_factory.mktemp("models")
    LSDC(3, **QUICK).fit(VECTORS).save(path / "lsdc")
    KMeans(3, random_state=0, n_init=1).fit(VECTORS).save(path / "kmeans")
    KMeans(2, random_state=0, n_init=1).fit(["cat dog", "bank loan", "dog cat", "loan bank"]).save(path / "texts")
    FINCH(random_state=0).fit(VECTORS).save(path / "finch")
    return {file.name: file.read_bytes() for file in path.iterdir()}


def test_good_files_are_good(saved, tmp_path):
    """The same edits with the values that were there change nothing."""
    for name, content in saved.items():
        (tmp_path / name).write_bytes(edited(content, format=1))
        assert load(tmp_path / name).n_clusters in (2, 3, None)


@pytest.mark.parametrize("length", [HUGE, 2**63, 2**64 - 1, 2**27])
def test_headers_of_ten_gigabytes(tmp_path, length):
    """Whether the file is as long as it says, or not."""
    before = memory()
    path = tmp_path / "model.safetensors"
    reject(struct.pack("<Q", length) + b"{}" + b" " * 100, path, r"its header should be \d")
    sparse_file(path, struct.pack("<Q", length) + b"{}")
    with pytest.raises(InputError, match=r"its header should be \d"):
        load(path)
    assert memory() - before < 2**28


@pytest.mark.parametrize("inner", ["[" * 10**5, '{"a":' * 500 + "1" + "}" * 500, "5", "[]", "null", "{", "\\ud800", ""])
def test_headers_that_are_no_object(saved, tmp_path, inner):
    text = json.dumps({"__metadata__": {"lsdc": inner}}).encode()
    reject(struct.pack("<Q", len(text)) + text, tmp_path / "model.safetensors", "not a file written by lsdc")


WORDS = {
    "other format": ({"format": 3}, "model format 3"),
    "no format": ({"format": None}, "model format None"),
    "unknown method": ({"method": "lsdd"}, "did you mean 'lsdc'"),
    "a list as method": ({"method": ["lsdc"]}, "method: input should be a valid string"),
    "unknown words": ({"surprise": 1}, "unknown setting 'surprise'"),
    "unknown parameter": ({"params__widt": 1}, "unknown parameter 'widt': did you mean 'width'"),
    "10**12 clusters": ({"params__n_clusters": 10**12, "settings__n_clusters": 10**12}, "is more than the 40 samples"),
    "unequal clusters": ({"params__n_clusters": 2}, "n_clusters differs"),
    "10**7 clusters found": ({"n_clusters": 10**7}, "n_clusters is 10000000, but 3 were asked for"),
    "another number found": ({"n_clusters": 4}, "n_clusters is 4, but 3 were asked for"),
    "clusters as text": ({"params__n_clusters": "3"}, "n_clusters must be a whole number"),
    "a function": ({"params__backbone": "os:system"}, "pass it again: backbone=that function"),
    "a function in the settings": ({"settings__backbone": "os:system"}, "pass it again: backbone=that function"),
    "unknown setting": ({"settings__colour": 1}, "unknown setting 'settings.colour'"),
    "unknown backbone": ({"settings__backbone": "vgg9"}, "unknown backbone 'vgg9'"),
    "another backbone": ({"settings__backbone": "resnet18"}, "needs images"),
    "another head": ({"settings__head": "two-layer"}, "the tensor .* should be"),
    "absurd width": ({"settings__width": 1e9}, "width: input should be less than or equal to 16"),
    "large width": ({"settings__width": 16}, "the tensor .* should be"),
    "absurd epochs": ({"settings__plan__epochs": 10**12}, "settings.plan.epochs: input should be less"),
    "infinite rate": ({"params__lr": float("inf")}, "lr: "),
    "NaN": ({"settings__tau": float("nan")}, "settings.tau: input should be a finite number"),
    "deep nesting": ({"params__milestones": json.loads("[" * 90 + "]" * 90)}, "nested too deep"),
    "another shape": ({"shape": [6]}, "the tensor 'offset' should be"),
    "absurd shape": ({"shape": [3, 10**9, 10**9]}, "images|neither|needs"),
    "images of one column": ({"shape": [8, 8, 1]}, "neither vectors nor images"),
    "images of five channels": ({"shape": [5, 8, 8]}, "neither vectors nor images"),
    "negative shape": ({"shape": [-5]}, "shape.0: input should be greater"),
    "two axes": ({"shape": [5, 1]}, "neither vectors nor images"),
    "other features": ({"n_features_in": 6}, "n_features_in is 6"),
    "too few names": ({"feature_names": ["a"]}, "with 1 names"),
    "names that are none": ({"feature_names": [1, 2, 3, 4, 5]}, "feature_names.0: input should be"),
    "words of vectors": ({"words": ["a", "b", "c", "d", "e"]}, "the tensor 'idf' should be"),
    "a device that is none": ({"params__device": 5}, "device must be a name"),
    "a seed that is none": ({"params__random_state": "x"}, "random_state must be a whole number"),
    "a history that is none": ({"history": [{"stage": 5}]}, "not a history written by lsdc"),
    "a history of objects": ({"history": {"a": 1}}, "not a history written by lsdc"),
    "no settings": ({"settings": {}}, "settings.n_clusters: field required"),
}


@pytest.mark.parametrize("attack", WORDS)
def test_headers_with_absurd_words(saved, tmp_path, attack):
    changes, match = WORDS[attack]
    before = memory()
    reject(edited(saved["lsdc"], **changes), tmp_path / "model.safetensors", match)
    assert memory() - before < 2**28


@pytest.mark.parametrize("n_clusters", [10**7, 41])
def test_more_clusters_than_samples_can_form(tmp_path, n_clusters):
    """Of a method that finds their number, so that the file alone says it: no name is made for any of them."""
    FINCH(random_state=0).fit(VECTORS).save(tmp_path / "finch")
    before = memory()
    content = edited((tmp_path / "finch").read_bytes(), n_clusters=n_clusters)
    reject(content, tmp_path / "model.safetensors", f"n_clusters is {n_clusters}, more than the 40 samples")
    assert memory() - before < 2**28


@pytest.mark.parametrize("words", [["a", "a", "b"], ["a"], [], [1, 2, 3, 4], "abcd", {"a": 1}])
def test_words_that_are_none(saved, tmp_path, words):
    reject(edited(saved["texts"], words=words), tmp_path / "model.safetensors", "words|idf")


TENSORS = {
    "NaN weights": (
        "lsdc",
        {BIAS: np.full(10, np.nan, F4)},
        "bias holds values that are not",
    ),
    "infinite weights": ("lsdc", {BIAS: np.full(10, np.inf, F4)}, "not finite"),
    "wrong shape": (
        "lsdc",
        {BIAS: np.zeros(11, F4)},
        r"should be torch.float32 of shape \(10,\)",
    ),
    "wrong type": ("lsdc", {BIAS: np.zeros(10)}, "is torch.float64"),
    "complex": ("lsdc", {BIAS: np.zeros(10, np.complex64)}, "is of type C64"),
    "missing": ("lsdc", {"state/head.1.bias": None}, "'head.1.bias' should be .* is absent"),
    "additional": ("lsdc", {"state/more": np.zeros(3, F4)}, "'more' should be absent"),
    "additional beside": ("kmeans", {"more": np.zeros(3, F4)}, "'more' should be absent"),
    "NaN offset": ("kmeans", {"offset": np.full(5, np.nan)}, "offset holds values"),
    "long offset": ("kmeans", {"offset": np.zeros(6)}, "'offset' should be"),
    "NaN scale": ("kmeans", {"scale": np.array(np.nan, F4)}, "scale holds values"),
    "no scale": ("kmeans", {"scale": np.array(0, F4)}, "the scale or the labels are invalid"),
    "NaN centres": ("kmeans", {"state/centres": np.full((3, 5), np.nan, F4)}, "centres holds values"),
    "fewer centres": ("kmeans", {"state/centres": np.zeros((2, 5), F4)}, "'centres' should be"),
    "no variance": ("kmeans", {"state/variance": np.array(0, F4)}, "must be positive"),
    "labels beyond": ("kmeans", {"labels": np.full(40, 3)}, "labels are invalid"),
    "labels below": ("kmeans", {"labels": np.full(40, -1)}, "labels are invalid"),
    "labels as numbers": ("kmeans", {"labels": np.zeros(40)}, "'labels' should be torch.int64"),
    "labels as table": ("kmeans", {"labels": np.zeros((40, 1), np.int64)}, "'labels' should be"),
    "few labels": ("kmeans", {"labels": np.zeros(2, np.int64)}, "n_clusters=3 is more than the 2"),
    "scale absent": ("kmeans", {"scale": None}, "'scale' should be .* is absent"),
    "offset absent": ("kmeans", {"offset": None}, "'offset' should be .* is absent"),
    "no labels": ("kmeans", {"labels": None}, "n_clusters=3 is more than the 0"),
    "NaN words": ("texts", {"idf": np.full(4, np.nan)}, "idf holds values"),
    "no words": ("texts", {"idf": None}, "'idf' should be"),
    "no labels of a number found": ("finch", {"labels": None}, "'labels' should be .* is absent"),
    "one partition that is none": ("finch", {"state/partitions": np.array(1)}, "'partitions' should be"),
    "no partitions": ("finch", {"state/partitions": np.zeros((0, 40), np.int64)}, "partitions are invalid"),
    "partitions below": ("finch", {"state/partitions": np.full((1, 40), -1)}, "partitions are invalid"),
    "partitions beyond": ("finch", {"state/partitions": np.full((1, 40), 2**63 - 1)}, "partitions are invalid"),
}


@pytest.mark.parametrize("attack", TENSORS)
def test_tensors_that_cannot_be(saved, tmp_path, attack):
    name, changes, match = TENSORS[attack]
    reject(retyped(saved[name], **changes), tmp_path / "model.safetensors", match)


def test_finite_weights_may_still_overflow(saved, tmp_path):
    (tmp_path / "m").write_bytes(retyped(saved["lsdc"], **{BIAS: np.full(10, 3e38, F4)}))
    with pytest.raises(InputError, match=r"a result that is not finite .* too extreme"):
        load(tmp_path / "m").predict_proba(VECTORS)
