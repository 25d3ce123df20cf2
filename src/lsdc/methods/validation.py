"""What users pass to an estimator, checked: samples, counts and seeds; and results that must be finite."""

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from lsdc.data import sources
from lsdc.data.columns import id_warning
from lsdc.data.prepare import scale_warning
from lsdc.data.reading import Dataset, listed
from lsdc.data.sources import Data, Spec
from lsdc.data.texts import are_texts
from lsdc.errors import HealthWarning, InputError, NotNumbers, Unsuitable, shown

WORDLESS = 0.05  # of the texts; a few are always empty

if TYPE_CHECKING:
    from lsdc.methods.base import Estimator


def array_of(X: Any, spec: Spec | None) -> Any:
    """X as an array, or its texts; image files are read at the size of the images the model was fitted on."""
    if isinstance(X, Dataset):
        X = X.X
        if are_texts(X):  # lines of a text file are texts, even if they look like paths
            return X
    return sources.as_array(X, **({"image_size": spec.shape[1]} if spec and spec.is_image else {}))


def check_kind(model: "Estimator", data: Data) -> None:
    """Refuse data of a kind that the method cannot handle, and name the methods that can."""
    vectors = "texts" if model.words_ else "sparse vectors" if sp.issparse(data.X) else "dense vectors"
    kind = "images" if data.spec.is_image else vectors
    if kind not in model.takes:
        from lsdc.methods import METHODS  # here, as it imports every method

        others = ", ".join(name for name, method in METHODS.items() if kind in method.takes)
        raise Unsuitable(f"{model.method} takes {' and '.join(model.takes)}, not {kind}; methods that do: {others}")


def check_vectors(model: "Estimator", X: Any, reset: bool) -> Any:
    """Vectors, checked by scikit-learn's rules; an error about NaN or infinity names the row."""
    if not reset and model.spec_.is_image:
        raise InputError(f"X has two dimensions, but the model was fitted on images of shape {model.spec_.shape}")
    least = 2 if reset else 1
    if getattr(X, "ndim", 2) == 1:
        shapes = "(-1, 1) for a single feature, (1, -1) for a single sample"
        raise InputError(f"X has one dimension. Expected 2D array, got 1D array. Reshape your data: {shapes}")
    if wrong := _not_numbers(X):
        to_do = "drop them, or turn them into numbers (scikit-learn's OneHotEncoder, say)"
        if len(X.columns) == 1 and all(isinstance(value, str) for value in X[wrong[0]]):
            to_do = f"to cluster texts, pass the column itself, X[{wrong[0]!r}]"
        raise NotNumbers(f"columns of X that do not hold numbers: {listed(list(map(str, wrong)))}; {to_do}")
    kinds = {getattr(kind, "kind", "") for kind in getattr(X, "dtypes", [getattr(X, "dtype", None)])}
    if kinds & {"m", "M"}:
        raise InputError("X contains dates or times; convert them to numbers first")
    warning = id_warning(X) if reset and hasattr(X, "iloc") and hasattr(X, "columns") else ""
    options: dict[str, Any] = {"accept_sparse": "csr", "ensure_all_finite": False, "ensure_min_samples": least}
    try:
        X = validate_data(model, X, reset=reset, **options)
    except (ValueError, TypeError) as error:
        message = " ".join(str(error).split())
        kind = NotNumbers if isinstance(error, TypeError) else InputError
        raise kind(message if message.startswith("X ") else f"X cannot be used: {message}") from error
    if X.dtype.kind not in "buif":
        raise NotNumbers(f"X contains {X.dtype}; convert it to numbers first")
    sources.check_finite(X)
    if reset and hasattr(model, "feature_names_in_"):
        warning = warning or scale_warning(model.feature_names_in_, X)
    if warning:
        warnings.warn(warning, HealthWarning, stacklevel=5)
    return X


def _not_numbers(X: Any) -> list[Any]:
    """The columns of a data frame that hold something else than numbers: words, dates, lists."""
    if not (hasattr(X, "columns") and hasattr(X, "dtypes")) or len(set(X.columns)) < len(X.columns):
        return []
    plain = {name: getattr(kind, "kind", "O") in "biufc" for name, kind in zip(X.columns, X.dtypes, strict=True)}
    return [name for name, is_plain in plain.items() if not is_plain and not _is_numeric(np.asarray(X[name]))]


def _is_numeric(values: NDArray[Any]) -> bool:
    try:
        return values.dtype.kind not in "mM" and values.astype(float).ndim == 1
    except (TypeError, ValueError):
        return False


def warn_of_wordless(X: Any) -> None:
    """Warn if many texts have none of the words that texts are compared by: empty, or in another language."""
    n = int((np.diff(X.indptr) == 0).sum())
    if n > WORDLESS * X.shape[0]:
        message = f"{n:,} of {X.shape[0]:,} texts contain none of the {X.shape[1]:,} words that texts are compared by"
        warnings.warn(f"{message}, so their clusters mean nothing", HealthWarning, stacklevel=4)


def seed_of(random_state: Any, resumed: Any) -> int:
    """The integer given as ``random_state``, else the resumed run's seed, else one drawn at random."""
    if isinstance(random_state, (int, np.integer)) and not isinstance(random_state, bool):
        return int(random_state)
    if isinstance(resumed, int):
        return resumed
    try:
        return int(check_random_state(random_state).randint(2**31))
    except ValueError:
        message = f"random_state must be None, a whole number or a RandomState, got {random_state!r}"
        raise InputError(message) from None


def whole_number(name: str, value: Any, least: int = 1, most: int = 2**40) -> int:
    """A count given as an argument, or an ``InputError`` that names it."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise InputError(f"{name} must be a whole number of at least {least}, got {shown(value)}")
    if value > most:
        raise InputError(f"{name} must be at most {most}, got {shown(value)}")
    return int(value)


def check_result(result: NDArray[np.float32]) -> None:
    """Refuse results (one row per sample) that are not finite."""
    if not np.isfinite(result).all():
        row = int(np.flatnonzero(~np.isfinite(result.reshape(len(result), -1)).all(1))[0])
        raise InputError(
            f"X gives a result that is not finite in row {row} (counting from 0); its values, or the model's, "
            "are too extreme"
        )
