"""What reading may cost is declared, and checked before it is spent."""

import gzip
import zipfile

import numpy as np
import pytest

from attacks import memory
from lsdc.data import budget
from lsdc.data.benchmarks import reuters10k
from lsdc.data.download import content
from lsdc.data.files import open_data
from lsdc.errors import InputError

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


def bombs(folder):
    """Small files that unpack to 40 MB and more."""
    n = 5_000_000
    pq.write_table(pa.table({"a": np.zeros(n)}), folder / "numbers.parquet", compression="zstd")
    rows = pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(n)), 10)
    pq.write_table(pa.table({"embedding": rows}), folder / "lists.parquet", compression="zstd")
    np.savez_compressed(folder / "x.npz", X=np.zeros(n))
    return [folder / name for name in ("numbers.parquet", "lists.parquet", "x.npz")]


def test_files_that_unpack_to_too_much_are_refused_before_they_do(tmp_path, monkeypatch):
    monkeypatch.setattr(budget, "UNPACKED", 10_000_000)
    files = bombs(tmp_path)
    before = memory()
    for file in files:
        assert file.stat().st_size < 300_000
        with pytest.raises(
            InputError, match=rf"{file.name}: .* 40,000,.* bytes, more than 100 times its size"
        ) as caught:
            open_data(str(file))
        assert "LSDC_MEMORY" in str(caught.value)
    assert memory() - before < 30_000_000


def test_the_budget_can_be_set(tmp_path, monkeypatch):
    np.savez(tmp_path / "x.npz", X=np.zeros((1000, 3)))
    for given, fine in (("1M", True), ("30K", True), ("20 kB", False), ("100", False)):
        monkeypatch.setenv("LSDC_MEMORY", given)
        if fine:
            assert len(open_data(str(tmp_path / "x.npz")).X) == 1000
        else:
            with pytest.raises(InputError, match=f"LSDC_MEMORY is {given}"):
                open_data(str(tmp_path / "x.npz"))
    monkeypatch.setenv("LSDC_MEMORY", "much")
    with pytest.raises(InputError, match="give a number of bytes, such as 8G"):
        open_data(str(tmp_path / "x.npz"))


def test_words_that_repeat_are_held_once(tmp_path):
    """A million rows of one long text: a few kilobytes in the file, a gigabyte if each had its own copy."""
    long = "word " * 200
    texts = pa.array([long, "other"] * 50_000)
    pq.write_table(pa.table({"text": texts, "id": pa.array([None, *range(99_999)])}), tmp_path / "x.parquet")
    assert (tmp_path / "x.parquet").stat().st_size < 2_000_000
    before = memory()
    data = open_data(str(tmp_path / "x.parquet"))
    assert data.X[:3] == [long, "other", long]
    assert memory() - before < 60_000_000


def test_benchmarks_in_archives_have_the_same_budget(tmp_path, monkeypatch):
    monkeypatch.setattr(budget, "UNPACKED", 10_000_000)
    (tmp_path / "reuters10k").mkdir()
    np.savez_compressed(tmp_path / "reuters10k" / "reuters10k.npz", data=np.zeros(5_000_000), label=np.zeros(3))
    with pytest.raises(InputError, match="more than 100 times its size"):
        reuters10k(tmp_path)


def test_packed_files_without_end(tmp_path, monkeypatch):
    monkeypatch.setattr(budget, "UNPACKED", 10_000)
    (tmp_path / "x.gz").write_bytes(gzip.compress(bytes(20_000)))
    with pytest.raises(ValueError, match="unpacks to more than 10,000 bytes"):
        content(tmp_path / "x.gz")


def test_archives_are_measured_by_what_they_hold(tmp_path, monkeypatch):
    monkeypatch.setattr(budget, "UNPACKED", 1000)
    with zipfile.ZipFile(tmp_path / "x.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("X.npy", bytes(10_000_000))
    with pytest.raises(InputError, match="unpacks to 10,000,000 bytes"):
        open_data(str(tmp_path / "x.npz"))
