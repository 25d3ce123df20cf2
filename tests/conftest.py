"""One thread per test process, no downloads, a cache of its own, and the same hypothesis examples on every machine."""

import os
import signal
import tempfile

import pytest
import torch
from hypothesis import settings

from browser import chromium, small_run  # noqa: F401 (fixtures for every test)

torch.set_num_threads(1)
os.environ["LSDC_OFFLINE"] = "1"
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job would hand its children an ignored one
settings.register_profile("lsdc", deadline=None, max_examples=40, derandomize=True)
settings.load_profile("lsdc")


@pytest.fixture(scope="session", autouse=True)
def own_cache():
    """What is decoded and encoded is kept where it does not outlive the tests."""
    with tempfile.TemporaryDirectory(prefix="lsdc-cache-") as folder:
        os.environ["LSDC_CACHE"] = folder
        yield
