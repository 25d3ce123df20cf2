"""Any image network in an ONNX file, run by onnxruntime."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from lsdc.data.encoders.base import SIZES, ImageEncoder, digest_files, from_json, known
from lsdc.data.reading import listed
from lsdc.errors import InputError, Note, reason

LARGEST_BATCH = 1024
TYPES = {"tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(uint8)": np.uint8}
FEATURES = ("image_embeds", "pooler_output", "embeddings", "features")  # preferred outputs, if there are several
RANGES = {"normalized_0_1": (0.0, 1.0), "normalized_1_1": (0.5, 0.5), "nominalrange_0_255": (0.0, 1 / 255)}


class Onnx(ImageEncoder):
    """Any network for images in an .onnx file (extra: onnx)."""

    def load(self) -> None:
        self.name = str(Path(self.name).expanduser().resolve())
        path = Path(self.name)
        if not path.is_file():
            raise InputError(f"{path}: no such file; give the path of the encoder", "encoder")
        try:
            import onnxruntime
        except ImportError:
            raise InputError(f"{path}: needs onnxruntime (pip install 'lsd-clusters[onnx]')") from None
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4  # errors are reported below, in one line
        try:
            providers = onnxruntime.get_available_providers()
            self.session = onnxruntime.InferenceSession(self.name, options, providers=providers)
        except Exception as error:  # onnxruntime's errors have no class in common
            raise InputError(f"{path}: not a usable ONNX file ({_reason(error)})") from None
        self._look_at_input()
        beside = next((found for place in (path.parent, path.parent.parent) if (found := _beside(place))), {})
        self.normalise_as({**beside, **self._from_metadata(), **self.fixed}, path.name)
        if self.dtype is np.uint8:
            self.notes = (f"encoder {self.name}: images of {self.size} x {self.size} as bytes",)
        self.output = self._chosen_output()
        files = [path, *(file for end in (".data", "_data") if (file := path.with_name(path.name + end)).is_file())]
        self.digest = self.digest_of(digest_files(files, path.parent), self.output)

    def _look_at_input(self) -> None:
        """Find out which axes are the batch, the channels, the height and the width."""
        inputs = self.session.get_inputs()
        shape = list(inputs[0].shape) if inputs else []
        right = len(inputs) == 1 and len(shape) == 4 and inputs[0].type in TYPES and 3 in (shape[1], shape[3])
        if not right:
            taken = ", ".join(f"{i.name}: {i.type} of {_shape(i.shape)}" for i in inputs) or "none"
            raise InputError(
                f"{self.name}: takes {taken}; an encoder must take one batch of images (n, 3, h, w) or (n, h, w, 3)"
            )
        self.input, self.dtype, self.first = inputs[0].name, TYPES[inputs[0].type], shape[1] == 3
        self.fixed_batch = shape[0] if isinstance(shape[0], int) else None
        if self.fixed_batch is not None and not 0 < self.fixed_batch <= LARGEST_BATCH:
            raise InputError(
                f"{self.name}: takes {self.fixed_batch} images at a time; 1 to {LARGEST_BATCH} are possible"
            )
        places = [side for side in (shape[2:] if self.first else shape[1:3]) if isinstance(side, int)]
        if len(set(places)) > 1:
            raise InputError(
                f"{self.name}: takes images of {places[0]} x {places[1]}; an encoder must take square ones"
            )
        if places and places[0] not in SIZES:
            sides = f"{places[0]} x {places[0]}"
            raise InputError(f"{self.name}: takes images of {sides}; {SIZES[0]} to {SIZES[-1]} pixels are possible")
        self.fixed = {"size": places[0]} if places else {}
        if places and self.settings.get("size", places[0]) != places[0]:
            raise InputError(
                f"{self.name}: takes images of {places[0]} x {places[0]}, not size={self.settings['size']}"
            )

    def _from_metadata(self) -> dict[str, Any]:
        """What the file's metadata says: ``size``, ``mean`` and ``std``, or the standard's pixel range."""
        words = {key.lower(): value for key, value in self.session.get_modelmeta().custom_metadata_map.items()}
        found: dict[str, Any] = {}
        if (span := words.get("image.nominalpixelrange", "").lower()) in RANGES:
            found |= {"mean": RANGES[span][0], "std": RANGES[span][1]}
        for name in ("size", "mean", "std"):
            for key in (f"image_{name}", f"input_{name}", name):
                if key in words:
                    found[name] = _number(words[key])
        return known(found)

    def _chosen_output(self) -> str:
        names = [output.name for output in self.session.get_outputs()]
        wanted = self.settings.get("output")
        if wanted is not None and wanted not in names:
            raise InputError(f"{self.name}: has no output {wanted!r}; it has {listed(names)}")
        chosen = wanted or next((name for name in FEATURES if name in names), names[0])
        if len(names) > 1 and not wanted:
            self.notes += (Note(f"using output {chosen} of {listed(names)}", "encoder_settings"),)
        return str(chosen)

    def encode(self, batch: np.ndarray) -> np.ndarray:
        x = np.round(batch) if self.dtype is np.uint8 else self.normalised(batch).transpose(0, 2, 3, 1)
        x = np.ascontiguousarray(x.transpose(0, 3, 1, 2) if self.first else x, self.dtype)
        size = self.fixed_batch or len(x)
        parts = []
        for start in range(0, len(x), size):
            part = x[start : start + size]
            whole = np.concatenate([part, np.repeat(part[:1], size - len(part), 0)]) if len(part) < size else part
            try:
                (result,) = self.session.run([self.output], {self.input: whole})
            except Exception as error:
                raise InputError(f"{self.name}: fails on a batch of {whole.shape} ({_reason(error)})") from None
            parts.append(np.atleast_1d(np.asarray(result))[: len(part)])
        features = np.concatenate(parts)
        return features if self.first or features.ndim < 4 else features.transpose(0, 3, 1, 2)


def _beside(folder: Path) -> dict[str, Any]:
    return from_json(folder / "preprocessor_config.json")


def _number(text: str) -> Any:
    """A number or a list of numbers; for a shape such as 3,224,224, the last one."""
    with suppress(ValueError):
        value = json.loads(text)
        return (
            value[-1] if isinstance(value, list) and len(value) == 3 and value[-1] == value[-2] != value[0] else value
        )
    return text


def _shape(shape: list[Any]) -> str:
    return "(" + ", ".join(str(side) if side is not None else "?" for side in shape) + ")"


def _reason(error: Exception) -> str:
    return reason(error).removeprefix("[ONNXRuntimeError] : ")
