"""What ``import lsdc`` gives: every public name, none of them before it is asked for."""

import importlib
import subprocess
import sys

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
