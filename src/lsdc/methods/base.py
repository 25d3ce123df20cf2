"""The base of every method: a scikit-learn estimator for any kind of X that can be saved and can label new data."""

import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from lsdc import allocator, parallel
from lsdc.data import sources
from lsdc.data.datasets import Dataset
from lsdc.data.names import Names, name_clusters, numbered
from lsdc.data.sources import Data, Spec
from lsdc.data.texts import TfIdf, are_texts
from lsdc.errors import Diverged, HealthWarning, InputError
from lsdc.methods.assignment import Assigned, best_two, joined
from lsdc.methods.choosing import AUTO, Suggestion, suggest
from lsdc.methods.run import begin, complete
from lsdc.methods.saving import as_json, write_model
from lsdc.methods.validation import (
    array_of,
    check_kind,
    check_result,
    check_vectors,
    seed_of,
    warn_of_wordless,
    whole_number,
)
from lsdc.runs.folder import Run
from lsdc.training import device as devices
from lsdc.training.context import Context, Progress
from lsdc.training.health import Record, warn_of_empty_clusters
from lsdc.training.modes import default_modes
from lsdc.training.plan import Frozen, validated

AnyPath = str | os.PathLike[str]
KINDS = ("images", "dense vectors", "sparse vectors", "texts")
Arrays = Iterator[tuple[NDArray[np.float32], NDArray[np.float32]]]


