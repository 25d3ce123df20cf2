"""Pictures of every kind, as cameras, microscopes and drawing programs write them."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest
from PIL import Image, ImageOps, features

from lsdc import InputError, KMeans
from lsdc.data import budget
from lsdc.data.files import open_data
from lsdc.data.summary import about_reading
from lsdc.errors import HealthWarning
from test_cli import QUICK, inside, refused

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
    assert model.cluster_names_ == ["cluster 0", "cluster 1"]  # not by the words of their names


def test_paths_are_brought_to_the_size_of_the_model(colours):
    model = KMeans(2, random_state=0).fit(open_data(str(colours[0].parent), image_size=16))
    assert np.array_equal(model.predict([str(path) for path in colours]), model.labels_)


def test_paths_that_lead_nowhere_are_named(colours):
    with pytest.raises(InputError, match=r"X lists image files, but 'nowhere.png' in row 12"):
        KMeans(2).fit([*map(str, colours), "nowhere.png"])
    with pytest.raises(InputError, match=r"'a.jpg' in row 0 .* does not exist"):
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
    with pytest.raises(InputError, match=r"X contains texts, but row 2 .* fill it in"):
        KMeans(2).fit(frame["text"])
    with pytest.raises(InputError, match="one dimension"):
        KMeans(2).fit(pd.Series([1.0, 2.0, 3.0]))


@pytest.fixture
def many(tmp_path):
    """More pictures than are decoded without keeping them, in two folders."""
    for i in range(40):
        folder = tmp_path / "photos" / ("warm" if i % 2 else "cold")
        folder.mkdir(parents=True, exist_ok=True)
        colour = (200 + i, 0, 0) if i % 2 else (0, 0, 200 + i)
        Image.new("RGB", (20, 18), colour).save(folder / f"{i:02}.jpg", quality=95)
    return tmp_path


def test_pictures_are_decoded_once(many, monkeypatch):
    monkeypatch.setenv("LSDC_CACHE", str(many / "cache"))
    seen = []
    first = read(many / "photos", watch=lambda what, done, total: seen.append(what))
    assert "decoding" in seen
    seen.clear()
    again = read(many / "photos", watch=lambda what, done, total: seen.append(what))
    assert set(seen) == {"looking at files"}
    assert np.array_equal(first.X, again.X)
    assert first.X.dtype == np.uint8
    monkeypatch.setattr("lsdc.data.cache.IN_MEMORY", 0)
    assert isinstance(read(many / "photos").X, np.memmap)
    Image.new("RGB", (20, 18), (9, 9, 9)).save(many / "photos" / "cold" / "00.jpg")  # the same name, another picture
    changed = read(many / "photos")
    assert changed.X[0].max() < 15
    assert np.array_equal(changed.X[1:], first.X[1:])


def test_pixels_larger_than_a_part_are_kept_in_parts(many, monkeypatch):
    monkeypatch.setenv("LSDC_CACHE", str(many / "cache"))
    whole = read(many / "photos").X
    monkeypatch.setenv("LSDC_CACHE", str(many / "other"))
    monkeypatch.setattr("lsdc.data.images.PART", 7 * 16 * 16 * 3)
    assert np.array_equal(read(many / "photos").X, whole)


def test_folders_serve_as_labels_and_one_photo_is_predicted(many):
    words = ["-k", 2, "--method", "kmeans", "--image-size", 8, "--out", "run"]
    done = inside("fit", "photos", *words, cwd=many)
    assert "--encoder" in done.stderr  # what would do better, and how
    scored = inside("evaluate", "run", "--labels-from-folders", "--json", cwd=many)
    assert '"acc": 1.0' in scored.stdout
    labels = (many / "run" / "labels.csv").read_text().splitlines()
    one = inside("predict", "run", "photos/warm/07.jpg", cwd=many).stdout.splitlines()
    assert [f"warm/{one[1]}"] == [line for line in labels if line.startswith("warm/07")]
    refused(inside("evaluate", "run", "--labels-from-folders", "--labels", "x.csv", cwd=many), "cannot be combined")
    (many / "photos" / "warm" / "01.jpg").rename(many / "photos" / "top.jpg")
    inside("fit", "photos", *words, "--overwrite", cwd=many)
    refused(
        inside("evaluate", "run", "--labels-from-folders", cwd=many), "1 of 40 samples are not in a sub-folder", "top"
    )


def test_photos_without_an_encoder_are_seen_as_patches(many):
    """Nothing is trained on them, unless a network is asked for."""
    for given, backbone in (((), "patches"), (("--set", "backbone=vgg4", *QUICK), "vgg4")):
        done = inside("fit", "photos", "-k", 2, *given, "--image-size", 16, "--out", f"run-{backbone}", cwd=many)
        assert done.returncode == 0, done.stderr
        config = json.loads((many / f"run-{backbone}" / "config.json").read_text())
        assert config["settings"]["backbone"] == backbone
        again = inside("fit", "photos", "--out", f"run-{backbone}", "--resume", cwd=many)
        assert again.returncode == 0, again.stderr


def test_files_that_are_no_images_are_listed(many):
    (many / "photos" / "film.mp4").write_bytes(b"0")
    (many / "photos" / ".DS_Store").write_bytes(b"0")
    (many / "photos" / "gone.png").symlink_to("nowhere")
    data = read(many / "photos")
    assert dict(data.skipped).keys() == {"film.mp4", "gone.png"}
    assert len(data.X) == 40
    said = about_reading(data)
    assert "left out, not named like images: 1 file (film.mp4)" in said
    assert "left out, cannot be read: 1 image (gone.png)" in said


def test_thumbnails_are_no_photos_and_linked_folders_are(tmp_path):
    """Hidden folders were clustered with the rest, and linked ones left out, both without a word."""
    for name in ("cats", ".thumbnails", "cats/.git", "@eaDir", "__MACOSX", "../elsewhere/deep"):
        (tmp_path / "photos" / name).mkdir(parents=True)
        Image.new("RGB", (9, 9)).save(tmp_path / "photos" / name / "x.jpg")
    for name, target in {"more": "../elsewhere", "also": "cats", "again": ".", "cats/up": ".."}.items():
        (tmp_path / "photos" / name).symlink_to(target)
    data = read(tmp_path / "photos")
    assert list(data.ids) == ["cats/x.jpg", "more/deep/x.jpg"]
    assert not data.skipped


def test_images_on_another_scale_are_pointed_out(tmp_path):
    """All of them were put into one cluster, with confidence."""
    images = np.random.default_rng(0).integers(0, 256, (40, 8, 8), np.uint8)
    np.save(tmp_path / "x.npy", images)
    np.save(tmp_path / "new.npy", images / 255)
    model = KMeans(2, n_init=1, random_state=0).fit(images)
    for wrong in (images / 255, images * np.uint16(257)):
        with pytest.warns(HealthWarning, match="a different scale from those the model was fitted on"):
            model.predict(wrong)
    with warnings.catch_warnings(action="error"):
        model.predict(images.astype(float))
        model.predict(images[:1] // 4)
        model.predict(np.zeros((1, 8, 8), np.uint8))
        warm = images / 50 + 300.0  # far from zero, but not on another scale
        KMeans(2, n_init=1, random_state=0).fit(warm).predict(warm)
    assert inside("fit", "x.npy", "-k", 2, "--method", "kmeans", "--out", "run", cwd=tmp_path).returncode == 0
    done = inside("predict", "run", "new.npy", cwd=tmp_path)
    assert done.stderr.startswith("warning: values of X (up to 1) are on a different scale")


@pytest.mark.parametrize(("name", "save"), [("x.heic", "HEIF"), ("x.avif", "AVIF")])
def test_pictures_of_telephones(tmp_path, name, save):
    pillow_heif = pytest.importorskip("pillow_heif")
    pillow_heif.register_heif_opener()
    if save == "AVIF" and not features.check("avif"):
        pytest.skip("this Pillow has no AVIF")
    Image.new("RGB", (32, 32), (200, 10, 10)).save(tmp_path / name, save)
    assert abs(read(tmp_path).X[0, 8, 8].astype(int) - [200, 10, 10]).max() < 12


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("name", ["x.jpg", "x.tif"])
def test_every_way_to_hold_a_camera(tmp_path, orientation, name):
    """As Pillow itself turns it; large ones too, which are made smaller first."""
    pixels = np.zeros((160, 160, 3), np.uint8)
    pixels[:80, :40] = (250, 0, 0)
    pixels[100:, 120:] = (0, 0, 250)
    image = Image.fromarray(pixels)
    exif = image.getexif()
    exif[0x0112] = orientation
    image.save(tmp_path / name, exif=exif)
    with Image.open(tmp_path / name) as stored:
        upright = ImageOps.exif_transpose(stored).convert("RGB").resize((16, 16), Image.Resampling.BOX)
    assert abs(read(tmp_path).X[0].astype(int) - np.asarray(upright).astype(int)).mean() < 12


def test_a_tag_that_cannot_be_read_says_nothing(tmp_path):
    image = Image.new("RGB", (16, 16), (200, 0, 0))
    exif = image.getexif()
    exif[0x0112] = 6
    data = exif.tobytes().replace(b"\x12\x01\x03\x00\x01\x00\x00\x00", b"\x12\x01\x03\x00\xff\xff\xff\xff")
    image.save(tmp_path / "x.jpg", exif=data)
    assert read(tmp_path).X[0, 8, 8, 0] > 180


def test_images_have_a_budget_of_pixels(tmp_path, monkeypatch):
    """One that is too large is left out before it is decoded; several share the room."""
    monkeypatch.setattr(budget, "PIXELS", 1_000_000)
    for name in "abcdef":
        Image.new("RGB", (900, 900), (200, 0, 0)).save(tmp_path / f"{name}.png")
    Image.new("RGB", (1001, 1000)).save(tmp_path / "bomb.png")
    most = []
    room = budget.Decoding.room
    monkeypatch.setattr(budget.Decoding, "room", lambda self, w, h: most.append(self.pixels + 0) or room(self, w, h))
    data = read(tmp_path)
    assert len(data.X) == 6
    assert data.skipped == (
        ("bomb.png", "not a readable image (1,001 x 1,000 pixels; the limit is 1 million; scale it down)"),
    )
    assert max(most) <= 1_000_000


def test_large_jpegs_are_decoded_at_a_fraction(tmp_path, monkeypatch):
    monkeypatch.setattr(budget, "PIXELS", 100_000)
    Image.new("RGB", (1600, 1200), (0, 200, 0)).save(tmp_path / "x.jpg")
    assert read(tmp_path).X[0, 8, 8, 1] > 180
