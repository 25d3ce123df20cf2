"""Hugging Face models, by name or local folder; safetensors weights only, and no code from the model is run."""

import os
import warnings
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch

from lsdc.data.download import OFFLINE
from lsdc.data.encoders.base import Encoder, ImageEncoder, digest_files, from_json
from lsdc.errors import InputError, reason

FILES = ("*.json", "*.safetensors", "*.txt", "*.model")  # configuration, weights, words


class HuggingFace(ImageEncoder):
    """A Hugging Face vision model, by name or folder: DINOv2, CLIP, SigLIP, ViT (extra: hf)."""

    def load(self) -> None:
        folder = hub_folder(self, "transformers")
        from transformers import AutoModel

        options: dict[str, Any] = {"use_safetensors": True, "local_files_only": True, "trust_remote_code": False}
        try:
            with warnings.catch_warnings(action="ignore"):
                model, info = AutoModel.from_pretrained(folder, output_loading_info=True, **options)
        except Exception as error:  # of any of the libraries below
            raise InputError(f"{self.name}: cannot be loaded as an image model ({reason(error)})") from None
        missing = [name for name in info["missing_keys"] if "pooler" not in name]
        if missing:
            raise InputError(f"{self.name}: weights are missing ({sorted(missing)[0]}, {len(missing)} in all)")
        self.pooler = not any("pooler" in name for name in info["missing_keys"])
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.model = model.eval().to(self.device)
        self.normalise_as(from_json(folder / "preprocessor_config.json"), f"{self.name}")
        self.digest = self.digest_of(digest_folder(folder))

    @torch.no_grad()
    def encode(self, batch: np.ndarray) -> Any:
        x = torch.from_numpy(self.normalised(batch)).to(self.device)
        try:
            if hasattr(self.model, "get_image_features"):  # CLIP and SigLIP, which also encode texts
                found = self.model.get_image_features(pixel_values=x)
                return getattr(found, "pooler_output", found)
            found = self.model(pixel_values=x)
        except (TypeError, ValueError, RuntimeError, AttributeError) as error:
            raise InputError(
                f"{self.name}: does not accept images of {self.size} x {self.size} ({reason(error)})"
            ) from None
        if self.pooler and getattr(found, "pooler_output", None) is not None:
            return found.pooler_output
        hidden = found.last_hidden_state
        has_class_token = any("cls_token" in name for name, _ in self.model.named_parameters())
        return hidden[:, 0] if hidden.ndim == 3 and has_class_token else hidden


class SentenceTransformers(Encoder):
    """A Hugging Face sentence encoder, by name or folder (extra: hf)."""

    takes = "texts"

    def load(self) -> None:
        folder = hub_folder(self, "sentence_transformers")
        from sentence_transformers import SentenceTransformer

        try:
            with warnings.catch_warnings(action="ignore"):
                options = {"local_files_only": True, "model_kwargs": {"use_safetensors": True}}
                self.model = SentenceTransformer(str(folder), **options)
        except Exception as error:  # of any of the libraries below
            raise InputError(f"{self.name}: cannot be loaded as a sentence encoder ({reason(error)})") from None
        self.digest = digest_folder(folder)
        self.notes = (f"encoder {self.name}: sentences",)

    def encode(self, batch: Sequence[str]) -> Any:
        return self.model.encode(list(batch), show_progress_bar=False, convert_to_numpy=True)


def hub_folder(encoder: Encoder, package: str) -> Path:
    """The folder of a model: as given, or from the hub, downloaded if needed."""
    try:
        from huggingface_hub import snapshot_download
    except ImportError:
        snapshot_download = None
    if snapshot_download is None or find_spec(package) is None:  # slow to import
        raise InputError(f"{encoder.name}: needs {package} (pip install 'lsd-clusters[hf]')") from None
    path = Path(encoder.name).expanduser()
    if path.is_dir():
        encoder.name = str(path.resolve())
        return path
    try:
        offline = bool(os.environ.get(OFFLINE))
        return Path(snapshot_download(str(encoder.name), allow_patterns=list(FILES), local_files_only=offline))
    except Exception as error:  # from the network, the hub or the name
        why = reason(error).partition(". ")[0]
        raise InputError(
            f"{encoder.name}: no such folder, and not available from the Hugging Face hub ({why}); "
            "download it on a machine with internet access and give its folder"
        ) from None


def digest_folder(folder: Path) -> str:
    """A digest of all files of a model."""
    return digest_files([file for kind in FILES for file in folder.rglob(kind) if file.is_file()], folder)
