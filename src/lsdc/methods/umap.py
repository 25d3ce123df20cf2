"""UMAP and a Gaussian mixture: a common recipe, as a baseline next to K-means. Fitting needs umap-learn."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b
from typing import Any

import numpy as np
import torch
from pydantic import Field, PositiveInt
from sklearn.mixture import GaussianMixture
from torch import Tensor

from lsdc.data.sources import Data
from lsdc.errors import InputError, Unsuitable
from lsdc.functional import nearest_among
from lsdc.methods.base import Arrays, Estimator
from lsdc.methods.saving import check_tensors
from lsdc.methods.validation import whole_number
from lsdc.training.context import Context
from lsdc.training.plan import Frozen
from lsdc.training.rng import derive

AMONG = 5  # training samples that place a new one: on half of digits 96.7 % get the label of UMAP's own transform
FEWEST = 3  # distinct samples that UMAP can embed


class Settings(Frozen):
    """The settings of UMAP and its mixture."""

    n_clusters: PositiveInt
    n_neighbors: int = Field(ge=2)
    n_components: PositiveInt
    n_epochs: PositiveInt | None
    n_init: PositiveInt


class UMAPMixture(Estimator):
    """UMAP to a few dimensions, then a Gaussian mixture with full covariances.

    A new sample is embedded at the mean of its five nearest training samples, weighted by the inverse of their
    distances, so the model and its file contain all training samples. (umap-learn's own ``transform`` cannot be
    stored without pickle.)

    Parameters
    ----------
    n_clusters : int
        The number of clusters K: the components of the mixture.
    n_neighbors : int
        Neighbours of each sample in UMAP's graph, capped at all other samples.
    n_components : int
        Dimensions of the embedding, capped at the number of distinct samples minus two.
    n_epochs : int or None
        Epochs of UMAP; by default its own choice, 500 for up to 10,000 samples and 200 for more.
    n_init : int
        Starts of the mixture; the one with the highest likelihood is kept.
    random_state : int, RandomState or None
        The same number gives the same labels.
    device : str
        Accepted for consistency; UMAP runs on one CPU thread.

    Attributes
    ----------
    embedding_ : array (n, n_components)
        Where UMAP placed each sample of X.
    labels_, n_clusters_
        As for ``LSDC``.
    """

    method = "umap"
    settings = Settings

    def __init__(
        self,
        n_clusters: Any = 8,
        *,
        n_neighbors: int = 30,
        n_components: int = 10,
        n_epochs: int | None = None,
        n_init: int = 5,
        random_state: Any = None,
        device: str = "auto",
    ) -> None:
        self.n_clusters = n_clusters
        self.n_neighbors = n_neighbors
        self.n_components = n_components
        self.n_epochs = n_epochs
        self.n_init = n_init
        self.random_state = random_state
        self.device = device

    def _resolve(self, shape: tuple[int, ...], n: int, sparse: bool = False) -> Settings:
        whole_number("n_neighbors", self.n_neighbors, least=2)
        whole_number("n_components", self.n_components)
        whole_number("n_init", self.n_init)
        if self.n_epochs is not None:
            whole_number("n_epochs", self.n_epochs)
        settings: Settings = super()._resolve(shape, n, sparse)
        return settings

    def _prepare(self, settings: Settings, seed: int) -> None:
        _umap()  # a missing library is reported before anything is written

    def _fit(self, data: Data, settings: Settings, prepared: None, context: Context) -> None:
        self._keep(torch.cat([x.flatten(1) for x in data.chunks()]))  # bit for bit what prediction will see
        seed = derive(context.seed, "umap") % 2**32
        ranks = {key: rank for rank, key in enumerate(self._rows)}
        distinct = self._samples[[self._rows[key] for key in ranks]].numpy()
        self.embedding_ = self._embedded(distinct, seed)[[ranks[key] for key in _keys(self._samples)]]
        mixture = GaussianMixture(settings.n_clusters, n_init=settings.n_init, random_state=seed).fit(
            self.embedding_.astype(np.float64)
        )
        found = (mixture.weights_, mixture.means_, mixture.precisions_cholesky_)
        self._mixture = tuple(torch.from_numpy(np.asarray(part, np.float64)) for part in found)
        self.history_ = []

    def _keep(self, samples: Tensor) -> None:
        """Remember the samples, and where each distinct one is."""
        self._samples = samples
        self._rows = {key: row for row, key in enumerate(_keys(samples))}

    def _embedded(self, distinct: np.ndarray, seed: int) -> np.ndarray:
        """UMAP of the distinct samples, with a minimal distance of 0.

        Each is embedded once: more copies of a sample than neighbours would form a graph of their own.
        """
        if (n := len(distinct)) < FEWEST:
            return np.eye(n, dtype=np.float32)
        with warnings.catch_warnings(), _same_threads():
            warnings.simplefilter("ignore", UserWarning)  # about graphs in several parts, which clusters are
            reducer = _umap().UMAP(
                n_neighbors=min(self.n_neighbors, n - 1),
                n_components=min(self.n_components, n - 2),
                min_dist=0.0,
                n_epochs=self.n_epochs,
                random_state=seed,
                n_jobs=1,
            )
            return np.asarray(reducer.fit_transform(distinct), np.float32)

    def _outputs(self, data: Data) -> Arrays:
        """Features are the embedding, probabilities those of the mixture."""
        for x in data.chunks():
            z = self._placed(x.flatten(1))
            yield z.numpy(), _responsibilities(z.double(), *self._mixture).float().numpy()

    def _placed(self, f: Tensor) -> Tensor:
        """Positions in the embedding: training samples where UMAP put them, others among their nearest."""
        rows = torch.tensor([self._rows.get(key, -1) for key in _keys(f)])
        z = torch.from_numpy(self.embedding_)[rows]
        if (new := rows < 0).any():
            z[new] = self._among_nearest(f[new])
        return z

    def _among_nearest(self, f: Tensor) -> Tensor:
        """The mean position of the nearest training samples, weighted by the inverse of their distances."""
        near = nearest_among(f, self._samples, min(AMONG, len(self._samples)))
        weights = 1 / near.distances.double().clamp(min=torch.finfo(torch.float32).tiny)
        places = torch.from_numpy(self.embedding_)[near.indices].double()
        return ((weights[:, :, None] * places).sum(1) / weights.sum(1, keepdim=True)).float()

    def _state(self) -> dict[str, Tensor]:
        state = {"samples": self._samples, "embedding": torch.from_numpy(self.embedding_)}
        return state | dict(zip(("weights", "means", "precisions_cholesky"), self._mixture, strict=True))

    def _restore(self, tensors: dict[str, Tensor], settings: Settings) -> None:
        n, k = len(self.labels_), settings.n_clusters
        embedding = tensors.get("embedding", torch.empty(0))
        d = embedding.shape[1] if embedding.ndim == 2 else 0
        wanted = {
            "samples": torch.empty(n, self.n_features_in_, device="meta"),
            "embedding": torch.empty(n, d, device="meta"),
            "weights": torch.empty(k, dtype=torch.float64, device="meta"),
            "means": torch.empty(k, d, dtype=torch.float64, device="meta"),
            "precisions_cholesky": torch.empty(k, d, d, dtype=torch.float64, device="meta"),
        }
        check_tensors(tensors, wanted)
        if tensors["weights"].min() < 0 or not (tensors["precisions_cholesky"].diagonal(dim1=1, dim2=2) > 0).all():
            raise InputError("the mixture is invalid")
        self._keep(tensors["samples"])
        self.embedding_ = embedding.numpy()
        self._mixture = (tensors["weights"], tensors["means"], tensors["precisions_cholesky"])


@contextmanager
def _same_threads() -> Iterator[None]:
    """Restore PyTorch's thread count: numba changes it for the whole process, which would change rounding."""
    before = torch.get_num_threads()
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _umap() -> Any:
    """The library, or a line that says how to get it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ImportWarning)  # about a variant that needs tensorflow
            import umap
    except ImportError:
        raise Unsuitable("the method umap needs umap-learn: pip install 'lsd-clusters[umap]'") from None
    return umap


def _keys(f: Tensor) -> Iterator[bytes]:
    """A key for each row, the same for equal ones (-0 and 0 are one number, but not the same bytes)."""
    return (blake2b(row, digest_size=16).digest() for row in (f + 0.0).numpy())


def _responsibilities(z: Tensor, weights: Tensor, means: Tensor, cholesky: Tensor) -> Tensor:
    """p(component | z) under a mixture of Gaussians (n, K), from the Cholesky factors of the precisions."""
    white = torch.einsum("nkd,kde->nke", z[:, None] - means, cholesky)
    log_det = cholesky.diagonal(dim1=1, dim2=2).log().sum(1)
    return (weights.log() + log_det - white.square().sum(2) / 2).softmax(1)
