"""What deep methods share: names to parts, the pretext stage, and encoding all samples with a network."""

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import torch
from pydantic import ValidationError
from torch import Tensor, nn

from lsdc import parallel
from lsdc.data.augment import AUGMENTATIONS, Views, build_views
from lsdc.data.sources import Data
from lsdc.errors import InputError, shown, unknown
from lsdc.methods.base import Arrays
from lsdc.nn.backbone import Backbone
from lsdc.nn.network import BACKBONES, seeded
from lsdc.pretext import PRETEXTS
from lsdc.training import device as devices
from lsdc.training.health import Record
from lsdc.training.loop import Context, train
from lsdc.training.plan import Frozen, Plan
from lsdc.training.rng import derive

CHUNK = 1024  # samples encoded in one go by a process
UNFIT = {"image": ("projection",), "vector": ("resnet18", "vgg4", "vgg6", "ricap", "cutmix")}  # parts, by kind of data

T = TypeVar("T")
S = TypeVar("S", bound=Frozen)


def part(kind: str, value: Any, table: Mapping[str, T]) -> T:
    """A part by its name, or the part itself."""
    if callable(value):
        return value  # type: ignore[no-any-return]
    if not isinstance(value, str) or value not in table:
        raise unknown(kind, value, table)
    return table[value]


def check_kind(parts: Mapping[str, str], shape: tuple[int, ...], unfit: Mapping[str, tuple[str, ...]] = UNFIT) -> None:
    """Refuse parts that are made for images where there are vectors, and the other way round."""
    is_image = len(shape) == 3
    for name, value in parts.items():
        if value in unfit["image" if is_image else "vector"]:
            raise InputError(f"{name} {value!r} needs {'vectors' if is_image else 'images'}, got {shape}")


def is_auto(value: Any) -> bool:
    """Whether a parameter is left to the method."""
    return isinstance(value, str) and value == "auto"


def epochs_for(steps: int, n: int, batch_size: int, least: int = 10) -> int:
    """Epochs enough for a number of steps, and never fewer than ``least``."""
    return max(least, math.ceil(steps / max(n // batch_size, 1)))


def validated(settings: Callable[..., S], values: dict[str, Any], prefix: str = "") -> S:
    """Settings from values; the first bad one is named in one line."""
    try:
        return settings(**values)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        if first["type"] == "extra_forbidden":
            raise unknown("setting", prefix + field, [prefix + name for name in settings.model_fields]) from None  # type: ignore[attr-defined]
        raise InputError(f"{prefix}{field}: {first['msg'].lower()}, got {shown(first['input'])}") from None


def validated_plan(values: dict[str, Any], changes: Any, name: str = "pretext_plan") -> Plan:
    """A plan from values and the changes a user makes to them."""
    if not isinstance(changes or {}, dict):
        raise InputError(f"{name} must be a dict such as {{'epochs': 20}}, got {changes!r}")
    return validated(Plan, {**values, **(changes or {})}, f"{name}.")


@torch.no_grad()
def assigned(p: Tensor) -> dict[str, Tensor]:
    """What the health checks look at, from the probabilities of a whole batch: cluster shares and confidence."""
    confidence, cluster = p.max(1)
    shares = torch.bincount(cluster, minlength=p.shape[1]) / len(p)
    return {"shares": shares, "confident": (confidence > 0.9).float().mean()}


def build_backbone(name: Any, views: Views, width: float, seed: int) -> Backbone:
    """The backbone for views of a shape, with seeded weights."""
    build = part("backbone", name, BACKBONES)
    backbone = seeded(lambda: build(views.shape, width), derive(seed, "backbone"))
    if not isinstance(backbone, Backbone):
        raise InputError(f"backbone {name!r} must build an lsdc.nn.Backbone, got {type(backbone).__name__}")
    return backbone


def views_of(augment: Any, shape: tuple[int, ...]) -> Views:
    """The views for samples of a shape."""
    part("augment", augment, AUGMENTATIONS)
    return build_views(augment, shape)


def pretrain(backbone: Backbone, pretext: Any, plan: Plan, views: Views, data: Data, context: Context) -> list[Record]:
    """Train the backbone on the pretext task."""
    build = part("pretext", pretext, PRETEXTS)
    objective = seeded(lambda: build(backbone, views), derive(context.seed, "pretext"))
    return train(objective, context.pretext_data or data, plan, context) if objective is not None else []


def encode(network: nn.Module, views: Views, data: Data, device: torch.device) -> Arrays:
    """Features and probabilities of all samples, part by part, in evaluation mode; processes share the work."""
    devices.place(network, device).eval()
    for block in torch.split(torch.arange(len(data)), CHUNK * parallel.size()):
        x = data.batch(parallel.own(block, len(block)))
        with torch.no_grad():
            output = network(views.plain(devices.move(x, device)))
        f, p = (parallel.gather(part, len(block)) for part in (output.f, output.p))
        yield f.cpu().numpy(), p.cpu().numpy()
