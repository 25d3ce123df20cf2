"""Contrastive learning: tell which two views belong to one sample (not in the paper; SimCLR, Chen et al. 2020)."""

from torch import Tensor, nn

from lsdc.data.augment import Views
from lsdc.data.sampler import Batch
from lsdc.functional import nt_xent
from lsdc.nn.backbone import Backbone
from lsdc.parallel import gather
from lsdc.training.health import Record


class Contrastive:
    """Find a sample's second view among those of the batch, after a projection that is discarded later.

    Features keep what the views share, so use strong augmentation: ``augment="colour"`` for photographs.
    """

    name = "pretext"

    def __init__(self, backbone: Backbone, views: Views, n_projected: int = 128, temperature: float = 0.2) -> None:
        n = backbone.n_features
        layers = [nn.Linear(n, n, bias=False), nn.BatchNorm1d(n), nn.ReLU(inplace=True), nn.Linear(n, n_projected)]
        self.module = nn.ModuleDict({"backbone": backbone, "projection": nn.Sequential(*layers)})
        self.augment, self.temperature = views.augment, temperature

    def losses(self, batch: Batch) -> dict[str, Tensor]:
        z1, z2 = (self._project(self.augment(batch.x, batch.rng), len(batch.indices)) for _ in range(2))
        return {"loss": nt_xent(z1, z2, self.temperature)}

    def _project(self, x: Tensor, n: int) -> Tensor:
        return gather(self.module["projection"](self.module["backbone"](x)), n)

    def summary(self, record: Record, history: list[Record]) -> Record:
        return {}
