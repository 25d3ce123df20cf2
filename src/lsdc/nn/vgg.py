"""VGG-4, the small network for grey images such as MNIST (section 4)."""

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
    return Backbone(stages, c_in * (height // 8) * (width_px // 8))
