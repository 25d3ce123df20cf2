"""The code blocks of README.md and docs/*.md, the data they speak of in small, and which commands are only parsed."""

import re
import shlex
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import typer
from PIL import Image
from sklearn.datasets import make_blobs

from lsdc.cli.main import app
from lsdc.cli.parameters import changes_of, methods_of, settings, words
from lsdc.data.datasets import DATASETS
from lsdc.experiments.paper import check_methods, table
from lsdc.experiments.recipes import SCALES
from test_encoders import network

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]

# commands whose words, options and names are checked, and that are not run here; each line must still be needed
ONLY_PARSED = {
    r"lsdc explore": "serves until Ctrl-C; test_explore_process.py starts it",
    r"lsdc refine": "needs corrections; test_refine.py makes some and runs it",
    r"lsdc compare": "runs every method in its own process, for minutes; test_compare.py runs small ones",
    r"lsdc reproduce": "runs for minutes to days; test_reproduce.py runs small ones",
    r"facebook/dinov2-small": "downloads a model; test_encoders.py has one in a folder",
    r"lsdc fit digits": "takes half a minute; test_cli.py fits the digits with fewer epochs",
    r"torchrun": "starts processes; test_torchrun.py does, with gloo",
}
QUICK = ["--overwrite", "--set", "n_init=2", "--set", "epochs=1"]  # the real method, briefly
PIXELS = ["--overwrite", "--method", "kmeans"]  # a network that learns from pixels takes half a minute


class Block(NamedTuple):
    """A fenced block: where it is, its language and its text."""

    page: str
    language: str
    text: str


def blocks() -> list[Block]:
    """All of them, in their order."""
    fence = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
    return [Block(page.name, *found.groups()) for page in PAGES for found in fence.finditer(page.read_text())]


def commands(block: Block) -> list[list[str]]:
    """The words of each line of a block of commands, comments left out; continued lines are one."""
    lines = block.text.replace("\\\n", " ").splitlines()
    return [found for line in lines if (found := shlex.split(line, comments=True))]


def is_shell(block: Block) -> bool:
    """Whether a block is something to type, not something to read."""
    first = block.text.split()[0]
    typed = first in {"lsdc", "make", "torchrun", "export", "curl", "python3"}
    return block.language in ("bash", "sh") or (not block.language and typed)


def lsdc_commands() -> list[list[str]]:
    """Every lsdc command that is documented, once, however many pages have it."""
    found = [tuple(words) for block in blocks() if is_shell(block) for words in commands(block)]
    return [list(words) for words in dict.fromkeys(found) if words[0] == "lsdc"]


def reason(words: list[str]) -> str | None:
    """Why a command is only parsed, if it is."""
    return next((why for pattern, why in ONLY_PARSED.items() if re.search(pattern, " ".join(words))), None)


def parsed(arguments: list[str]) -> None:
    """Refuse what the command line would refuse before it reads any data: words, options, values, names."""
    group = typer.main.get_command(app)
    name, command, rest = group.resolve_command(group.make_context("lsdc", [*arguments]), arguments)
    given = command.make_context(name, rest).params
    if name == "compare":
        methods = methods_of(given["methods"])
        changes_of(given["set_"] or [], methods)
    elif name == "reproduce":
        base = "table1" if given["name"] == "figures" else given["name"]
        named = words(given["datasets"], "--datasets", "datasets") if given["datasets"] else table(base).datasets
        assert set(named) <= DATASETS.keys()
        assert given["scale"] in SCALES
        check_methods(base, methods_of(given["methods"]) if given["methods"] not in (None, "all") else [])
    elif name == "fit":
        settings(given["set_"] or [], given["method_"] or "lsdc")


def quickly(words: list[str]) -> list[str]:
    """The arguments of a command with what makes a fit short."""
    if words[1] != "fit":
        return words[1:]
    of_pixels = words[2] == "photos/" and "--encoder" not in words
    return [*words[1:], *(PIXELS if of_pixels else QUICK)]


def write_data(folder: Path) -> None:
    """The files and folders that the pages speak of."""
    rng = np.random.default_rng(0)
    for name, n in (("photos", 40), ("new_photos", 5)):
        (folder / name).mkdir()
        for i in range(n):
            pixels = rng.integers(0, 60, (32, 32, 3), dtype=np.uint8)
            pixels[..., i % 3] += np.uint8(180)
            Image.fromarray(pixels).save(folder / name / f"{i:02}.png")
    (folder / "photos" / "notes.txt").write_text("not an image")
    (folder / "photos" / "bad.jpg").write_bytes(b"nor is this")
    for name in ("net.onnx", "dinov2-small.onnx"):
        network(folder / name, meta={"mean": "0.5", "std": "0.25"})
    topics = ("the cat and the dog sleep", "the bank raised its rates", "sun after rain and cloud", "trains run late")
    texts = [f"{topics[i % 4]} {'abcdefghij'[i % 10]}{i // 10}" for i in range(120)]
    (folder / "notes.txt").write_text("\n".join([*texts, ""]))
    (folder / "mails.csv").write_text("\n".join(["id,text", *(f"{i},{t}" for i, t in enumerate(texts)), ""]))
    X, _ = make_blobs(300, 3, centers=5, center_box=(5, 80), random_state=0)
    rows = [f"c{i},{a:.2f},{1000 * b:.2f},{c:.2f}" for i, (a, b, c) in enumerate(abs(X))]
    (folder / "customers.csv").write_text("\n".join(["customer_id,age,income,visits", *rows, ""]))
    write_vectors(folder)


def write_vectors(folder: Path) -> None:
    """Embeddings of four groups in one file, of nine in another, in two formats."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    draw = partial(make_blobs, n_features=64, random_state=0)
    four, nine = draw(400, centers=4)[0], draw(450, centers=9)[0]
    np.save(folder / "vectors.npy", four)
    np.save(folder / "nine.npy", nine)
    ids = [f"sample {i}" for i in range(len(nine))]
    pq.write_table(pa.table({"id": ids, "embedding": list(nine)}), folder / "vectors.parquet")
