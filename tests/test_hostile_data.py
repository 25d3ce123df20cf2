"""Data files that were made to do harm: pickles, archives that point elsewhere or unpack without end, programs."""

import os
import pickle
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp
from PIL import Image

from attacks import memory, reject
from lsdc import InputError
from lsdc.data import budget
from lsdc.data.files import open_data
from test_cli import inside, refused


class Evil:
    def __reduce__(self):
        return os.system, ("touch /tmp/lsdc-was-here",)


def test_pickles_are_not_opened(tmp_path):
    content = pickle.dumps(Evil())
    reject(content, tmp_path / "model.safetensors", "not a file written by lsdc")
    for name in ("x.npy", "x.npz", "x.csv", "x.jsonl"):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError, match=name):
            open_data(str(tmp_path / name))
    (tmp_path / "config.json").write_bytes(content)
    refused(inside("evaluate", tmp_path, cwd=tmp_path), "config.json")
    assert not os.path.exists("/tmp/lsdc-was-here")


def test_archives_that_point_elsewhere(tmp_path):
    for name in ("../X.npy", "/tmp/X.npy", "a/../../X.npy"):
        with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
            archive.writestr(name, b"anything")
        with pytest.raises(InputError, match="outside the archive"):
            open_data(str(tmp_path / "x.npz"))
        reject((tmp_path / "x.npz").read_bytes(), tmp_path / "model.safetensors", "not a file written by lsdc")


def test_archives_that_unpack_without_end(tmp_path, monkeypatch):
    monkeypatch.setattr(budget, "UNPACKED", 2**20)
    np.savez_compressed(tmp_path / "x.npz", X=np.zeros(2**21))
    with pytest.raises(InputError, match="unpacks to 16,777,"):
        open_data(str(tmp_path / "x.npz"))


def test_pipes_are_no_data(tmp_path):
    os.mkfifo(tmp_path / "x.csv")
    with pytest.raises(InputError, match="not a plain file"):
        open_data(str(tmp_path / "x.csv"))


def test_images_that_would_run_a_program(tmp_path):
    """Pillow goes by the content: PostScript in a .png would be handed to Ghostscript."""
    Image.new("RGB", (9, 9)).save(tmp_path / "x.eps", "EPS")
    (tmp_path / "x.eps").rename(tmp_path / "x.png")
    with pytest.raises(InputError, match=r"x.png: not a readable image"):
        open_data(str(tmp_path))


def test_images_that_would_fill_the_memory(tmp_path):
    content = bytearray(b"GIF87a" + b"\xff\xff\xff\xff" + b"\x00" * 20)
    (tmp_path / "x.gif").write_bytes(content)
    before = memory()
    with pytest.raises(InputError, match=r"x.gif: not a readable image"):
        open_data(str(tmp_path))
    assert memory() - before < 2**28


@pytest.mark.parametrize("ends", [[0, 1, 2, -1], [0, 2, 1, 3], [0, 1, 2, 10**9], [5, 6, 7, 8]])
def test_sparse_matrices_that_would_crash(tmp_path, ends):
    parts_ = {"data": np.ones(3), "indices": np.array([0, 2, -1]), "shape": np.array([3, 3])}
    for more in ({}, {"format": np.array("csr")}, {"format": np.array("csc")}):
        np.savez(tmp_path / "x.npz", indptr=np.array(ends), **parts_, **more)
        with pytest.raises(InputError, match="not a valid sparse matrix"):
            open_data(str(tmp_path / "x.npz"))


def test_sparse_matrices_that_would_fill_the_memory(tmp_path):
    matrix = sp.coo_matrix((np.ones(2), ([0, 1], [0, 1])), shape=(2**31 - 1, 2**31 - 1))
    sp.save_npz(tmp_path / "x.npz", matrix)
    with pytest.raises(InputError, match="far larger than its content"):
        open_data(str(tmp_path / "x.npz"))


def test_messages_are_one_line_whatever_a_file_is_called(tmp_path):
    folder = tmp_path / "a\nb\x1b[31m"
    folder.mkdir()
    (folder / "x.csv").write_text("")
    refused(inside("fit", str(folder / "x.csv"), "-k", 2, cwd=tmp_path), r"a\nb\x1b[31m")
