"""A fitted model as an ONNX file: raw samples in, probabilities and features out, checked against onnxruntime."""

import io
import logging
import os
import warnings
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from lsdc.data.sources import Data, raw
from lsdc.errors import InputError, reason
from lsdc.methods.base import Estimator
from lsdc.methods.deep import DeepEstimator
from lsdc.methods.kmeans import KMeans
from lsdc.nn.centres import centre_logits
from lsdc.runs.atomic import write_atomic
from lsdc.training.modes import default_modes

TOLERANCE = 1e-4
CHECKED = 64  # samples


class Exported(nn.Module):
    """What a model does to raw samples, scaling included, in single precision."""

    offset: Tensor
    scale: Tensor

    def __init__(self, model: Estimator) -> None:
        super().__init__()
        self.model = model
        self.register_buffer("offset", model.spec_.offset.float())
        self.register_buffer("scale", model.spec_.scale.float())
        if isinstance(model, DeepEstimator):
            self.network = model.network_.cpu().eval()

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        x = (x - self.offset) / self.scale
        if isinstance(self.model, DeepEstimator):
            output = self.network(self.model._views.plain(x))
            return output.p, output.f
        f, centres = x.flatten(1), torch.from_numpy(self.model.cluster_centers_)
        return centre_logits(f, centres, float(self.model.variance_)).softmax(1), f


def export_onnx(model: Estimator, path: str | os.PathLike[str], data: Data | None = None) -> float:
    """Write the model as ONNX in fp32, for any number of samples at a time; returns the largest deviation from ours.

    Both are compared on samples of ``data``, or on noise of the same spread; beyond 1e-4 nothing is written.
    """
    if not isinstance(model, (DeepEstimator, KMeans)):
        raise InputError(f"{model.method} cannot be exported to ONNX, because it compares with every training sample")
    content, x = _converted(model), _samples(model, data)
    with default_modes():
        f, p = (np.concatenate(parts) for parts in zip(*model._outputs(Data(x, model.spec_)), strict=True))
    pairs = zip((p, f), _by_onnxruntime(content, x), strict=True)
    apart = max(float(np.abs(a - b).max() / max(1.0, float(np.abs(a).max()))) for a, b in pairs)
    if not apart <= TOLERANCE:
        raise InputError(f"{path}: onnxruntime's results differ from the model's by {apart:.1g}; nothing was written")
    write_atomic(Path(path), content)
    return apart


def _samples(model: Estimator, data: Data | None) -> np.ndarray:
    """Raw samples as the file takes them."""
    if data is not None:
        return raw(data.X, np.arange(min(CHECKED, len(data)))).astype(np.float32)
    noise = torch.randn(8, *model.spec_.shape, generator=torch.Generator().manual_seed(0))
    return (noise * model.spec_.scale.float() + model.spec_.offset.float()).numpy()


def _converted(model: Estimator) -> bytes:
    """The ONNX file, by PyTorch's exporter."""
    try:
        import onnxscript  # noqa: F401
    except ImportError:
        raise InputError('ONNX needs the extra "export": pip install "lsd-clusters[export]"') from None
    example = (torch.zeros(2, *model.spec_.shape),)
    file = io.BytesIO()
    quiet = logging.getLogger("torch.onnx")
    level = quiet.level
    quiet.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(action="ignore"), redirect_stdout(io.StringIO()):
            program: Any = torch.onnx.export(
                Exported(model).eval(),
                example,
                input_names=["x"],
                output_names=["probabilities", "features"],
                dynamic_shapes=({0: torch.export.Dim("n", min=1)},),
                dynamo=True,
                verbose=False,
            )
            program.save(file)
    except (RuntimeError, TypeError, ValueError, NotImplementedError) as error:
        raise InputError(f"the model cannot be exported to ONNX ({reason(error)})") from None
    finally:
        quiet.setLevel(level)
    return file.getvalue()


def _by_onnxruntime(content: bytes, x: np.ndarray) -> list[np.ndarray]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    return [np.asarray(part) for part in session.run(None, {"x": x})]
