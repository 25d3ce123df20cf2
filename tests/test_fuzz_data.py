"""Damaged data files: each is read and can be clustered, or is refused by an InputError of one line."""

import io
import json
import zipfile

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import strategies as st
from PIL import Image

from fuzzing import fuzz
from lsdc import InputError, KMeans
from lsdc.data.files import open_data
from lsdc.data.truth import read_true_labels
from mutations import bytes_of, json_of, npy_of

pytestmark = [
    pytest.mark.filterwarnings("ignore::lsdc.HealthWarning"),  # of fits on four samples
    pytest.mark.filterwarnings("ignore::hypothesis.errors.HypothesisWarning"),  # a failing file is shown at length
]
VECTORS = np.random.default_rng(0).normal(size=(12, 3)).astype(np.float32)
TEXTS = ["cat dog pet", "stock bond price", "dog cat fur", "price bond market"]
TABLE = "id,a,b,label\n" + "\n".join(f"r{i},{x:.3f},{y:.2e},{i % 2}" for i, (x, y, _) in enumerate(VECTORS)) + "\n"
LINES = "".join(json.dumps({"text": text, "id": i, "more": [1, {"a": None}]}) + "\n" for i, text in enumerate(TEXTS))
ROWS = {"data": [1.0, 2.0, 3.0], "indices": [0, 2, 1], "indptr": [0, 1, 2, 3], "shape": [3, 3], "format": "csr"}
MATRICES = [
    ROWS,
    {**ROWS, "format": "csc"},
    {**ROWS, "format": "bsr", "data": [[[1.0]], [[2.0]], [[3.0]]]},
    {"data": [1.0, 2.0, 3.0], "row": [0, 1, 2], "col": [0, 2, 1], "shape": [3, 3], "format": "coo"},
    {"data": [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], "offsets": [0, 1], "shape": [3, 3], "format": "dia"},
]


def reads(path, **options):
    """A law of data files: what is read can be clustered."""

    def law(content):
        path.write_bytes(content)
        dataset = open_data(str(path), **options)
        KMeans(1, n_init=1, random_state=0).fit(dataset)

    return law


@pytest.mark.parametrize(("name", "content"), [("csv", TABLE), ("jsonl", LINES), ("txt", "\n".join(TEXTS))])
def test_texts(tmp_path, name, content):
    fuzz(name, bytes_of(content.encode()), reads(tmp_path / f"x.{name}"))


AMOUNTS = "name;price;rate;ok;city\n" + "".join(
    f"n{i};{i + 1}.{i:02d}0,5 €;{i},5 %;{'yes' if i % 3 else 'no'};{'ab'[i % 2]}\n" for i in range(12)
)


def test_amounts(tmp_path):
    damaged = st.sampled_from([AMOUNTS.encode(), AMOUNTS.encode("utf-16")]).flatmap(bytes_of)
    fuzz("amounts", damaged, reads(tmp_path / "x.csv", drop=("name",)))


def test_true_labels(tmp_path):
    table, ids = "id,label\n" + "".join(f"r{i},{i % 2}\n" for i in range(12)), [f"r{i}" for i in range(12)]

    def law(content):
        (tmp_path / "y.csv").write_bytes(content)
        y, _ = read_true_labels(tmp_path / "y.csv", ids)
        assert len(y) == 12

    law(table.encode())
    assert read_true_labels(tmp_path / "y.csv", ids[::-1])[0].tolist() == ["1", "0"] * 6  # by id
    fuzz("truth", bytes_of(table.encode()), law)


def test_parquet(tmp_path):
    pytest.importorskip("pyarrow")
    tables = [
        pd.DataFrame({"id": range(12), "embedding": list(VECTORS)}),
        pd.DataFrame(VECTORS, columns=list("abc")).assign(city=["u", "v"] * 6, ok=[True, False] * 6),
    ]
    wholes = []
    for table in tables:
        for how in ("snappy", "gzip", None):
            table.to_parquet(tmp_path / "x.parquet", compression=how)
            wholes.append((tmp_path / "x.parquet").read_bytes())
    fuzz("parquet", st.sampled_from(wholes).flatmap(bytes_of), reads(tmp_path / "x.parquet"))


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
        read_true_labels(tmp_path / "x.npy", [str(i) for i in range(12)])

    fuzz("npy", st.one_of(bytes_of(saved(VECTORS), head=80), npy_of(VECTORS.tobytes())), both)


def test_archives(tmp_path):
    streams = [io.BytesIO() for _ in range(3)]
    np.savez(streams[0], X=VECTORS, y=np.arange(12) % 2)
    np.savez_compressed(streams[1], X=VECTORS)
    sp.save_npz(streams[2], sp.csr_matrix(np.abs(VECTORS).round()))
    damaged = st.sampled_from([stream.getvalue() for stream in streams]).flatmap(bytes_of)
    headers = npy_of(VECTORS.tobytes()).map(lambda array: zipped({"X.npy": array}))
    matrices = st.sampled_from(MATRICES).flatmap(json_of)
    indices = matrices.map(lambda new: zipped({f"{name}.npy": saved(value) for name, value in new.items()}))
    fuzz("npz", st.one_of(damaged, headers, indices), reads(tmp_path / "x.npz"))


def pictures():
    """One small image in every form: grey, palette, transparent, animated, with words and a rotation in it."""
    pixels = Image.fromarray(np.random.default_rng(0).integers(0, 255, (12, 10, 3)).astype(np.uint8))
    exif = pixels.getexif()
    exif[0x0112], exif[0x010E] = 6, "words"
    palette = pixels.quantize(8)
    forms = [
        *((pixels, {"format": kind, "exif": exif}) for kind in ("PNG", "JPEG", "WEBP", "TIFF")),
        *((pixels, {"format": "TIFF", "compression": how}) for how in ("tiff_lzw", "tiff_adobe_deflate", "packbits")),
        *((pixels.convert(mode), {"format": "TIFF"}) for mode in ("1", "I;16", "CMYK", "F")),
        *((pixels.convert(mode), {"format": "PNG"}) for mode in ("L", "LA", "RGBA", "I;16", "1")),
        *((pixels.convert(mode), {"format": "JPEG", "progressive": True}) for mode in ("L", "CMYK")),
        *((palette, {"format": "PNG", "transparency": value}) for value in (b"\x00\x80\xff", 3)),
        *((palette, {"format": kind}) for kind in ("GIF", "BMP")),
        (palette, {"format": "GIF", "save_all": True, "append_images": [palette.rotate(90)], "duration": 9}),
        (pixels, {"format": "BMP"}),
        (pixels, {"format": "WEBP", "lossless": True}),
    ]
    for image, options in forms:
        stream = io.BytesIO()
        image.save(stream, **options)
        yield stream.getvalue()


def test_images(tmp_path):
    (tmp_path / "photos").mkdir()
    Image.new("RGB", (9, 9)).save(tmp_path / "photos" / "good.png")

    def law(content):
        (tmp_path / "photos" / "x.png").write_bytes(content)
        data = open_data(str(tmp_path / "photos"), image_size=8)
        assert data.X.shape == (2 - len(data.skipped), 8, 8, 3)
        for name, why in data.skipped:
            assert name == "x.png"
            raise InputError(why)

    for whole in pictures():
        law(whole)  # nothing is left out
    fuzz("images", st.sampled_from(list(pictures())).flatmap(lambda whole: bytes_of(whole, head=120)), law)