class Estimator(ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """Validation, prediction, saving and the run folder; a method adds ``_fit``, ``_outputs``, settings and state.

    Settings are resolved once, from the parameters and the data (``_resolve``), and passed on.
    """

    method: ClassVar[str]
    settings: ClassVar[type[Frozen]]  # everything that decides a fit except the seed, with every "auto" replaced
    finds_n_clusters: ClassVar[bool] = False  # whether n_clusters may be None: the method then finds a number
    takes: ClassVar[tuple[str, ...]] = KINDS
    behaviour: ClassVar[int] = 1  # incremented when the same settings give other results; older runs are not resumed
    n_clusters: Any
    random_state: Any
    device: str
    n_workers: int = 0

    labels_: NDArray[np.int64]
    n_clusters_: int
    suggestion_: Suggestion  # where n_clusters is "auto"
    history_: list[Record]
    settings_: dict[str, Any]
    _fitted_params: dict[str, Any]  # the parameters at the time of the fit
    n_features_in_: int
    spec_: Spec
    words_: TfIdf | None
    _names: Names
    seed_: int

    # ---- what a method provides ---------------------------------------------------------------------------

    def _before(self, f: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Features and clusters as they were before one was made from the other: what K-means can be compared on."""
        return f, labels

    @classmethod
    def behaviour_with(cls, settings: Mapping[str, Any]) -> int:
        """``behaviour`` of a fit with these settings, where not every change touches every kind of fit."""
        return cls.behaviour

    def _resolve(self, shape: tuple[int, ...], n: int, sparse: bool = False) -> Any:
        """The settings of a fit on ``n`` samples of ``shape``; raises ``InputError`` for impossible ones."""
        self._check_counts(n)
        params = self.get_params()
        return validated(self.settings, {name: as_json(params[name]) for name in self.settings.model_fields})

    @classmethod
    def _check_stored(cls, settings: dict[str, Any], shape: tuple[int, ...]) -> Any:
        """The settings from a file, if valid for samples of ``shape``."""
        return validated(cls.settings, settings, "settings.")

    @classmethod
    def pretext_settings(cls, settings: dict[str, Any]) -> dict[str, Any]:
        """The settings that decide the result of the pretext; methods with equal ones can share it."""
        return {}

    def _prepare(self, settings: Any, seed: int) -> Any:
        """Build what ``_fit`` trains; errors surface here, before anything is written."""

    @abstractmethod
    def _fit(self, data: Data, settings: Any, prepared: Any, context: Context) -> None:
        """Find the clusters."""

    @abstractmethod
    def _outputs(self, data: Data) -> Arrays:
        """Features (n, D) and probabilities (n, K), chunk by chunk."""

    @abstractmethod
    def _state(self) -> dict[str, Tensor]:
        """All tensors that prediction needs."""

    @abstractmethod
    def _restore(self, tensors: dict[str, Tensor], settings: Any) -> None:
        """The inverse of ``_state``."""

    def resolved(self, shape: tuple[int, ...], n: int, sparse: bool = False) -> dict[str, Any]:
        """The settings of a fit on ``n`` samples of ``shape``, as JSON."""
        settings: dict[str, Any] = self._resolve(shape, n, sparse).model_dump(mode="json")
        return settings

    def _check_counts(self, n: int) -> None:
        found = self.n_clusters is None and self.finds_n_clusters
        if not found and whole_number("n_clusters", self.n_clusters) > n:
            raise InputError(f"n_clusters={self.n_clusters} is more than the {n} samples of X")
        whole_number("n_workers", self.n_workers, least=0, most=1024)

    # ---- fitting and predicting ---------------------------------------------------------------------------

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        run: Run | AnyPath | None = None,
        resume: Run | AnyPath | None = None,
        monitor: Callable[[Progress], None] | None = None,
        callback: Any = None,
        verbose: bool = False,
    ) -> Self:
        """Find the clusters of X; ``y`` is ignored.

        Parameters
        ----------
        X : array (n, d), sparse matrix, tensor, memmap, images (n, h, w), (n, h, w, c) or (n, c, h, w), texts, Dataset
            The samples, without labels. A list of strings is read as texts, or as images scaled to 32x32 pixels if all
            are image files. The pretext also learns from a data set's extra unlabelled samples.
        y : ignored
            Present for compatibility with scikit-learn.
        run : path
            A folder for checkpoints, metrics, labels and the model, so that nothing is lost.
        resume : path
            The folder of an interrupted run to continue; a new run starts if there is none.
        callback : callable
            Called with a ``Progress`` after every step and epoch, e.g. ``lsdc.ProgressBar()``.
        monitor : callable
            The same, by its older name.
        verbose : bool
            Show a progress bar, in terminals and notebooks; short for ``callback=lsdc.ProgressBar()``.
        """
        if verbose:
            if callback or monitor:
                raise InputError("verbose=True and callback cannot be combined; call lsdc.ProgressBar() yourself")
            from lsdc import ProgressBar  # by its public name, as it is from a layer above

            with ProgressBar() as bar:
                return self.fit(X, run=run, resume=resume, callback=bar)
        watch = callback or monitor or (lambda progress: None)
        before = dict(self.__dict__)
        allocator.keep_freed_memory()
        try:
            with default_modes():
                self._fit_checked(X, run, resume, watch)
        except BaseException:  # a refused or interrupted fit leaves the estimator as it was
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
        finally:
            allocator.return_freed_memory()
        self.n_clusters = before["n_clusters"]  # parameters stay as given; n_clusters_ is what was found
        return self

    def _fit_checked(self, X: Any, run: Any, resume: Any, monitor: Callable[[Progress], None]) -> None:
        data = self._data(X, reset=True)
        if self.words_:
            warn_of_wordless(data.X)
        more = self._data(X.unlabelled, reset=False) if getattr(X, "unlabelled", None) is not None else None
        if isinstance(self.n_clusters, str) and self.n_clusters == AUTO:
            self._count_clusters(data)
        check_kind(self, data)
        settings = self._resolve(data.spec.shape, len(data), sp.issparse(data.X))
        self.settings_, self._fitted_params = settings.model_dump(mode="json"), as_json(self.get_params())
        device, n_workers = devices.choose(self.device), int(self.n_workers)
        folder = Run.of(run, resume) if parallel.rank() == 0 else None  # the first process writes for all of them
        seed = seed_of(self.random_state, folder.config("seed") if folder and folder.resuming else None)
        self.seed_ = int(parallel.broadcast(str(seed).encode()))
        prepared = self._prepare(settings, self.seed_)
        with folder.alone() if folder else nullcontext():
            if folder:
                begin(folder, self, data, more)
            pretext_data = sources.Joined(data, more) if more else None
            context = Context(self.seed_, device, n_workers, folder, monitor, pretext_data)
            self._fit(data, settings, prepared, context)
            found = self._best_of(self._own_outputs(data))
            self.labels_, self.n_clusters_ = found.labels, found.n_clusters
            if not np.isfinite(found.confidence).all():
                raise Diverged("the trained network returns NaN or infinite values; try a smaller lr")
            self._names = self._named(X)
            if folder:
                complete(folder, self, found)
        if self.n_clusters is not None:
            warn_of_empty_clusters(self.labels_, self.n_clusters_, self.history_)

    def _count_clusters(self, data: Data) -> None:
        """Replace ``n_clusters="auto"`` during the fit; the first process counts for all of them."""
        if parallel.rank() == 0:
            self.suggestion_ = suggest(data)
            self.n_clusters = self.suggestion_.n_clusters
        self.n_clusters = int(parallel.broadcast(str(self.n_clusters).encode()))

    def _named(self, X: Any) -> Names:
        """Names for the clusters; those of texts come from their words, even if an encoder turned them into vectors."""
        given: Any = X.X if isinstance(X, Dataset) else X
        texts: Any = X.samples if isinstance(X, Dataset) else None
        if self.words_ is not None:
            texts = given if are_texts(given) else sources.as_array(given)  # a data frame's column
        known = are_texts(texts)
        return name_clusters(texts, self.labels_, self.n_clusters_) if known else numbered(self.n_clusters_)

    @property
    def cluster_names_(self) -> list[str]:
        """A short name for each cluster: for texts the words that set it apart, otherwise its number."""
        check_is_fitted(self)
        return list(self._names.names)

    @property
    def cluster_terms_(self) -> list[list[str]]:
        """The terms that set each cluster of texts apart, strongest first."""
        check_is_fitted(self)
        return [list(terms) for terms in self._names.terms]

    def _own_outputs(self, data: Data) -> Arrays:
        """Those of the samples that the model was fitted on, which a method may know without looking them up."""
        return self._outputs(data)

    def _assigned(self, data: Data) -> Assigned:
        return self._best_of(self._outputs(data))

    @staticmethod
    def _best_of(outputs: Arrays) -> Assigned:
        """The best clusters of each sample, chunk by chunk, as K may be large.

        Samples whose features are not finite get a probability of NaN.
        """
        return joined([best_two(p, np.isfinite(f).all(1)) for f, p in outputs])

    def predict(self, X: Any) -> NDArray[np.int64]:
        """The cluster of each sample; works on new samples too."""
        check_is_fitted(self)
        allocator.keep_freed_memory()
        with default_modes():
            data = self._data(X, reset=False)
            if self.words_:
                warn_of_wordless(data.X)
            found = self._assigned(data)
        check_result(found.confidence)
        return found.labels

    def predict_proba(self, X: Any) -> NDArray[np.float32]:
        """The probability of each cluster for each sample (n, K)."""
        return self._collected(X, 1)

    def transform(self, X: Any) -> NDArray[np.float32]:
        """The features of each sample (n, D)."""
        return self._collected(X, 0)

    @property
    def _n_features_out(self) -> int:
        """How many features ``transform`` returns; scikit-learn uses it to name the columns of data frames."""
        dtype = np.float32 if self.spec_.is_image else np.float64
        sample = Data(np.zeros((1, *self.spec_.shape), dtype), self.spec_)
        return int(next(iter(self._outputs(sample)))[0].shape[1])

    def _collected(self, X: Any, which: int) -> NDArray[np.float32]:
        check_is_fitted(self)
        allocator.keep_freed_memory()
        with default_modes():
            result = np.concatenate([outputs[which] for outputs in self._outputs(self._data(X, reset=False))])
        check_result(result)
        return result

    def save(self, path: AnyPath) -> None:
        """Write the fitted model to one safetensors file; ``lsdc.load`` restores it with bit-identical predictions."""
        check_is_fitted(self)
        write_model(self, path)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "labels_")

    # ---- validation ---------------------------------------------------------------------------------------

    def _data(self, X: Any, reset: bool) -> Data:
        """X, checked and wrapped; with ``reset`` the model takes on its shape and scaling."""
        units = X.scales if isinstance(X, Dataset) else ()
        X = array_of(X, None if reset else self.spec_)
        X = self._vectorised(X, reset)
        if getattr(X, "ndim", 2) > 2:
            X = sources.check_images(X)
            self.__dict__.pop("feature_names_in_", None)
        else:
            X = check_vectors(self, X, reset)
        if reset:
            self._take_on(X, units)
        else:
            self._check_alike(X)
        return Data(X, self.spec_)

    def _vectorised(self, X: Any, reset: bool) -> Any:
        """X with texts as tf-idf vectors; texts for a model of something else are refused, and the reverse."""
        words = are_texts(X)
        if reset:
            self.words_ = TfIdf.fit(X) if words else None
        elif words and self.words_ is None:
            raise InputError(f"X contains texts, but the model was fitted on samples of shape {self.spec_.shape}")
        elif not words and self.words_ is not None:
            raise InputError("the model was fitted on texts; X must be a list of strings")
        return X if self.words_ is None else self.words_.transform(X)

    def _take_on(self, X: Any, units: Sequence[float]) -> None:
        """Remember the shape and scaling of the samples the model is fitted on."""
        if X.shape[0] < 2:
            raise InputError("X has 1 sample; clustering needs at least 2")
        self.n_features_in_ = int(np.prod(sources.sample_shape(X)))
        self.spec_ = sources.spec_of(X, units)

    def _check_alike(self, X: Any) -> None:
        """Refuse samples of another shape than those of the fit, and warn about images on another scale."""
        shape = sources.sample_shape(X)
        if shape != self.spec_.shape:
            raise InputError(f"X has samples of shape {shape}, but the model was fitted on {self.spec_.shape}")
        if self.spec_.is_image and (message := sources.range_warning(X, self.spec_)):
            warnings.warn(message, HealthWarning, stacklevel=5)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = "sparse vectors" in self.takes
        tags.input_tags.three_d_array = True
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags
