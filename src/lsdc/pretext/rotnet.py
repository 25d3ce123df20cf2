"""RotNet: tell which of four rotations was applied (section 3.1; Gidaris et al. 2018)."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lsdc.data.augment import Views
from lsdc.data.sampler import Batch
from lsdc.errors import Unsuitable
from lsdc.nn.backbone import Backbone
from lsdc.parallel import mean
from lsdc.training.health import Record


class RotNet:
    """Show each image in all four rotations and predict which is which."""

    name = "pretext"

    def __init__(self, backbone: Backbone, views: Views) -> None:
        if len(views.shape) != 3 or views.shape[1] != views.shape[2]:
            raise Unsuitable(f"pretext 'rotnet' needs square images, got samples of shape {views.shape}")
        self.module = nn.ModuleDict({"backbone": backbone, "head": nn.Linear(backbone.n_features, 4)})
        self.augment = views.augment

    def losses(self, batch: Batch) -> dict[str, Tensor]:
        x = self.augment(batch.x, batch.rng)
        rotated = torch.cat([x, *(x.rot90(turns, (2, 3)) for turns in (1, 2, 3))])
        turns = torch.arange(4, device=x.device).repeat_interleave(len(x))
        logits = self.module["head"](self.module["backbone"](rotated))
        right = (logits.argmax(1) == turns).float().mean()
        n = len(batch.indices)
        return {"loss": mean(F.cross_entropy(logits, turns), len(x), n), "accuracy": mean(right, len(x), n)}

    def summary(self, record: Record, history: list[Record]) -> Record:
        return {}
