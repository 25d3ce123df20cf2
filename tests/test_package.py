"""What ``import lsdc`` gives: every public name, none of them before it is asked for."""

import importlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import lsdc


def test_every_public_name_is_there():
    listed = dir(lsdc)
    assert set(lsdc.__all__) <= set(listed)
    for name in set(lsdc.__all__) - {"METHODS", "datasets"}:
        assert getattr(lsdc, name).__name__ == name
    assert lsdc.METHODS["lsdc"] is lsdc.LSDC
    assert lsdc.datasets is importlib.import_module("lsdc.data.datasets")
    with pytest.raises(AttributeError, match="no attribute 'LSCD'"):
        lsdc.LSCD


def test_parts_are_found_without_an_import_of_their_own():
    for name in ("data", "functional", "methods", "metrics", "nn", "parallel", "pretext", "training"):
        assert lsdc.__getattr__(name) is importlib.import_module(f"lsdc.{name}")


def test_importing_lsdc_imports_no_pytorch():
    heavy = {"torch", "sklearn", "scipy", "numpy"}
    code = f"import sys, lsdc; assert not {heavy} & sys.modules.keys()"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_commit_is_marked_only_if_the_sources_were_changed(tmp_path):
    def git(*words):
        names = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
        done = subprocess.run(["git", "-C", str(tmp_path), *names, *words], capture_output=True, text=True, check=True)
        return done.stdout.strip()

    shutil.copytree(Path(lsdc.__file__).parent, tmp_path / "src/lsdc", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "figures.md").write_text("1\n")
    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "all")

    def commit():
        run = [sys.executable, "-c", "from lsdc.runs.environment import _commit; print(_commit())"]
        env = {**os.environ, "PYTHONPATH": str(tmp_path / "src")}
        return subprocess.run(run, env=env, capture_output=True, text=True, check=True).stdout.strip()

    head = git("rev-parse", "HEAD")
    (tmp_path / "figures.md").write_text("2\n")  # a result, measured with the sources as they were committed
    assert commit() == head
    with (tmp_path / "src/lsdc/metrics.py").open("a") as file:
        file.write("# changed\n")
    assert commit() == f"{head}+"
