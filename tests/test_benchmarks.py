"""The paper's data sets: small files written byte for byte in the official formats, and the real ones if there."""

import gzip
import hashlib
import os
import pickle
import shlex
import struct
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from lsdc.data import benchmarks, datasets
from lsdc.data.official import CIFAR10, CIFAR10_PYTHON, CIFAR100, CIFAR100_PYTHON, MNIST, STL10
from lsdc.errors import InputError

REAL = Path(os.environ.get("LSDC_DATA") or "/nowhere")
SOURCES = (MNIST, CIFAR10, CIFAR10_PYTHON, CIFAR100, CIFAR100_PYTHON, STL10)


@pytest.fixture(autouse=True)
def offline(monkeypatch):
    monkeypatch.setenv("LSDC_OFFLINE", "1")


def written(source, folder, contents, packed=False):
    """The source with the md5 of these contents, which are put into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        (folder / (f"{name}.gz" if packed else name)).write_bytes(gzip.compress(content) if packed else content)
    return replace(source, files={name: hashlib.md5(contents[name]).hexdigest() for name in source.files})


def refused(call, *parts):
    with pytest.raises(InputError) as caught:
        call()
    line = str(caught.value)
    assert "\n" not in line
    for part in parts:
        assert str(part) in line, line
    return line


# MNIST


def idx(array):
    header = bytes([0, 0, 8, array.ndim]) + b"".join(struct.pack(">I", length) for length in array.shape)
    return header + array.astype(np.uint8).tobytes()


def mnist_files():
    images = np.zeros((5, 28, 28), np.uint8)
    images[0, 3, 7], images[2, 27, 0], images[4, 0, 27] = 11, 22, 33
    return {
        "train-images-idx3-ubyte": idx(images[:3]),
        "train-labels-idx1-ubyte": idx(np.array([5, 0, 4])),
        "t10k-images-idx3-ubyte": idx(images[3:]),
        "t10k-labels-idx1-ubyte": idx(np.array([7, 2])),
    }


def test_idx_is_read_as_documented():
    content = bytes([0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4, 5, 6])
    array = benchmarks.read_idx(np.frombuffer(content, np.uint8), 2)
    assert array.tolist() == [[1, 2, 3], [4, 5, 6]]


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("folder", ["mnist", ".", "MNIST/raw"])
def test_mnist_is_train_then_test(tmp_path, folder, packed):
    source = written(MNIST, tmp_path / folder, mnist_files(), packed)
    data = benchmarks.mnist(tmp_path, source)
    assert (data.X.shape, data.X.dtype, data.y.dtype) == ((5, 28, 28), np.uint8, np.int64)
    assert (data.X[0, 3, 7], data.X[2, 27, 0], data.X[4, 0, 27], data.X.sum()) == (11, 22, 33, 66)
    assert data.y.tolist() == [5, 0, 4, 7, 2]
    assert (data.name, data.title, data.n_clusters, data.class_names[4]) == ("mnist", "MNIST", 10, "4")


@pytest.mark.parametrize(
    ("name", "damage", "reason"),
    [
        ("train-images-idx3-ubyte", lambda b: b[:-1], "2,367 bytes, but its header promises 2,368"),
        ("train-images-idx3-ubyte", lambda b: b + b"x", "2,369 bytes, but its header promises 2,368"),
        ("train-images-idx3-ubyte", lambda b: b[:9], "truncated after 9 bytes"),
        ("train-images-idx3-ubyte", lambda b: b"", "the file is empty"),
        ("t10k-images-idx3-ubyte", lambda b: b"<html>" + b, "not an idx file of 3 axes (it begins with b'<htm')"),
        ("t10k-labels-idx1-ubyte", lambda b: idx(np.array([7, 2, 1])), "3 labels for 2 images"),
        ("t10k-labels-idx1-ubyte", lambda b: idx(np.array([7, 12])), "labels from 7 to 12, not 0 to 9"),
    ],
)
def test_damaged_mnist_gets_one_line(tmp_path, name, damage, reason):
    files = mnist_files()
    source = written(MNIST, tmp_path / "mnist", {**files, name: damage(files[name])})
    url = f"https://ossci-datasets.s3.amazonaws.com/mnist/{name}.gz"
    refused(
        lambda: benchmarks.mnist(tmp_path, source),
        f"{tmp_path / 'mnist' / name}: {reason}; get {url} and put it into {tmp_path / 'mnist'}",
    )


def test_a_cut_or_false_gz_gets_one_line(tmp_path):
    source = written(MNIST, tmp_path / "mnist", mnist_files(), packed=True)
    path = tmp_path / "mnist" / "train-labels-idx1-ubyte.gz"
    whole = path.read_bytes()
    for content, reason in [(whole[:-9], "ended before"), (b"no gzip", "Not a gzipped file"), (whole[:15], "ended")]:
        path.write_bytes(content)
        refused(lambda: benchmarks.mnist(tmp_path, source), f"{path}: ", reason, f"{MNIST.urls[0]}{path.name} and put")


def test_other_bytes_than_the_official_ones_are_refused(tmp_path):
    files = mnist_files()
    written(MNIST, tmp_path / "mnist", files)
    digest = hashlib.md5(files["train-images-idx3-ubyte"]).hexdigest()
    refused(
        lambda: datasets.load("mnist", tmp_path),
        f"{tmp_path / 'mnist' / 'train-images-idx3-ubyte'}: not the official file",
        f"md5 {digest} instead of 6bbc9ace898e44ae57da46a324031adb, 2,368 bytes",
    )


# CIFAR


def cifar_rows(labels):
    """Records in which every pixel is 0 but one of each plane, placed by the number of the record."""
    rows = np.zeros((len(labels), len(labels[0]) + 3072), np.uint8)
    for i, label in enumerate(labels):
        rows[i, : len(label)] = label
        for plane in range(3):
            rows[i, len(label) + 1024 * plane + 32 * i + plane] = 100 + plane  # row i, column plane
    return rows


def check_cifar(X):
    assert (X.shape, X.dtype, X.flags.c_contiguous) == ((12, 3, 32, 32), np.uint8, True)
    expected = np.zeros_like(X)
    for i in range(12):
        for plane in range(3):
            expected[i, plane, i % 2, plane] = 100 + plane
    assert np.array_equal(X, expected)


def py2(value):
    """A value as Python 2 with cPickle and numpy wrote it, in protocol 2."""
    if isinstance(value, bytes):
        return b"T" + struct.pack("<I", len(value)) + value
    if isinstance(value, int):
        return b"K" + bytes([value])
    if isinstance(value, list):
        return b"](" + b"".join(map(py2, value)) + b"e"
    if isinstance(value, dict):
        return b"}(" + b"".join(py2(key) + py2(item) for key, item in value.items()) + b"u"
    shape = b"".join(b"M" + struct.pack("<H", length) for length in value.shape) + b"\x86"
    end = b"J\xff\xff\xff\xff"
    dtype = b"cnumpy\ndtype\nU\x02u1K\x00K\x01\x87R(K\x03U\x01|NNN" + end + end + b"K\x00tb"
    start = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R"
    return start + b"(K\x01" + shape + dtype + b"\x89" + py2(value.tobytes()) + b"tb"


def cifar10_files():
    """Six batches of two images each."""
    return {name: cifar_rows([(i,), (9 - i,)]) for i, name in enumerate(CIFAR10.files)}


def cifar10_pickles():
    return {
        name.removesuffix(".bin"): b"\x80\x02"
        + py2({b"data": rows[:, 1:], b"labels": rows[:, 0].tolist(), b"batch_label": b"x", b"filenames": [b"a", b"b"]})
        + b"."
        for name, rows in cifar10_files().items()
    }


@pytest.mark.parametrize("version", ["binary", "python"])
@pytest.mark.parametrize("inside", [True, False])
def test_cifar10_in_both_versions(tmp_path, version, inside):
    if version == "binary":
        source, files = CIFAR10, {name: rows.tobytes() for name, rows in cifar10_files().items()}
    else:
        source, files = CIFAR10_PYTHON, cifar10_pickles()
    source = written(source, tmp_path / (source.folder if inside else "."), files)
    data = benchmarks.cifar10(tmp_path, (CIFAR10, source) if version == "python" else (source, CIFAR10_PYTHON))
    check_cifar(data.X)
    assert data.y.tolist() == [0, 9, 1, 8, 2, 7, 3, 6, 4, 5, 5, 4]
    assert data.y.dtype == np.int64
    assert (data.name, data.title, data.n_clusters, data.class_names[9]) == ("cifar10", "CIFAR-10", 10, "truck")


@pytest.mark.parametrize("version", ["binary", "python"])
def test_cifar100_gives_the_superclasses(tmp_path, version):
    rows = cifar_rows([(4, 0), (19, 99)])
    train, test = np.concatenate([rows] * 4), np.concatenate([rows] * 2)
    if version == "binary":
        source = written(
            CIFAR100, tmp_path / CIFAR100.folder, {"train.bin": train.tobytes(), "test.bin": test.tobytes()}
        )
    else:
        contents = {
            name: b"\x80\x02"
            + py2({b"data": r[:, 2:], b"coarse_labels": r[:, 0].tolist(), b"fine_labels": r[:, 1].tolist()})
            + b"."
            for name, r in (("train", train), ("test", test))
        }
        source = written(CIFAR100_PYTHON, tmp_path / CIFAR100_PYTHON.folder, contents)
    data = benchmarks.cifar100_20(tmp_path, (source,))
    check_cifar(data.X)
    assert data.y.tolist() == [4, 19] * 6
    assert (data.name, data.title, data.n_clusters) == ("cifar100-20", "CIFAR-100-20", 20)
    assert (data.class_names[0], data.class_names[4]) == ("aquatic_mammals", "fruit_and_vegetables")
    assert list(data.class_names) == sorted(data.class_names)  # as the official file lists them


def test_cut_cifar_files_get_one_line(tmp_path):
    files = {name: rows.tobytes() for name, rows in cifar10_files().items()}
    source = written(CIFAR10, tmp_path / CIFAR10.folder, {**files, "data_batch_3.bin": files["data_batch_3.bin"][:-1]})
    refused(
        lambda: benchmarks.cifar10(tmp_path, (source,)),
        f"{tmp_path / CIFAR10.folder / 'data_batch_3.bin'}: 6,145 bytes, not a whole number of records of 3,073",
        "get https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz and put its data_batch_3.bin into",
    )


def evil(path):
    """A pickle that makes a file when it is opened."""

    class Evil:
        def __reduce__(self):
            return os.mkdir, (str(path),)

    return pickle.dumps({"data": Evil()}, 2)


def test_pickles_run_nothing(tmp_path):
    trap = tmp_path / "trap"
    files = cifar10_pickles()
    files["data_batch_1"] = evil(trap)
    source = written(CIFAR10_PYTHON, tmp_path / "known" / CIFAR10_PYTHON.folder, files)  # even with the right md5
    refused(lambda: benchmarks.cifar10(tmp_path / "known", (source,)), "data_batch_1: ", f"it asks for {os.name}.mkdir")
    written(CIFAR10_PYTHON, tmp_path / "unknown" / CIFAR10_PYTHON.folder, files)
    refused(lambda: datasets.load("cifar10", tmp_path / "unknown"), "data_batch_1: not the official file (md5 ")
    assert not trap.exists()
    pickle.loads(files["data_batch_1"])
    assert trap.exists()  # so the trap was set


@pytest.mark.parametrize(
    "damage", [lambda b: b[:-1], lambda b: b"", lambda b: b"\x80\x02}.", lambda b: b"\x80\x02K\x01."]
)
def test_damaged_batches_get_one_line(damage):
    content = damage(cifar10_pickles()["data_batch_1"])
    with pytest.raises((ValueError, EOFError)):
        benchmarks.read_cifar_pickle(np.frombuffer(content, np.uint8), "labels")


# STL-10


def stl_images(n):
    """Images of zeros but one pixel, in row 5 and column 40 of the green plane, written column by column."""
    planes = np.zeros((n, 3, 96 * 96), np.uint8)
    planes[:, 1, 40 * 96 + 5] = np.arange(1, n + 1)
    return planes.tobytes()


def stl_files():
    return {
        "train_X.bin": stl_images(2),
        "train_y.bin": bytes([1, 10]),
        "test_X.bin": stl_images(1),
        "test_y.bin": bytes([3]),
    }


def test_stl10_is_turned_upright(tmp_path):
    source = written(STL10, tmp_path / STL10.folder, stl_files())
    data = benchmarks.stl10(tmp_path, source)
    assert (data.X.shape, data.X.dtype) == ((3, 3, 96, 96), np.uint8)
    assert data.X[:, 1, 5, 40].tolist() == [1, 2, 1]
    assert data.X.sum() == 4
    assert data.y.tolist() == [0, 9, 2]
    assert (data.class_names[0], data.class_names[9]) == ("airplane", "truck")
    assert (data.title, data.unlabelled) == ("STL-10 (without its unlabelled images)", None)


def test_unlabelled_images_stay_on_disk(tmp_path):
    source = written(STL10, tmp_path / STL10.folder, {**stl_files(), "unlabeled_X.bin": stl_images(4)})
    data = benchmarks.stl10(tmp_path, source)
    more = data.unlabelled
    assert data.title == "STL-10"
    assert isinstance(more, np.memmap)
    assert (more.shape, more.dtype) == ((4, 3, 96, 96), np.uint8)
    assert np.asarray(more[2:, 1, 5, 40]).tolist() == [3, 4]


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("unlabeled_X.bin", stl_images(1)[1:], "27,647 bytes, not a whole number of records of 27,648"),
        ("unlabeled_X.bin", b"", "empty"),
        ("test_X.bin", stl_images(1) + b"x", "27,649 bytes"),
        ("test_y.bin", bytes([3, 3]), "2 labels for 1 images"),
        ("train_y.bin", bytes([0, 9]), "labels from 0 to 9, not 1 to 10"),
    ],
)
def test_damaged_stl10_gets_one_line(tmp_path, name, content, reason):
    source = written(STL10, tmp_path / STL10.folder, {**stl_files(), name: content})
    path = tmp_path / STL10.folder / name
    refused(lambda: benchmarks.stl10(tmp_path, source), f"{path}: ", reason, "stl10_binary.tar.gz", f"put its {name}")


# Reuters-10K

DOCUMENTS = np.array([[0, 1.5, 0], [2.5, 0, 0], [0, 0, 3.5], [0, 0, 0], [1, 2, 0]])
TOPICS = np.array([2, 0, 1, 3, 2])


def reuters(root, name):
    folder = root / "reuters10k"
    folder.mkdir(exist_ok=True)
    if name == "data":
        np.savez(folder / "reuters10k.npz", data=DOCUMENTS, label=TOPICS)
    elif name == "X":
        np.savez(folder / "reuters10k.npz", X=DOCUMENTS, y=TOPICS)
    elif name == "mat":
        scipy.io.savemat(folder / "reuters10k.mat", {"X": DOCUMENTS, "Y": TOPICS[None]})
    elif name == "sparse mat":
        scipy.io.savemat(folder / "reuters10k.mat", {"X": sp.csc_matrix(DOCUMENTS), "Y": TOPICS[:, None].astype(float)})
    elif name == "pair":
        np.save(folder / "X.npy", DOCUMENTS)
        np.save(folder / "y.npy", TOPICS)
    elif name == "rebuilt":
        X = sp.csr_matrix(DOCUMENTS)
        np.savez(
            folder / "reuters10k_rcv1.npz",
            **{"data": X.data, "indices": X.indices.astype(np.int16), "indptr": X.indptr, "shape": X.shape},
            **{"y": TOPICS.astype(np.uint8), "classes": ["CCAT", "GCAT", "MCAT", "ECAT"]},
        )
    return folder


@pytest.mark.parametrize("name", ["data", "X", "mat", "sparse mat", "pair", "rebuilt"])
def test_reuters_in_every_published_form(tmp_path, name):
    reuters(tmp_path, name)
    data = datasets.load("reuters10k", tmp_path)
    sparse = name in ("sparse mat", "rebuilt")
    assert sp.issparse(data.X) == sparse
    assert data.X.dtype == np.float32
    assert np.array_equal(data.X.toarray() if sparse else data.X, DOCUMENTS)
    assert (data.y.tolist(), data.y.dtype) == (TOPICS.tolist(), np.int64)
    assert data.name == "reuters10k"
    assert data.title == ("RCV1-10K (rebuilt)" if name == "rebuilt" else "Reuters-10K")
    assert data.class_names == (("CCAT", "GCAT", "MCAT", "ECAT") if name == "rebuilt" else ("0", "1", "2", "3"))


@pytest.mark.parametrize("stem", ["reuters10k", "reutersidf10k"])
def test_a_pickled_reuters_is_refused_with_the_command_that_converts_it(tmp_path, stem):
    folder = reuters(tmp_path, None)
    np.save(folder / f"{stem}.npy", {"data": DOCUMENTS, "label": TOPICS})
    line = refused(
        lambda: datasets.load("reuters10k", tmp_path),
        f"{folder / stem}.npy: is a pickle",
        "if you trust it, convert it: ",
    )
    command = shlex.split(line.split("if you trust it, convert it: ")[1])
    assert command[0] == "python"
    subprocess.run([sys.executable, *command[1:]], check=True)
    assert np.array_equal(datasets.load("reuters10k", tmp_path).X, DOCUMENTS)


@pytest.mark.parametrize(
    ("file", "arrays", "reason"),
    [
        ("reuters10k.npz", {"X": DOCUMENTS, "y": TOPICS[:4]}, "samples of shape (5, 3), but labels of shape (4,)"),
        ("reuters10k.npz", {"X": TOPICS, "y": TOPICS}, "samples of shape (5,)"),
        ("reuters10k.npz", {"X": DOCUMENTS}, "needs arrays X (or data) and y (or label), found X"),
        ("reuters10k.npz", {"X": np.array([{}]), "y": TOPICS}, "allow_pickle=False"),
        (
            "reuters10k_rcv1.npz",
            {"data": [1.0], "indices": [7], "indptr": [0, 1], "shape": (1, 2), "y": [0]},
            "cannot be read (",
        ),
        ("reuters10k.npz", None, "cannot be read ("),
        ("reuters10k.mat", None, "cannot be read ("),
        ("X.npy", None, "cannot be read ("),
    ],
)
def test_damaged_reuters_gets_one_line(tmp_path, file, arrays, reason):
    path = reuters(tmp_path, None) / file
    if arrays is None:
        path.write_bytes(b"PK damaged" * 30)
    else:
        np.savez(path, **arrays)
    refused(lambda: datasets.load("reuters10k", tmp_path), f"{path}: ", reason, "VaDE", f"put it into {path.parent}")


# All of them


@pytest.mark.parametrize("name", ["mnist", "cifar10", "cifar100-20", "stl10", "reuters10k"])
def test_a_wrong_root_gets_one_line_and_stays_as_it_is(tmp_path, name):
    file = tmp_path / "file"
    file.touch()
    for root in (tmp_path / "nowhere", file, tmp_path):
        refused(lambda root=root: datasets.load(name, root), root, "get http", "into")
    assert list(tmp_path.iterdir()) == [file]


def test_the_table_of_official_files_is_complete():
    for source in SOURCES:
        for md5 in (*source.files.values(), *([source.archive_md5] if source.archive else [])):
            assert len(bytes.fromhex(md5)) == 16
        for url in source.urls:
            assert url.startswith("http")
            assert url.endswith("/")


def real(name):
    return pytest.mark.skipif(not (REAL / name).is_dir(), reason=f"needs {name} in the folder LSDC_DATA")


@real("mnist")
def test_the_real_mnist():
    data = datasets.load("mnist", REAL)
    assert (data.X.shape, data.X.dtype) == ((70000, 28, 28), np.uint8)
    assert data.y[:5].tolist() == [5, 0, 4, 1, 9]
    assert data.y[60000:60005].tolist() == [7, 2, 1, 0, 4]
    assert np.bincount(data.y).tolist() == [6903, 7877, 6990, 7141, 6824, 6313, 6876, 7293, 6825, 6958]


@real("cifar-10-batches-bin")
def test_the_real_cifar10():
    data = datasets.load("cifar10", REAL)
    assert (data.X.shape, data.X.dtype) == ((60000, 3, 32, 32), np.uint8)
    assert np.bincount(data.y).tolist() == [6000] * 10
    assert data.class_names[data.y[0]] == "frog"
    assert data.X[0, :, 0, 0].tolist() == [59, 62, 63]  # the first pixel of the frog


@real("reuters10k")
def test_the_real_rcv1():
    data = datasets.load("reuters10k", REAL)
    assert (data.X.shape, data.X.dtype, data.title) == ((10000, 2000), np.float32, "RCV1-10K (rebuilt)")
    assert np.bincount(data.y).tolist() == [4095, 2180, 2852, 873]
    norms = np.sqrt(data.X.multiply(data.X).sum(1))
    assert np.allclose(norms, np.sqrt(2000), rtol=1e-4)
