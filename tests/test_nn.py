"""The networks of section 4, and what freezing means."""

import pytest
import torch
from torch import nn

from lsdc.nn.heads import HEADS
from lsdc.nn.network import BACKBONES, FITTED, Network, auto_backbone, seeded

SHAPES = {"resnet18": (3, 32, 32), "vgg4": (1, 24, 24), "vgg6": (3, 32, 32), "mlp": (2000,)}
SHAPES |= {
    "mlp-norm": (60,),
    "coder": (1, 8, 8),
    "projection": (256,),
    "topics": (256,),
    "words": (256,),
    "patches": (3, 32, 32),
}
every_backbone = pytest.mark.parametrize("name", BACKBONES)
every_trained_backbone = pytest.mark.parametrize("name", [name for name in BACKBONES if name not in FITTED])


def small(name, width=0.125):
    return seeded(lambda: BACKBONES[name](SHAPES[name], width), 0)


def batch(name, n=4):
    return torch.rand(n, *SHAPES[name], generator=torch.Generator().manual_seed(1))


def test_every_backbone_has_a_shape():
    assert SHAPES.keys() == BACKBONES.keys()


@every_backbone
def test_features_have_the_declared_size(name):
    backbone = small(name)
    assert backbone(batch(name)).shape == (4, backbone.n_features)


def test_sizes_are_those_of_the_paper():
    assert BACKBONES["resnet18"](SHAPES["resnet18"]).n_features == 512
    assert BACKBONES["vgg4"](SHAPES["vgg4"]).n_features == 512 * 3 * 3
    assert [stage[0].out_features for stage in BACKBONES["mlp"]((2000,)).stages] == [500, 500, 2000]
    assert [len(BACKBONES[name](SHAPES[name], 0.1).stages) for name in BACKBONES] == [4, 4, 3, 3, 2, 4, 1, 1, 1, 2]


def test_resnet_shortcuts_have_no_parameters():
    """18 layers: a stem, sixteen 3x3 convolutions, and the classifier of the network; no 1x1 convolution."""
    convolutions = [m for m in small("resnet18").modules() if isinstance(m, nn.Conv2d)]
    assert len(convolutions) == 17
    assert {m.kernel_size for m in convolutions} == {(3, 3)}


def test_resnet_shortcut_is_average_pooling_and_zero_channels():
    block = small("resnet18").stages[1][0]
    for parameter in block.norm2.parameters():
        nn.init.zeros_(parameter)  # silence the convolutions: the shortcut alone is left
    x = torch.rand(2, block.conv1.in_channels, 8, 8)
    y = block(x)
    torch.testing.assert_close(y[:, : x.shape[1]], nn.functional.avg_pool2d(x, 2))
    assert y[:, x.shape[1] :].eq(0).all()


@pytest.mark.parametrize("side", [8, 9, 32, 33, 96])
def test_resnet_takes_other_sizes(side):
    assert BACKBONES["resnet18"]((3, side, side), 0.1)(torch.rand(2, 3, side, side)).shape == (2, 51)


@pytest.mark.parametrize("side", [8, 9, 24, 28])
def test_vgg_takes_other_sizes(side):
    backbone = BACKBONES["vgg4"]((1, side, side), 0.1)
    assert backbone(torch.rand(2, 1, side, side)).shape == (2, backbone.n_features)


@every_backbone
def test_width_scales_the_features(name):
    if name == "coder":  # ten numbers, whatever the width
        return
    assert BACKBONES[name](SHAPES[name], 0.5).n_features == BACKBONES[name](SHAPES[name]).n_features / 2


@pytest.mark.parametrize("name", FITTED)
def test_what_is_fitted_to_the_data_has_nothing_to_train(name):
    assert not list(small(name).parameters())


@every_trained_backbone
def test_frozen_stages_stay_and_the_others_move(name):
    backbone = small(name)
    last = len(backbone.stages) - 1
    backbone.freeze(last)
    before = [{key: value.clone() for key, value in stage.state_dict().items()} for stage in backbone.stages]
    optimizer = torch.optim.SGD([p for p in backbone.parameters() if p.requires_grad], 0.1)
    backbone.train()
    backbone(batch(name)).square().sum().backward()
    optimizer.step()
    for i, stage in enumerate(backbone.stages):
        same = all(torch.equal(value, before[i][key]) for key, value in stage.state_dict().items())
        assert same == (i < last)  # weights, and the statistics of batch norm too


@every_trained_backbone
def test_frozen_stages_are_out_of_autograd(name):
    backbone = small(name)
    backbone.freeze(len(backbone.stages))
    assert not backbone(batch(name)).requires_grad
    backbone.freeze(0)
    assert backbone(batch(name)).requires_grad


@every_backbone
def test_freezing_needs_existing_stages(name):
    with pytest.raises(ValueError, match="n_frozen must be between 0 and"):
        small(name).freeze(9)


@pytest.mark.parametrize("head", HEADS)
def test_probabilities_are_probabilities(head):
    backbone = small("mlp")
    network = Network(backbone, HEADS[head](backbone.n_features, 5))
    f, logits, p = network(batch("mlp"))
    assert f.shape == (4, backbone.n_features)
    torch.testing.assert_close(p.sum(1), torch.ones(4))
    torch.testing.assert_close(logits.softmax(1), p)


@pytest.mark.parametrize(("head", "linear"), [("linear", True), ("normed", True), ("two-layer", False)])
def test_which_heads_separate_linearly(head, linear):
    """Logits of a mean of features are the mean of the logits."""
    module = seeded(lambda: HEADS[head](6, 3), 0)
    if head == "normed":
        module.train()(torch.randn(64, 6, generator=torch.Generator().manual_seed(0)) * 3 + 1)
    module.eval()
    a, b = torch.randn(2, 64, 6, generator=torch.Generator().manual_seed(1))  # two of them can share their signs
    with torch.no_grad():
        mean, apart = module((a + b) / 2), (module(a) + module(b)) / 2
    assert torch.allclose(mean, apart, atol=1e-5) == linear


def test_the_gentle_head_starts_undecided():
    module = seeded(lambda: HEADS["normed"](100, 10), 0)
    f = torch.randn(256, 100, generator=torch.Generator().manual_seed(0)) * 50 + 20
    assert module(f).softmax(1).max() < 0.2  # 0.1 is no opinion at all


def test_auto_goes_by_the_shape():
    chosen = {shape: auto_backbone(shape) for shape in [(64,), (1, 8, 8), (1, 28, 28), (3, 32, 32), (1, 96, 96)]}
    assert list(chosen.values()) == ["mlp", "vgg4", "vgg4", "resnet18", "resnet18"]


def test_seeded_weights_leave_the_global_state_alone():
    torch.manual_seed(3)
    wanted = torch.rand(1)
    torch.manual_seed(3)
    first, second = (seeded(lambda: nn.Linear(4, 4), 7) for _ in range(2))
    assert torch.equal(torch.rand(1), wanted)
    assert torch.equal(first.weight, second.weight)
