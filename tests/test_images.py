"""Pictures of every kind, as cameras, microscopes and drawing programs write them."""

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from lsdc import InputError, KMeans
from lsdc.data.files import open_data
from test_cli import inside

RAMP = np.tile(np.linspace(0, 1, 16), (16, 1))  # dark on the left, bright on the right


def read(folder, **how):
    return open_data(str(folder), image_size=16, **how)


@pytest.mark.parametrize("name", ["x.png", "x.tif"])
@pytest.mark.parametrize("most", [65535, 4095])
def test_sixteen_bits_are_scaled_and_not_clipped(tmp_path, name, most):
    Image.fromarray((RAMP * most).astype(np.uint16)).save(tmp_path / name)
    X = read(tmp_path).X
    assert X.shape == (1, 16, 16, 3)
    np.testing.assert_allclose(X[0, :, :, 1], RAMP * most / 257, atol=0.01)


@pytest.mark.parametrize("dtype", [np.int32, np.float32])
@pytest.mark.parametrize(("low", "high"), [(0, 10**6), (-1000, 3000), (0, 200)])
def test_values_of_no_fixed_range_are_scaled_by_the_range_of_the_folder(tmp_path, dtype, low, high):
    Image.fromarray((low + RAMP * (high - low)).astype(dtype)).save(tmp_path / "a.tif")
    Image.fromarray((low + RAMP * (high - low) / 2).astype(dtype)).save(tmp_path / "b.tif")
    data = read(tmp_path)
    np.testing.assert_allclose(data.X[0, :, :, 0], RAMP * 255, atol=1.5)
    np.testing.assert_allclose(data.X[1, :, :, 0], RAMP * 127.5, atol=1.5)  # the darker one stays darker
    assert "become 0 to 255" in data.notes[0]
    (tmp_path / "a.tif").unlink()
    again = read(tmp_path, image_range=data.image_range)
    np.testing.assert_allclose(again.X[0], data.X[1])


