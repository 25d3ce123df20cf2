"""VGG-4, the small network for grey images such as MNIST (section 4), and VGG-6, a cheap one for colour images."""

from torch import nn

from lsdc.nn.backbone import Backbone


def vgg4(shape: tuple[int, ...], width: float = 1.0) -> Backbone:
    """Four 5x5 convolutions (64-128-256-512) with batch norm and ReLU, 2x2 max-pooling after the first three."""
    c_in, height, width_px = shape
    stages = []
    for i, c in enumerate((64, 128, 256, 512)):
        c_out = max(1, round(c * width))
        layers = [nn.Conv2d(c_in, c_out, 5, padding=2, bias=False), nn.BatchNorm2d(c_out), nn.ReLU(inplace=True)]
        stages.append(nn.Sequential(*layers, *([nn.MaxPool2d(2)] if i < 3 else [])))
        c_in = c_out
    n_places = (height // 8) * (width_px // 8)
    return Backbone(stages, c_in * n_places, n_places)


def vgg6(shape: tuple[int, ...], width: float = 1.0) -> Backbone:
    """Six convolutions (64-128-128-256-256-512) with batch norm and ReLU in three stages, then the mean over positions.

    The first is 5x5 with stride 2, the others are 3x3, and the first two stages end in 2x2 max-pooling: at the same
    width an eighth of the time of ResNet-18, which on a CPU is worth more than depth (not in the paper).
    """
    a, b, c, d = (max(1, round(n * width)) for n in (64, 128, 256, 512))
    pairs = [(shape[0], a, b), (b, b, c), (c, c, d)]
    stages = []
    for i, (c_in, c_mid, c_out) in enumerate(pairs):
        size, stride = (5, 2) if i == 0 else (3, 1)
        layers = [
            nn.Conv2d(c_in, c_mid, size, stride, size // 2, bias=False),
            nn.BatchNorm2d(c_mid),
            nn.ReLU(inplace=True),
        ]
        layers += [nn.Conv2d(c_mid, c_out, 3, padding=1, bias=False), nn.BatchNorm2d(c_out), nn.ReLU(inplace=True)]
        stages.append(nn.Sequential(*layers, nn.MaxPool2d(2) if i < 2 else nn.AdaptiveAvgPool2d(1)))
    return Backbone(stages, d)
