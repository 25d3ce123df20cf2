"""The data of a finished run, read again: from where its config says, and only if it is still the same."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lsdc.cli.console import err
from lsdc.cli.options import root_of
from lsdc.cli.reading import ReadingBar
from lsdc.errors import InputError

if TYPE_CHECKING:
    from lsdc.data.datasets import Dataset


def read_again(config: dict[str, Any], data_root: Path | None) -> "Dataset | None":
    """The data a run was fitted on, if it came from a file or is built in; it may have changed."""
    from lsdc.data.datasets import DATASETS
    from lsdc.data.files import open_data
    from lsdc.data.reading import from_config

    source = config["data"]
    if "source" not in source:
        return None
    place = Path(str(source["source"]))
    if str(place) not in DATASETS and not place.is_absolute() and not os.path.lexists(place):
        raise InputError(
            f"{place}: not found; the run knows its data by this relative path, so run this command where it was fitted"
        )
    with ReadingBar(err) as bar:
        return open_data(str(source["source"]), root_of(data_root), bar, **vars(from_config(source)))


def what_changed(dataset: "Dataset", config: dict[str, Any]) -> str:
    """What is wrong if the data is not the run's, row by row and value by value; empty if it is the same."""
    from lsdc.data.digest import digest, same_data
    from lsdc.experiments.job import inputs_of

    now = inputs_of(dataset)
    if same_data(config["data"]["digest"], digest(now.X, now.spec.scale)):
        return ""
    return f"{config['data']['source']}: not the data the run was fitted on; values or rows have changed"


def data_or_why(config: dict[str, Any], data_root: Path | None) -> "tuple[Dataset | None, str]":
    """The data of a run, or why there is none: it was never in a file, it is gone, or it has changed."""
    try:
        dataset = read_again(config, data_root)
    except InputError as error:
        return None, error.text
    if dataset is None:
        return None, "the run was fitted in Python on data that is not in a file"
    why = what_changed(dataset, config)
    return (None, why) if why else (dataset, "")


def data_of_run(config: dict[str, Any], data_root: Path | None) -> "Dataset":
    """The data a run was fitted on; ``InputError`` if it is gone or has changed."""
    dataset, missing = data_or_why(config, data_root)
    if dataset is None:
        raise InputError(missing)
    return dataset
