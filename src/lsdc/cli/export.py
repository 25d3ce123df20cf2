"""``lsdc export``: the results of a run in formats that other tools read."""

import os
import re
import shutil
import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lsdc.cli.console import err, line, out
from lsdc.cli.importing import importing
from lsdc.cli.options import RootOption, RunArgument
from lsdc.cli.run_data import read_again, what_changed
from lsdc.cli.writing import check_output, write_output, writing
from lsdc.errors import InputError, shown

if TYPE_CHECKING:
    from lsdc.data.datasets import Dataset
    from lsdc.runs.folder import Run

UNSAFE = re.compile(r"[^\w.()+@=, -]+")
LONGEST_NAME, LONGEST_BYTES = 120, 230  # a file system takes 255 bytes, and a number may follow


FoldersOption = Annotated[
    Path | None,
    typer.Option("--folders", help="a new folder with one sub-folder of images per cluster", metavar="OUT"),
]
CopyOption = Annotated[bool, typer.Option("--copy", help="with --folders: copy images instead of linking them")]
ProbabilitiesOption = Annotated[
    Path | None, typer.Option("--probabilities", help="the cluster probabilities: .npy or .parquet", metavar="FILE")
]
FeaturesOption = Annotated[
    Path | None, typer.Option("--features", help="the features of each sample: .npy or .parquet", metavar="FILE")
]
OnnxOption = Annotated[
    Path | None, typer.Option("--onnx", help="the model with its scaling, as ONNX in fp32", metavar="FILE")
]
HtmlOption = Annotated[Path | None, typer.Option("--html", help="the report as one file", metavar="FILE")]


def export(
    run: RunArgument,
    folders: FoldersOption = None,
    copy: CopyOption = False,
    probabilities: ProbabilitiesOption = None,
    features: FeaturesOption = None,
    onnx: OnnxOption = None,
    html: HtmlOption = None,
    data_root: RootOption = None,
) -> None:
    """Export the results of a run for other tools.

    Examples:  lsdc export runs/photos --folders sorted  ·  lsdc export runs/digits --onnx digits.onnx
    """
    with importing():
        from lsdc.methods import load, read_config
        from lsdc.report.write import write_report
        from lsdc.runs.folder import Run

    if not any((folders, probabilities, features, onnx, html)):
        raise InputError("nothing to export: choose --folders, --probabilities, --features, --onnx or --html")
    folder = Run.open(run)
    config = read_config(folder)
    for file in filter(None, (probabilities, features, onnx, html)):
        check_output(file, run, config["data"].get("source"))
    for file in filter(None, (probabilities, features)):
        if file.suffix.lower() not in (".npy", ".parquet"):
            raise InputError(
                f"{file}: features and probabilities are written as .npy or .parquet; use one of these endings"
            )
    dataset = read_again(config, data_root)
    if dataset and (why := what_changed(dataset, config)):
        raise InputError(f"{why}; put the data back, or fit again")
    if folders:
        _write_folders(folder, folders, config, copy)
    if probabilities or features:
        _write_arrays(folder, _needed(dataset, run), probabilities, features)
    if onnx:
        _write_onnx(load(run, device="cpu"), onnx, dataset)
    if html:
        with writing(html):
            write_report(folder, config, dataset, to=html)
        line(out, f"written: {html}")


def _needed(dataset: "Dataset | None", run: Path) -> "Dataset":
    if dataset is None:
        raise InputError(f"{run}: the run does not record where its data is; use predict_proba and transform in Python")
    return dataset


def _write_arrays(run: "Run", dataset: "Dataset", probabilities: Path | None, features: Path | None) -> None:
    from lsdc.methods import load

    model = load(run.path)
    ids = run.read_labels()[0]
    for file, values, name in ((probabilities, model.predict_proba, "cluster"), (features, model.transform, "feature")):
        if file:
            _write_array(file, values(dataset), ids, name)
            line(out, f"written: {file}")


def _write_array(path: Path, values: Any, ids: list[str], name: str) -> None:
    """Write a matrix as .npy, or as a table with the ids in the first column."""
    import io

    import numpy as np

    file: Any = io.BytesIO()
    if path.suffix.lower() == ".npy":
        np.save(file, values)
    else:
        try:
            import pyarrow as pa
            import pyarrow.parquet as pq
        except ImportError:
            raise InputError('.parquet needs the extra "parquet": pip install "lsd-clusters[parquet]"') from None
        names = [name.encode(errors="backslashreplace").decode() for name in ids]  # of files, perhaps not UTF-8
        columns = {"id": pa.array(names), **{f"{name}_{i}": pa.array(values[:, i]) for i in range(values.shape[1])}}
        pq.write_table(pa.table(columns), file)
    write_output(path, file.getvalue())


def _write_onnx(model: Any, path: Path, dataset: "Dataset | None") -> None:
    from lsdc.methods.onnx import export_onnx

    with writing(path):
        apart = export_onnx(model, path, model._data(dataset, reset=False) if dataset else None)
    if model.words_:
        line(err, f"{path}: takes tf-idf vectors of the model's {len(model.words_.words):,} words, not texts")
    shape = ", ".join(map(str, model.spec_.shape))
    line(out, f"written: {path} (x: float32 (n, {shape}); onnxruntime agrees to {apart:.1g})")


def _write_folders(run: "Run", to: Path, config: dict[str, Any], copy: bool) -> None:
    """Write one folder per cluster with links to its images, or copies; all of it appears at once or not at all."""
    source = Path(str(config["data"].get("source", "")))
    if not source.is_dir():
        raise InputError(f"{run.path}: --folders needs a run fitted on a folder of images")
    if to.exists():
        raise InputError(f"{to}: already exists; choose a new folder")
    ids, labels, _ = run.read_labels()
    width, taken = len(str(int(labels.max()))), set[str]()
    part = to.with_name(f".{to.name[:60]}.{os.urandom(4).hex()}.part")
    try:
        for name, cluster in zip(ids, labels.tolist(), strict=True):
            place = part / (f"cluster-{cluster:0{width}d}" if cluster >= 0 else "unassigned")
            place.mkdir(parents=True, exist_ok=True)
            if Path(name).is_absolute() or ".." in Path(name).parts:
                raise InputError(f"{run.path / 'labels.csv'}: names {shown(name)}, which is outside {source}")
            file = source / name
            target = _free(place / safe_name(name), taken)
            if copy:
                shutil.copy2(file, target)
            else:
                target.symlink_to(file.resolve())
        os.replace(part, to)
    except OSError as error:
        raise InputError(f"{to}: cannot be written ({error.strerror}: {error.filename})") from None
    finally:
        shutil.rmtree(part, ignore_errors=True)
    line(out, f"written: {to} ({len(ids):,} {'copies' if copy else 'links'})")


def safe_name(name: str) -> str:
    """A path as a single file name, in characters that every file system and shell accepts."""
    name = unicodedata.normalize("NFC", name)
    text = UNSAFE.sub("_", name.replace("/", "__").replace("\\", "__")).strip(" .-") or "image"
    stem, suffix = os.path.splitext(text)
    stem = stem[: LONGEST_NAME - len(suffix)]
    return stem.encode()[: LONGEST_BYTES - len(suffix.encode())].decode(errors="ignore") + suffix


def _free(path: Path, taken: set[str]) -> Path:
    """The path, numbered if another sample already has it, or one that differs in case only: some disks ignore it."""
    tries, free = 1, path
    while (key := str(free).casefold()) in taken:
        tries += 1
        free = path.with_stem(f"{path.stem}-{tries}")
    taken.add(key)
    return free
