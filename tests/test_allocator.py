"""Freed memory stays with the process: page faults are counted, in processes of their own."""

import os
import platform
import subprocess
import sys

import pytest

from lsdc import allocator

STEPS = """
import resource, sys, torch
from lsdc import allocator
from lsdc.nn.network import BACKBONES
kept = sys.argv[1] == "kept" and allocator.keep_freed_memory()
torch.set_num_threads(1)
network = BACKBONES["vgg4"]((1, 28, 28), 0.25)
x = torch.randn(64, 1, 28, 28)
faults = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for step in range(15):
    if step == 5:
        before = faults()
    network(x).square().mean().backward()
print(faults() - before, kept)
"""
glibc = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="there is nothing to set without glibc")


def said(code, *words, **variables):
    """What a process says that has no settings for malloc but these."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_"))}
    run = [sys.executable, "-c", code, *words]
    return subprocess.run(run, env=plain | variables, capture_output=True, text=True, check=True).stdout.split()


@glibc
def test_a_step_faults_ten_times_less():
    (without, no), (kept, yes) = said(STEPS, "plain"), said(STEPS, "kept")
    assert (no, yes) == ("False", "True")
    assert int(kept) * 10 <= int(without)


@pytest.mark.parametrize(
    "variables", [{"MALLOC_TRIM_THRESHOLD_": "100000"}, {"GLIBC_TUNABLES": "glibc.malloc.trim_threshold=100000"}]
)
def test_settings_of_the_user_stay(variables):
    code = "from lsdc import allocator; print(allocator.keep_freed_memory())"
    assert said(code, **variables) == ["False"]


def test_other_systems_are_left_alone(monkeypatch):
    allocator._glibc.cache_clear()
    monkeypatch.setattr(sys, "platform", "darwin")
    assert allocator._glibc() is None
    allocator._glibc.cache_clear()


@glibc
def test_a_fit_and_an_encoding_ask_for_it():
    fit = "lsdc.KMeans(2).fit(np.eye(4))"
    encode = "lsdc.encode(np.zeros((2, 8, 8), 'uint8'), lambda x: x.flatten(1), size=8)"
    asked = "print(allocator.keep_freed_memory.cache_info().misses); allocator.keep_freed_memory.cache_clear()"
    assert said("; ".join(["import numpy as np, lsdc", "from lsdc import allocator", fit, asked, encode, asked])) == [
        "1",
        "1",
    ]
