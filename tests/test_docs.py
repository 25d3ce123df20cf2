"""What the documentation shows, runs."""

import importlib.util
import re
import shutil
import subprocess
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
import yaml
from sklearn.datasets import load_digits, make_blobs
from torch.distributed.run import get_args_parser

import lsdc
from documented import (
    ONLY_PARSED,
    PAGES,
    ROOT,
    Block,
    blocks,
    commands,
    is_shell,
    lsdc_commands,
    parsed,
    quickly,
    reason,
    write_data,
)
from exploring import client_of, session_of
from exploring import fitted as fitted_photos
from exploring import photos as some_photos
from lsdc import METHODS
from lsdc.cli.main import USAGE
from lsdc.errors import InputError
from lsdc.methods import graph
from lsdc.metrics import clustering_accuracy
from lsdc.training.health import symptoms
from test_cli import inside

DOCS = ROOT / "docs"
BLOCKS = blocks()
brief = pytest.mark.filterwarnings("ignore::lsdc.HealthWarning")  # fits of an epoch end with clusters that are empty

# blocks that show what is printed, by page and first word, and the command that prints it
PRINTED = {
    ("your-own-data.md", "photos:"): "fit photos/ -k 3",
    ("your-own-data.md", "notes.txt:"): "fit notes.txt -k 3",
    ("your-own-data.md", "customers.csv:"): "fit customers.csv -k 3",
    ("your-own-data.md", "vectors.npy:"): "fit vectors.npy -k 12",
    ("data.md", "customers.csv:"): "fit customers.csv -k 5",
}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with the data of the pages, and a run of it."""
    folder = tmp_path_factory.mktemp("docs")
    write_data(folder)
    done = inside("fit", "photos", "-k", 3, "--method", "kmeans", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder


def test_every_block_is_checked_somewhere():
    """A block of a new kind fails here until a test below knows it."""
    others = [b for b in BLOCKS if not (b.language == "python" or is_shell(b) or b.language == "yaml")]
    known = {("architecture.md", "cli/"), *PRINTED, *((page, word) for page, word, _ in messages())}
    assert {(b.page, b.text.split()[0]) for b in others} == known


# ---- commands ---------------------------------------------------------------------------------------------------


def test_every_command_is_understood():
    for words in lsdc_commands():
        parsed(words[1:])
    needed = [pattern for pattern in ONLY_PARSED if any(re.search(pattern, " ".join(w)) for w in shell_lines())]
    assert needed == list(ONLY_PARSED)


def shell_lines() -> list[list[str]]:
    return [words for block in BLOCKS if is_shell(block) for words in commands(block)]


@pytest.mark.parametrize("wrong", ["fit x --cluster 3", "fit x --set epoch=3", "compare x --methods lscd", "fti x"])
def test_a_command_with_a_mistake_is_not(wrong):
    with pytest.raises((InputError, USAGE), match=r"(?i)no such|unknown|did you mean"):
        parsed(wrong.split())


@brief
@pytest.mark.parametrize("words", [w for w in lsdc_commands() if not reason(w)], ids=" ".join)
def test_the_command_runs(words, place):
    if "wordllama" in words:
        pytest.importorskip("wordllama")
    done = inside(*quickly(words), cwd=place)
    assert done.returncode == 0, done.stderr
    if words[1] == "fit":
        assert {"labels.csv", "report.html", "model.safetensors"} <= {f.name for f in newest(place / "runs").iterdir()}


def newest(folder):
    return max(folder.iterdir(), key=lambda run: (run / "labels.csv").stat().st_mtime_ns)


def test_torchrun_shares_commands_that_there_are():
    lines = [words for words in shell_lines() if "torchrun" in words]
    (block,) = [b for b in BLOCKS if b.language == "yaml"]
    (container,) = yaml.safe_load(block.text)["spec"]["template"]["spec"]["containers"]
    lines.append(container["command"])
    assert len(lines) >= 4
    for words in lines:
        given = get_args_parser().parse_args(words[words.index("torchrun") + 1 :])
        assert (given.module, given.training_script) == (True, "lsdc")
        parsed(given.training_script_args)


def test_scripts_of_other_shells_are_scripts():
    for block in BLOCKS:
        if block.language == "bash":
            subprocess.run(["bash", "-n"], input=block.text, text=True, check=True)


def test_other_commands_name_what_there_is(tmp_path):
    """make, pip, export and curl: their targets, extras, variables and addresses."""
    typed = [words for block in BLOCKS if is_shell(block) and not block.language for words in commands(block)]
    lines = [words for words in typed if words[0] not in ("lsdc", "torchrun")]
    project = (ROOT / "pyproject.toml").read_text()
    for words in lines:
        match words:
            case ["make", target]:
                assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE)
            case [pip, "install", "-c", file, what] if pip.endswith("pip"):
                assert (ROOT / file).exists()
                assert all(re.search(rf"^{extra} = \[", project, re.MULTILINE) for extra in re.findall(r"\w+", what))
            case ["export", assigned]:
                assert assigned.split("=")[0] == "LSDC_DATA"
            case ["python3", "-m", "venv", _] | ["source", _]:
                pass
            case ["curl", "-H", header, address]:
                run = fitted_photos(some_photos(tmp_path / "photos"), tmp_path / "run")
                client = client_of(session_of(run))
                name, value = header.replace("$TOKEN", "secret").split(": ")
                path = address.removeprefix("http://127.0.0.1:$PORT")
                assert client.get(path, headers={name: value}).status_code == 200
                assert client.get(path, headers={name: "Bearer of no token"}).status_code == 403
            case _:
                pytest.fail(f"nobody checks this command: {words}")


# ---- what is printed --------------------------------------------------------------------------------------------


def plain(line: str) -> str:
    """A line without its numbers: these are of other data."""
    return re.sub(r"-?\d[\d.,]*\d|-?\d", "#", line)


@pytest.mark.parametrize("key", PRINTED, ids=str)
def test_what_is_printed_is_what_the_page_shows(key, place):
    (block,) = [b for b in BLOCKS if (b.page, b.text.split()[0]) == key]
    done = inside(*PRINTED[key].split(), "--method", "kmeans", "--overwrite", cwd=place)
    printed = [plain(line) for line in done.stderr.splitlines()]
    for line in block.text.splitlines():
        shown = plain(line).removesuffix("...")
        assert any(found.startswith(shown) for found in printed), (shown, printed)


def messages() -> list[tuple[str, str, list[str]]]:
    """Blocks of when-it-goes-wrong.md by their first word, and what the code says in such a case."""
    dead, one = [1 / 4] * 4 + [0.0] * 8, [0.97] + [0.03 / 11] * 11
    ill = [symptoms({"shares": shares}, graph.REMEDIES) for shares in (one, dead)]
    thin = symptoms({"shares": [0.1] * 10, "density": 0.012, "spread": 0.0})
    page = "when-it-goes-wrong.md"
    return [
        (page, "warning:", [f"warning: epoch 1: {text}" for found in ill for text in found.values()]),
        (page, "the", list(thin.values())),
        (page, "too", []),
    ]


@pytest.mark.parametrize(("page", "word", "said"), messages(), ids=lambda value: str(value)[:20])
def test_warnings_are_quoted_as_they_are_said(page, word, said, place):
    (block,) = [b for b in BLOCKS if (b.page, b.text.split()[0]) == (page, word)]
    if word == "too":
        for file, k in (("vectors.npy", 12), ("nine.npy", 3)):
            done = inside("fit", file, "-k", k, "--method", "kmeans", "--overwrite", cwd=place)
            said = [*said, *done.stdout.splitlines(), *done.stderr.splitlines()]
    for line in block.text.splitlines():
        shown = plain(line).removesuffix("...")
        assert any(plain(text).startswith(shown) for text in said), (shown, said)


def test_the_layers_are_there():
    (block,) = [b for b in BLOCKS if b.page == "architecture.md"]
    names = [name for line in block.text.splitlines() for name in re.findall(r"\b\w+(?:/|\.py)", line[:46])]
    assert len(names) > 10
    assert all((ROOT / "src" / "lsdc" / name).exists() for name in names)


# ---- Python -----------------------------------------------------------------------------------------------------


def pythons(page: str) -> list[Block]:
    return [b for b in BLOCKS if b.language == "python" and b.page == page]


def known_names(place) -> dict:
    """What the pages take for granted: data, a model, and what was imported before."""
    X = np.load(place / "vectors.npy")
    quick = partial(lsdc.METHODS["lsdc"], n_init=2, epochs=1)
    paths = sorted((place / "photos").glob("*.png"))
    module = torch.nn.Sequential(torch.nn.AdaptiveAvgPool2d(2), torch.nn.Flatten())
    frame = pd.DataFrame(X, index=[f"row {i}" for i in range(len(X))])
    names = {"X": X, "X_new": X[:3], "vectors": X, "new_vectors": X[:3], "df": frame, "pd": pd, "module": module}
    texts = (place / "notes.txt").read_text().splitlines()
    return {**names, "lsdc": lsdc, "LSDC": quick, "model": quick(4), "paths": paths, "texts": texts}


@brief
@pytest.mark.parametrize("page", sorted({b.page for b in BLOCKS if b.language == "python"} - {"adding-things.md"}))
def test_python_runs(page, place, monkeypatch, tmp_path):
    """As it stands, with few epochs, fewer digits, and a network of ours in the place of one that is downloaded."""
    names = known_names(place)
    images = load_digits().images[:200]
    monkeypatch.setattr(lsdc, "LSDC", partial(names["LSDC"], **({} if page != "getting-started.md" else BRIEF)))
    monkeypatch.setattr("sklearn.datasets.load_digits", lambda: SimpleNamespace(images=images))
    work = shutil.copytree(place, tmp_path / "work")
    monkeypatch.chdir(work)
    for block in pythons(page):
        code = block.text.replace('"facebook/dinov2-small"', '"dinov2-small.onnx"')
        exec(compile(code, page, "exec"), names)
    if page == "getting-started.md":
        loaded = lsdc.load(work / "digits.safetensors")
        assert np.array_equal(loaded.predict(images), names["model"].labels_)


BRIEF = {"pretext_plan": {"epochs": 1}}


def test_the_method_of_the_example_works(tmp_path, monkeypatch):
    (block,) = pythons("adding-things.md")
    assert len([line for line in block.text.splitlines() if line.strip()]) <= 40
    names: dict = {"__name__": "example"}
    exec(compile(block.text, "adding-things.md", "exec"), names)
    monkeypatch.setitem(METHODS, "self-label", names["SelfLabel"])
    X, y = make_blobs(300, 5, centers=3, random_state=0)
    model = names["SelfLabel"](3, random_state=0).fit(X)
    assert clustering_accuracy(y, model.labels_) > 0.9
    model.save(tmp_path / "model.safetensors")
    assert np.array_equal(lsdc.load(tmp_path / "model.safetensors").predict_proba(X), model.predict_proba(X))
    with pytest.raises(lsdc.InputError, match="self-label takes images and dense vectors, not texts; methods that do"):
        names["SelfLabel"](2).fit(["red text", "green words", "blue letters"])


# ---- pages ------------------------------------------------------------------------------------------------------


def test_every_method_has_a_row():
    rows = (DOCS / "methods.md").read_text()
    assert all(f"| `{name}` |" in rows for name in METHODS)


def test_every_public_name_is_in_the_reference():
    text = (DOCS / "api.md").read_text()
    assert all(f"::: lsdc.{name}\n" in text + "\n" for name in lsdc.__all__)


def test_pictures_are_small_and_all_are_used():
    text = "".join(page.read_text() for page in PAGES) + (ROOT / "mkdocs.yml").read_text()
    for file in (DOCS / "pictures").iterdir():
        assert file.stat().st_size < (200_000 if file.suffix == ".png" else 300_000), file.name
        assert f"pictures/{file.name}" in text


def test_pictures_are_drawn_by_our_own_code(tmp_path, monkeypatch):
    spec = importlib.util.spec_from_file_location("pictures", DOCS / "pictures.py")
    pictures = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(pictures)
    monkeypatch.setattr(pictures, "HERE", tmp_path)
    pictures.main()
    drawn = {file.name for file in tmp_path.iterdir()}
    text = (DOCS / "how-it-works.md").read_text()
    assert drawn == set(re.findall(r"pictures/([\w-]+\.svg)", text))


def test_the_site_asks_nobody_for_anything(tmp_path):
    """Built with warnings as errors; nothing in a page is loaded from elsewhere."""
    pytest.importorskip("material")
    pytest.importorskip("mkdocstrings")
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    config = load_config(str(ROOT / "mkdocs.yml"), site_dir=str(tmp_path / "site"), strict=True)
    build(config)
    pages = sorted((tmp_path / "site").rglob("*.html"))
    assert len(pages) > len(PAGES)
    for page in pages:
        text = page.read_text()
        assert not re.findall(r"<(?:script|img|iframe|link)[^>]*(?:src|href)=\"?(?:https?:)?//[^\"> ]*", text), (
            page.name
        )
        assert "<p>- " not in text


@pytest.mark.parametrize("page", ["architecture.md", "paper-to-code.md"])
def test_files_and_names_that_a_page_points_to_are_there(page):
    package = Path(lsdc.__file__).parent
    spans = re.findall(r"`([\w/]+\.py)(?:: ([\w.]+))?", (DOCS / page).read_text())
    found = [(path, name) for path, name in spans if "NAME" not in path and not path.startswith("test_")]
    assert len(found) > 20
    for path, name in found:
        (file,) = [each for each in package.rglob(path.split("/")[-1]) if each.as_posix().endswith(f"/{path}")][:1]
        last = name.split(".")[-1]
        assert not last or re.search(rf"(?:def|class) {last}\b|^{last}\b.* = ", file.read_text(), re.M), (path, name)
