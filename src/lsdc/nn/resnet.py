"""ResNet-18 for small images, as used for CIFAR and STL (section 4)."""

import torch.nn.functional as F
from torch import Tensor, nn

from lsdc.nn.backbone import Backbone


class Block(nn.Module):
    """Two 3x3 convolutions; where the shape changes, the shortcut is 2x2 average pooling and zero channels."""

    def __init__(self, c_in: int, c_out: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(c_in, c_out, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(c_out)
        self.conv2 = nn.Conv2d(c_out, c_out, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(c_out)
        self.stride, self.extra = stride, c_out - c_in

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.norm1(self.conv1(x)), inplace=True)
        y = self.norm2(self.conv2(y))
        if self.stride > 1:
            x = F.avg_pool2d(x, self.stride, self.stride, ceil_mode=True)
        if self.extra:
            x = F.pad(x, (0, 0, 0, 0, 0, self.extra))
        return F.relu(x + y, inplace=True)


def resnet18(shape: tuple[int, ...], width: float = 1.0) -> Backbone:
    """3x3 stem without pooling, four macro-blocks of two blocks, global average pooling; any size from 8x8."""
    channels = [max(1, round(c * width)) for c in (64, 128, 256, 512)]
    stem = [nn.Conv2d(shape[0], channels[0], 3, 1, 1, bias=False), nn.BatchNorm2d(channels[0]), nn.ReLU(inplace=True)]
    macro_blocks = []
    for i, c in enumerate(channels):
        c_in = channels[max(i - 1, 0)]
        macro_blocks.append([Block(c_in, c, 1 if i == 0 else 2), Block(c, c, 1)])
    macro_blocks[0] = [*stem, *macro_blocks[0]]  # type: ignore[list-item]
    macro_blocks[3].append(nn.AdaptiveAvgPool2d(1))  # type: ignore[arg-type]
    return Backbone([nn.Sequential(*layers) for layers in macro_blocks], channels[-1])
