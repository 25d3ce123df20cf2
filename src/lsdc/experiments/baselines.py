"""The K-means rows that stand beside every result."""

import numpy as np
import torch

from lsdc.data.datasets import Dataset
from lsdc.errors import InputError
from lsdc.methods import KMeans, load
from lsdc.methods.lsdc import LSDC
from lsdc.metrics import Scores, score
from lsdc.training.checkpoint import Checkpoint
from lsdc.training.run import Run
