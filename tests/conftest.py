"""One thread per test process, and the same hypothesis examples on every machine."""

import torch
from hypothesis import settings

torch.set_num_threads(1)
settings.register_profile("lsdc", deadline=None, max_examples=40, derandomize=True)
settings.load_profile("lsdc")
