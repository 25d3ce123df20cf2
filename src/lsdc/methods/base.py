"""What every method is: a scikit-learn estimator over any kind of X, that can be saved and can label new data."""

import hashlib
import os
from abc import abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClusterMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor

import lsdc.data.sources as sources
from lsdc.data import texts
from lsdc.data.sources import Data, Spec
from lsdc.data.texts import TfIdf
from lsdc.errors import InputError
from lsdc.training import device as devices
from lsdc.training.checkpoint import write_tensors
from lsdc.training.loop import Context, Progress, Record
from lsdc.training.run import Run, environment

FORMAT = 1  # of saved models; a change that old code cannot read counts it up
Path_ = str | os.PathLike[str]


class Estimator(ClusterMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Validation, prediction, saving and the run folder; a method adds ``_fit``, ``_encode`` and its state."""

    method: ClassVar[str]
    n_clusters: int
    random_state: Any
    device: str
    n_workers: int = 0

    labels_: NDArray[np.int64]
    history_: list[Record]
    n_features_in_: int
    spec_: Spec

    # ---- what a method provides ---------------------------------------------------------------------------

    @abstractmethod
    def _settings(self, data: Data) -> dict[str, Any]:
        """Every setting of this fit, resolved for this data; raises ``InputError`` for a bad argument."""

    @abstractmethod
    def _fit(self, data: Data, context: Context) -> None:
        """Find the clusters."""

    @abstractmethod
    def _encode(self, data: Data) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Features (n, D) and probabilities (n, K) of samples."""

    @abstractmethod
    def _state(self) -> dict[str, Tensor]:
        """All that prediction needs."""

    @abstractmethod
    def _restore(self, tensors: dict[str, Tensor], settings: dict[str, Any]) -> None:
        """The inverse of ``_state``."""

    # ---- fitting and predicting ---------------------------------------------------------------------------

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        run: Run | Path_ | None = None,
        resume: Run | Path_ | None = None,
        monitor: Callable[[Progress], None] | None = None,
    ) -> Self:
        """Find the clusters of X; ``y`` is ignored.

        Parameters
        ----------
        X : array (n, d), sparse matrix, tensor, memmap, images (n, h, w), (n, h, w, c) or (n, c, h, w), or texts
            The samples, without labels.
        y : ignored
            There for scikit-learn.
        run : path
            A folder in which to keep checkpoints, metrics, labels and the model, so that nothing is lost.
        resume : path
            The folder of an interrupted run to go on with.
        monitor : callable
            Called with a ``Progress`` after every step and epoch.
        """
        data = self._data(X, reset=True)
        if not 1 <= self._check_count("n_clusters", self.n_clusters) <= len(data):
            raise InputError(f"n_clusters={self.n_clusters} is more than the {len(data)} samples of X")
        settings = self._settings(data)
        folder = self._folder(run, resume, settings, data)
        seed = self._seed()
        self.settings_ = settings
        self._fit(data, Context(seed, devices.choose(self.device), self.n_workers, folder, monitor or _silent))
        probabilities = self._encode(data)[1]
        self.labels_ = probabilities.argmax(1).astype(np.int64)
        if folder:
            self.save(folder.path / "model.safetensors")
            folder.write_labels(folder.ids or range(len(data)), self.labels_.tolist(), probabilities.max(1).tolist())
        return self

    def predict(self, X: Any) -> NDArray[np.int64]:
        """The cluster of each sample, new ones too."""
        return np.asarray(self.predict_proba(X).argmax(1), np.int64)

    def predict_proba(self, X: Any) -> NDArray[np.float32]:
        """The probability of each cluster for each sample (n, K)."""
        check_is_fitted(self)
        return self._encode(self._data(X, reset=False))[1]

    def transform(self, X: Any) -> NDArray[np.float32]:
        """The features of each sample (n, D)."""
        check_is_fitted(self)
        return self._encode(self._data(X, reset=False))[0]

    # ---- saving and loading -------------------------------------------------------------------------------

    def save(self, path: Path_) -> None:
        """Write the fitted model as one safetensors file; ``lsdc.load`` gives the same predictions to the bit."""
        check_is_fitted(self)
        header = {
            "format": FORMAT,
            "method": self.method,
            "params": plain(self.get_params()),
            "settings": self.settings_,
            "shape": list(self.spec_.shape),
            "n_features_in": self.n_features_in_,
            "history": self.history_,
        }
        tensors = {f"state/{name}": tensor for name, tensor in self._state().items()}
        tensors |= {"offset": self.spec_.offset, "scale": self.spec_.scale, "labels": torch.from_numpy(self.labels_)}
        if hasattr(self, "words_"):
            header["words"] = list(self.words_.words)
            tensors["idf"] = torch.from_numpy(self.words_.idf)
        try:
            write_tensors(Path(path), tensors, header)
        except OSError as error:
            raise InputError(f"{path}: cannot write the model there ({error.strerror})") from None

    @classmethod
    def _loaded(cls, path: Path, tensors: dict[str, Tensor], header: dict[str, Any]) -> Self:
        try:
            model = cls(**header["params"])
            model.spec_ = Spec(tuple(header["shape"]), tensors["offset"], tensors["scale"])
            model.settings_ = header["settings"]
            model.n_features_in_ = header["n_features_in"]
            model.history_ = header["history"]
            model.labels_ = tensors["labels"].numpy()
            if "words" in header:
                model.words_ = TfIdf(tuple(header["words"]), tensors["idf"].numpy())
            state = {name.removeprefix("state/"): t for name, t in tensors.items() if name.startswith("state/")}
            model._restore(state, header["settings"])
        except InputError:
            raise
        except (KeyError, TypeError, ValueError, RuntimeError) as error:
            raise InputError(f"{path}: the model does not fit together ({str(error).splitlines()[0]})") from None
        return model

    # ---- validation ---------------------------------------------------------------------------------------

    def _data(self, X: Any, reset: bool) -> Data:
        """X checked and wrapped; with ``reset`` its shape and scaling become the model's."""
        shape: tuple[int, ...]
        if isinstance(X, Tensor):
            X = X.detach().cpu().numpy()
        if texts_given := texts.are_texts(X):
            X = self._words(X, reset)
        elif not reset and hasattr(self, "words_"):
            raise InputError("the model was fitted on texts; X must be a list of strings")
        if not sp.issparse(X) and getattr(X, "ndim", 2) > 2:
            X = sources.check_images(X)
            shape = sources.image_shape(X.shape)
        else:
            X = self._vectors(X, reset)
            shape = (int(X.shape[1]),)
        if reset:
            if not texts_given and hasattr(self, "words_"):
                del self.words_
            if X.shape[0] < 2:
                raise InputError("X has 1 sample; clustering needs at least 2")
            self.n_features_in_ = int(np.prod(shape))
            self.spec_ = sources.describe(X)
        elif shape != self.spec_.shape:
            raise InputError(f"X has samples of shape {shape}, but the model was fitted on {self.spec_.shape}")
        return Data(X, self.spec_)

    def _words(self, X: Any, reset: bool) -> Any:
        """Texts as tf-idf vectors over the words of the texts the model was fitted on."""
        if reset:
            self.words_ = TfIdf.fit(X)
        elif not hasattr(self, "words_"):
            raise InputError(f"X is texts, but the model was fitted on samples of shape {self.spec_.shape}")
        return self.words_.transform(X)

    def _vectors(self, X: Any, reset: bool) -> Any:
        """Vectors by scikit-learn's rules, with the row named where a value is not finite."""
        options: dict[str, Any] = {"accept_sparse": "csr", "dtype": "numeric", "ensure_min_samples": 2 if reset else 1}
        if hasattr(self, "spec_") and not reset and self.spec_.is_image:
            raise InputError(f"X has two dimensions, but the model was fitted on images of shape {self.spec_.shape}")
        X = validate_data(self, X, reset=reset, ensure_all_finite=False, **options)
        sources.check_finite(X)
        return X

    @staticmethod
    def _check_count(name: str, value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
            raise InputError(f"{name} must be a whole number of at least 1, got {value!r}")
        return int(value)

    def _seed(self) -> int:
        """The integer given as ``random_state``, else one drawn from it."""
        if isinstance(self.random_state, (int, np.integer)) and not isinstance(self.random_state, bool):
            return int(self.random_state)
        try:
            return int(check_random_state(self.random_state).randint(2**31))
        except ValueError:
            message = f"random_state must be None, a whole number or a RandomState, got {self.random_state!r}"
            raise InputError(message) from None

    def _folder(self, run: Any, resume: Any, settings: dict[str, Any], data: Data) -> Run | None:
        """The run folder of this fit, its config written, ready for checkpoints."""
        if run is None and resume is None:
            return None
        if resume is not None:
            folder = resume if isinstance(resume, Run) else Run.open(resume)
        else:
            folder = run if isinstance(run, Run) else Run.create(run)
        content = {"n": len(data), "shape": list(data.spec.shape), "digest": digest(data.X)}
        config = {
            "method": self.method,
            "params": plain(self.get_params()),
            "settings": settings,
            "data": {**folder.source, **content},
        }
        folder.bind({"method": self.method, "settings": settings, "seed": plain(self.random_state), "data": content})
        folder.write_json("config.json", config)
        folder.write_json("environment.json", environment())
        return folder

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.three_d_array = True
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags


def _silent(progress: Progress) -> None:
    pass


def plain(value: Any) -> Any:
    """Parameters as JSON can hold them; a callable by its name, for people to read."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if callable(value):
        return f"{getattr(value, '__module__', '?')}:{getattr(value, '__qualname__', repr(value))}"
    if isinstance(value, np.generic):
        return value.item()
    return value if isinstance(value, (str, int, float, bool, type(None))) else repr(value)


def digest(X: Any, rows: int = 1000) -> str:
    """A fingerprint of the data from evenly spaced rows: enough to notice that it is not the same."""
    picked = np.linspace(0, X.shape[0] - 1, min(rows, X.shape[0])).astype(int)
    values = sources.raw(X, picked).astype(np.float32)
    return hashlib.sha256(np.ascontiguousarray(values).tobytes()).hexdigest()[:16]
