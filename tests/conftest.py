"""One thread per test process, no downloads, and the same hypothesis examples on every machine."""

import os
import signal

import torch
from hypothesis import settings

from browser import chromium, small_run  # noqa: F401 (fixtures for every test)

torch.set_num_threads(1)
os.environ["LSDC_OFFLINE"] = "1"
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job would hand its children an ignored one
settings.register_profile("lsdc", deadline=None, max_examples=40, derandomize=True)
settings.load_profile("lsdc")
