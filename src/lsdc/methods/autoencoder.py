"""What DEC, IDEC and VaDE share: an estimator on the codes of an autoencoder that is trained layer by layer."""

from typing import Any

from lsdc.methods.deep import DeepEstimator

WARMUP = 2.0  # epochs in which the learning rate ramps up: full steps of a fresh Adam can undo the pretraining


class AutoencoderEstimator(DeepEstimator):
    """A method that clusters the codes of a stacked autoencoder d-500-500-2000-10; images are flattened."""

    pretrained = ("backbone", "decoder")

    def __init__(
        self,
        n_clusters: Any = 8,
        *,
        n_init: Any = 1,
        width: Any = "auto",
        pretext_plan: Any = None,
        epochs: Any = "auto",
        batch_size: Any = "auto",
        lr: Any = "auto",
        random_state: Any = None,
        device: str = "auto",
        n_workers: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_init = n_init
        self.width = width
        self.pretext_plan = pretext_plan
        self.epochs = epochs
        self.batch_size = batch_size
        self.lr = lr
        self.random_state = random_state
        self.device = device
        self.n_workers = n_workers

    def _defaults(self, shape: tuple[int, ...], sparse: bool) -> dict[str, Any]:
        pretext = {"pretext": "stacked", "pretext_steps": 3000, "pretext_least": 60}
        pretext |= {"pretext_batch": 256} if self.batch_size == "auto" else {}
        network = {"backbone": "coder", "width": 0.5, "augment": "none"}
        return {**network, **pretext, "schedule": "constant", "batch_size": 256}
