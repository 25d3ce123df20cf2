"""What the documentation shows, runs."""

import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import make_blobs

import lsdc
from lsdc import METHODS
from lsdc.metrics import clustering_accuracy

DOCS = Path(__file__).parent.parent / "docs"


def test_the_method_of_the_example_works(tmp_path, monkeypatch):
    (code,) = re.findall(r"```python\n(.*?)```", (DOCS / "adding-things.md").read_text(), re.DOTALL)
    assert len([line for line in code.splitlines() if line.strip()]) <= 40
    names: dict = {"__name__": "example"}
    exec(compile(code, "adding-things.md", "exec"), names)
    monkeypatch.setitem(METHODS, "self-label", names["SelfLabel"])
    X, y = make_blobs(300, 5, centers=3, random_state=0)
    model = names["SelfLabel"](3, random_state=0).fit(X)
    assert clustering_accuracy(y, model.labels_) > 0.9
    model.save(tmp_path / "model.safetensors")
    assert np.array_equal(lsdc.load(tmp_path / "model.safetensors").predict_proba(X), model.predict_proba(X))
    with pytest.raises(lsdc.InputError, match="self-label takes images and dense vectors, not texts; methods that do"):
        names["SelfLabel"](2).fit(["a text", "another one", "third words"])


def test_every_method_has_a_row():
    rows = (DOCS / "methods.md").read_text()
    assert all(f"| `{name}` |" in rows for name in METHODS)


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
