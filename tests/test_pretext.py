"""The pretexts learn what they are for, through the one loop."""

import numpy as np
import pytest
import torch

from lsdc.data.augment import build_views
from lsdc.data.sampler import Batch
from lsdc.data.sources import Data, spec_of
from lsdc.errors import InputError
from lsdc.nn.network import BACKBONES, seeded
from lsdc.pretext import PRETEXTS, Contrastive, DenoisingAutoencoder, RotNet
from lsdc.training.context import Context
from lsdc.training.loop import train
from lsdc.training.plan import Plan

CPU = torch.device("cpu")


def bars(n=120):
    """Images with a bright upper edge: their rotation can be told."""
    X = np.random.default_rng(0).random((n, 8, 8)).astype(np.float32) * 0.3
    X[:, :2] += 1
    return Data(X, spec_of(X))


def low_rank(n=200, d=12):
    """Vectors of two hidden numbers: a lost value can be told from the others."""
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(n, 2)) @ rng.normal(size=(2, d))).astype(np.float32)
    return Data(X, spec_of(X))


def learned(pretext, data, augment, backbone, epochs=15):
    views = build_views(augment, data.spec.shape)
    objective = seeded(lambda: pretext(BACKBONES[backbone](views.shape, 0.1), views), 0)
    plan = Plan(epochs=epochs, batch_size=40, optimizer="adam", lr=3e-3, weight_decay=0)
    return train(objective, data, plan, Context(0, CPU))


def test_rotations_are_learned():
    history = learned(RotNet, bars(), "none", "vgg4")
    assert history[0]["accuracy"] < history[-1]["accuracy"]
    assert history[-1]["accuracy"] > 0.95


def test_each_image_is_shown_in_all_four_rotations():
    views = build_views("none", (1, 8, 8))
    objective = RotNet(BACKBONES["vgg4"]((1, 8, 8), 0.1), views)
    seen = []
    objective.module["backbone"].register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))
    x = torch.rand(3, 1, 8, 8)
    objective.losses(Batch(x, torch.arange(3), torch.Generator(), 0.0))
    for turns, shown in enumerate(seen[0].split(3)):
        assert torch.equal(shown, x.rot90(turns, (2, 3)))


def test_rotations_need_square_images():
    with pytest.raises(InputError, match="square images"):
        RotNet(BACKBONES["vgg4"]((1, 8, 16), 0.1), build_views("none", (1, 8, 16)))


def test_lost_values_are_given_back():
    history = learned(DenoisingAutoencoder, low_rank(), "none", "mlp", epochs=40)
    assert history[-1]["loss"] < 0.1 < history[0]["loss"]  # the data has variance 1


def test_images_are_rebuilt_from_their_views():
    history = learned(DenoisingAutoencoder, bars(), "affine", "vgg4")
    assert history[-1]["loss"] < history[0]["loss"] / 3


def test_views_of_a_sample_find_each_other():
    history = learned(Contrastive, low_rank(), "noise", "mlp")
    assert history[-1]["loss"] < history[0]["loss"] / 1.5


def test_the_autoencoder_never_sees_the_clean_vector():
    views = build_views("noise", (500,))
    objective = DenoisingAutoencoder(BACKBONES["mlp"]((500,), 0.1), views)
    seen = []
    objective.module["backbone"].register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))
    objective.losses(Batch(torch.ones(8, 500), torch.arange(8), torch.Generator().manual_seed(0), 0.0))
    assert 0.15 < (seen[0] == 0).float().mean() < 0.25


@pytest.mark.parametrize("name", PRETEXTS)
def test_pretexts_are_objectives_or_nothing(name):
    views = build_views("none", (1, 8, 8))
    backbone = BACKBONES["mlp" if name == "stacked" else "vgg4"]((1, 8, 8), 0.1)
    objective = PRETEXTS[name](backbone, views)
    assert (objective is None) == (name == "none")
    assert objective is None or objective.name == "pretext"  # where checkpoints and baselines look for it
