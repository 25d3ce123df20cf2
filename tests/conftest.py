"""One thread per test process, no downloads, and the same hypothesis examples on every machine."""

import os

import torch
from hypothesis import settings

torch.set_num_threads(1)
os.environ["LSDC_OFFLINE"] = "1"
settings.register_profile("lsdc", deadline=None, max_examples=40, derandomize=True)
settings.load_profile("lsdc")