def test_a_run_scales_new_images_as_its_own(tmp_path):
    (tmp_path / "p").mkdir()
    (tmp_path / "dark").mkdir()
    for i in range(1, 13):
        Image.fromarray((RAMP * i).astype(np.float32)).save(tmp_path / "p" / f"{i:02}.tif")
    Image.fromarray((RAMP * 1).astype(np.float32)).save(tmp_path / "dark" / "01.tif")
    words = ["-k", 2, "--method", "kmeans", "--image-size", 16, "--out", "run"]
    done = inside("fit", "p", *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "values from 0 to 12 become 0 to 255" in done.stderr
    labels = (tmp_path / "run" / "labels.csv").read_text().splitlines()
    assert inside("predict", "run", "dark", cwd=tmp_path).stdout.splitlines() == labels[:2]
    assert inside("evaluate", "run", cwd=tmp_path).returncode == 0


def test_floats_that_are_not_finite_are_no_image(tmp_path):
    Image.fromarray(np.full((9, 9), np.nan, np.float32)).save(tmp_path / "x.tif")
    with pytest.raises(ValueError, match=r"x.tif: not a readable image \(it holds NaN"):
        read(tmp_path)


def test_ink_colours(tmp_path):
    for name in ("x.jpg", "y.tif"):
        Image.new("CMYK", (20, 20), (0, 255, 255, 0)).save(tmp_path / name)  # magenta and yellow make red
    for pixel in read(tmp_path).X[:, 8, 8]:
        assert pixel[0] > 220
        assert pixel[1:].max() < 60


def test_palettes(tmp_path):
    image = Image.new("P", (16, 16), 1)
    image.putpalette([0, 0, 0, 10, 200, 30])
    image.save(tmp_path / "x.png")
    image.save(tmp_path / "y.gif")
    Image.new("1", (16, 16), 1).save(tmp_path / "z.png")
    assert read(tmp_path).X[:, 8, 8].tolist() == [[10, 200, 30], [10, 200, 30], [255, 255, 255]]


def test_what_lies_under_transparent_pixels_is_not_seen(tmp_path):
    for i, hidden in enumerate([(255, 0, 0, 0), (0, 255, 9, 0)]):
        image = Image.new("RGBA", (16, 16), hidden)
        image.paste((0, 0, 255, 255), (0, 0, 8, 16))
        image.save(tmp_path / f"{i}.png")
    palette = Image.new("P", (16, 16), 1)
    palette.putpalette([0, 0, 255, 9, 9, 9])
    palette.paste(0, (0, 0, 8, 16))
    palette.save(tmp_path / "2.png", transparency=1)
    palette.save(tmp_path / "3.gif", transparency=1)
    X = read(tmp_path).X
    assert X[:, 8, 3].tolist() == 4 * [[0, 0, 255]]
    assert X[:, 8, 12].tolist() == 4 * [[128, 128, 128]]


@pytest.mark.parametrize("ink", [0, 255])
def test_drawings_on_nothing_can_be_seen(tmp_path, ink):
    image = Image.new("LA", (16, 16), (ink, 0))
    image.paste((ink, 255), (0, 0, 8, 16))
    image.save(tmp_path / "x.png")
    assert read(tmp_path).X.std() > 50


@pytest.mark.parametrize("mode", ["RGB", "I;16"])
def test_cameras_that_were_turned(tmp_path, mode):
    pixels = np.zeros((16, 16), np.uint16)
    pixels[:8] = 65535
    image = Image.fromarray(pixels) if mode == "I;16" else Image.fromarray((pixels // 257).astype(np.uint8))
    exif = image.getexif()
    exif[0x0112] = 3  # upside down
    image.save(tmp_path / "a.png", exif=exif)
    X = read(tmp_path).X
    assert X[0, 12].mean() > 200 > X[0, 3].mean()


@pytest.mark.parametrize("name", ["x.gif", "x.png", "x.webp", "x.tif"])
def test_the_first_picture_of_several(tmp_path, name):
    first, second = Image.new("RGB", (16, 16), (255, 0, 0)), Image.new("RGB", (16, 16), (0, 0, 255))
    first.save(tmp_path / name, save_all=True, append_images=[second])
    pixel = read(tmp_path).X[0, 8, 8].astype(int)
    assert pixel[0] > 240
    assert pixel[2] < 15


@pytest.fixture
def colours(tmp_path):
    for i in range(12):
        Image.new("RGB", (40, 30), [(200 + i, 0, 0), (0, 0, 200 + i)][i % 2]).save(tmp_path / f"{i:02}.png")
    return sorted(tmp_path.iterdir())


@pytest.mark.parametrize("form", [list, tuple, pd.Series, np.array])
def test_paths_are_images_in_python(colours, form):
    X = form([str(path) for path in colours])
    model = KMeans(2, random_state=0).fit(X)
    assert model.spec_.shape == (3, 32, 32)
    assert model.labels_.tolist() in ([0, 1] * 6, [1, 0] * 6)
    assert np.array_equal(model.predict(X), model.labels_)
    assert np.array_equal(model.predict(colours), model.labels_)  # pathlib's paths too


def test_paths_are_brought_to_the_size_of_the_model(colours):
    model = KMeans(2, random_state=0).fit(open_data(str(colours[0].parent), image_size=16))
    assert np.array_equal(model.predict([str(path) for path in colours]), model.labels_)


def test_paths_that_lead_nowhere_are_named(colours):
    with pytest.raises(InputError, match=r"X holds names of images, but 'nowhere.png' in row 12"):
        KMeans(2).fit([*map(str, colours), "nowhere.png"])
    with pytest.raises(InputError, match=r"'a.jpg' in row 0 .* is no file"):
        KMeans(2).fit(["a.jpg", "b.jpg"])


def test_paths_of_images_without_a_known_range_are_refused(tmp_path):
    Image.fromarray(RAMP.astype(np.float32)).save(tmp_path / "x.tif")
    with pytest.raises(InputError, match=r"32 bits or floats \(.*x.tif\).*as one array"):
        KMeans(2).fit([str(tmp_path / "x.tif")] * 2)


def test_a_column_of_texts_is_texts():
    frame = pd.DataFrame({"text": ["cat dog", "bank loan", "dog pet cat", "loan cash bank"]})
    model = KMeans(2, random_state=0).fit(frame["text"])
    assert np.array_equal(model.labels_, KMeans(2, random_state=0).fit(frame["text"].tolist()).labels_)
    assert np.array_equal(model.predict(frame["text"].astype(object)), model.labels_)
    assert np.array_equal(model.predict(frame["text"].to_numpy()), model.labels_)
    frame.loc[2, "text"] = None
    with pytest.raises(InputError, match=r"X holds texts, but in row 2 .* fill it in"):
        KMeans(2).fit(frame["text"])
    with pytest.raises(InputError, match="one dimension"):
        KMeans(2).fit(pd.Series([1.0, 2.0, 3.0]))
