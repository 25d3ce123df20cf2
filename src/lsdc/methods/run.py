"""What a fit leaves in its run folder: its config when it begins, labels and model when it is complete."""

from typing import TYPE_CHECKING

from lsdc.data.digest import digest, same_data
from lsdc.data.sources import Data
from lsdc.methods.assignment import Assigned
from lsdc.methods.saving import check_names
from lsdc.runs.folder import Run

if TYPE_CHECKING:
    from lsdc.methods.base import Estimator


def begin(folder: Run, model: "Estimator", data: Data, more: Data | None) -> None:
    """Create the run folder, or check that it belongs to these settings and this data."""
    check_names(model)
    before = folder.config("data") if folder.resuming else {}
    content = {"n": len(data), "shape": list(data.spec.shape), "digest": digest(data.X, data.spec.scale)}
    content |= {"pretext_n": len(more), "pretext_digest": digest(more.X)} if more else {}
    content |= {name: old for name, old in before.items() if same_data(old, str(content.get(name)))}
    fit = {"method": model.method, "behaviour": model.behaviour_with(model.settings_)}
    fit |= {"seed": model.seed_, "settings": model.settings_}
    folder.start(fit, model._fitted_params, content)


def complete(folder: Run, model: "Estimator", found: Assigned) -> None:
    """Write the labels, then the model: labels may still fit on a disk without room for the model."""
    ids = folder.ids or range(len(found.labels))
    folder.write_labels(ids, found.labels, found.confidence, found.runner_up(), model._names)
    model.save(folder.path / "model.safetensors")
