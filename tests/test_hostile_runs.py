"""Run folders that were made to do harm: links out of them, pipes, huge files, absurd words; refused in one line."""

import json
import os
import shutil
import struct

import numpy as np
import pytest

from attacks import F4, HUGE, QUICK, VECTORS, edited, memory, retyped, sparse_file
from lsdc import InputError, load
from lsdc.runs.tensors import read_tensors
from mutations import parts
from test_cli import inside, lsdc, refused

RESUME = ("fit", "x.npy", "--out", "run", "--resume")
COMMANDS = (("predict", "run", "x.npy"), ("evaluate", "run"), ("report", "run"), RESUME)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    np.save(folder / "x.npy", VECTORS)
    words = [f"--set={key}={json.dumps(value)}" for key, value in QUICK.items() if key != "random_state"]
    assert inside("fit", "x.npy", "-k", 3, *words, "--out", "run", cwd=folder).returncode == 0
    return folder


@pytest.fixture
def run(finished, tmp_path):
    """A finished run of one's own, with its data beside it."""
    shutil.copytree(finished, tmp_path / "mine")
    return tmp_path / "mine"


@pytest.mark.parametrize("name", ["model.safetensors", "labels.csv", "metrics.jsonl", "report.html", ".lock"])
@pytest.mark.parametrize("exists", [True, False])
def test_links_out_of_a_run(run, tmp_path, name, exists):
    """Not read through, and not written through: a resumed run would append to whatever the link points to."""
    target = tmp_path / "elsewhere"
    if exists:
        target.write_text("precious")
    (run / "run" / name).unlink(missing_ok=True)
    (run / "run" / name).symlink_to(target)
    for words in (
        ["predict", "run", "x.npy"],
        ["evaluate", "run"],
        ["report", "run"],
        ["fit", "x.npy", "--out", "run", "--resume"],
    ):
        refused(inside(*words, cwd=run), f"run/{name}", "link out of the folder")
    if name == "model.safetensors":
        with pytest.raises(InputError, match="link out of the folder"):
            load(run / "run")
    assert target.read_text() == "precious" if exists else not target.exists()


def test_links_of_config_and_checkpoints(run, tmp_path):
    shutil.move(run / "run" / "checkpoint", tmp_path / "checkpoint")
    (run / "run" / "checkpoint").symlink_to(tmp_path / "checkpoint")
    refused(inside(*RESUME, cwd=run), "checkpoint", "link out of the folder")
    shutil.move(run / "run" / "config.json", tmp_path / "config.json")
    (run / "run" / "config.json").symlink_to(tmp_path / "config.json")
    refused(inside("evaluate", "run", cwd=run), "config.json")


def test_links_within_reason(run, tmp_path):
    """A run may be reached by a link, and hold one to itself."""
    before = inside("predict", "run", "x.npy", cwd=run).stdout
    (run / "latest").symlink_to(run / "run")
    (run / "run" / "model.safetensors").rename(run / "run" / "best.safetensors")
    (run / "run" / "model.safetensors").symlink_to("best.safetensors")
    assert len(before.splitlines()) == len(VECTORS) + 1
    assert inside("predict", "latest", "x.npy", cwd=run).stdout == before


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "labels.csv", "metrics.jsonl"])
def test_pipes_are_not_waited_for(run, name):
    (run / "run" / name).unlink()
    os.mkfifo(run / "run" / name)
    refused(inside("evaluate", "run", cwd=run), name)
    with pytest.raises(InputError, match="not a plain file"):
        read_tensors(run / "run" / name)


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "labels.csv", "metrics.jsonl"])
def test_files_of_ten_gigabytes(run, name):
    before = memory()
    sparse_file(run / "run" / name, b"id,cluster,confidence\n" if name == "labels.csv" else b"")
    command = ["predict", "run", "x.npy"] if name == "model.safetensors" else ["report", "run"]
    refused(inside(*command, cwd=run), name)
    assert memory() - before < 2**29


CONFIGS = {
    "unknown word": (["extra"], 1, "unknown setting 'extra'"),
    "unknown parameter": (["params", "widt"], 1, "unknown parameter 'widt'"),
    "unknown setting": (["settings", "plan", "speed"], 1, "unknown setting 'settings.plan.speed'"),
    "absurd clusters": (["params", "n_clusters"], 10**12, "n_clusters=1000000000000 is more than the 40"),
    "absurd samples": (["data", "n"], 10**30, "data.n: input should be less"),
    "other samples": (["data", "n"], 41, "labels.csv: has 40 rows, but the run has 41 samples"),
    "absurd image": (["data", "image_size"], 10**9, "data.image_size: input should be less"),
    "a list as column": (["data", "column"], ["a"], "data.column: input should be"),
    "absurd epochs": (["params", "epochs"], 10**9, "epochs: input should be less"),
    "absurd workers": (["params", "n_workers"], 10**9, "n_workers must be at most 1024"),
    "absurd pool": (["settings", "pool"], 10**15, "settings.pool: input should be less"),
    "a seed that is none": (["seed"], "0", "seed: input should be a valid integer"),
    "unknown method": (["method"], "kmean", "did you mean 'kmeans'"),
    "nesting": (["params", "tau"], json.loads("[" * 99 + "]" * 99), "not a run folder"),
}


@pytest.mark.parametrize("attack", CONFIGS)
def test_configs_with_absurd_words(run, attack):
    (*groups, last), value, match = CONFIGS[attack]
    path = run / "run" / "config.json"
    config = json.loads(path.read_text())
    holder = config
    for group in groups:
        holder = holder[group]
    holder[last] = value
    path.write_text(json.dumps(config))
    resume = ["fit", "x.npy", "--out", "run", "--resume"]
    by_labels = attack == "other samples"  # predict does not look at them, resume compares the data
    for words in (
        ["evaluate", "run"],
        ["report", "run"],
        *([] if by_labels else [["predict", "run", "x.npy"], resume]),
    ):
        refused(inside(*words, cwd=run), match)


@pytest.mark.parametrize(
    ("row", "match"),
    [
        ("a,99999,0.5", "invalid"),
        ("a,-2,0.5", "invalid"),
        ("a,1,nan", "invalid"),
        ("a,1,2", "invalid"),
        (f"a,{10**30},0.5", "not a labels file"),
        ("a,x,0.5", "not a labels file"),
        ("a,1", "not a labels file"),
        ("", "has 39 rows"),
        ('"' + "a" * 2**25 + '",1,0.5', "characters"),
    ],
)
def test_labels_that_cannot_be(run, row, match):
    path = run / "run" / "labels.csv"
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:-1], row]) + "\n")
    refused(inside("evaluate", "run", cwd=run), "labels.csv", match)


@pytest.mark.parametrize("stage", ["pretext", "clustering"])
@pytest.mark.parametrize("attack", ["NaN", "shape", "slot", "step", "history"])
def test_checkpoints_that_cannot_be(run, stage, attack):
    path = run / "run" / "checkpoint" / f"{stage}.safetensors"
    whole = path.read_bytes()
    outer = parts(whole)[0]
    weight = next(name for name in outer if name.startswith("weights/") and outer[name]["dtype"] == "F32")
    shape = outer[weight]["shape"]
    content = {
        "NaN": lambda: retyped(whole, **{weight: np.full(shape, np.nan, F4)}),
        "shape": lambda: retyped(whole, **{"optimizer/0.exp_avg": np.zeros(7, F4)}),
        "slot": lambda: retyped(whole, **{"optimizer/0.exp_avg": None}),
        "step": lambda: retyped(whole, **{"optimizer/0.step": np.array(-1, F4)}),
        "history": lambda: edited(whole, history=[{"epoch": "many"}]),
    }[attack]()
    path.write_bytes(content)
    result = inside(*RESUME, cwd=run)
    if attack in ("NaN", "history"):  # as good as cut short: it is said, and the one before it taken
        assert result.returncode == 0, result.stderr
        assert f"warning: run/checkpoint/{stage}.safetensors: not a" in result.stderr
    else:
        refused(result, "checkpoint")


def test_pretexts_of_another_network(run):
    path = run / "run" / "checkpoint" / "pretext.safetensors"
    path.write_bytes(retyped(path.read_bytes(), **{"weights/backbone.stages.0.0.bias": np.zeros(3, F4)}))
    np.savetxt(run / "y.txt", np.arange(40) % 3, "%d")
    refused(inside("evaluate", "run", "--baselines", "--labels", "y.txt", cwd=run), "stages.0.0.bias")


def test_refusals_of_a_real_process(run):
    """The same by the command itself: exit code 2, one line, no traceback."""
    model = run / "run" / "model.safetensors"
    model.write_bytes(struct.pack("<Q", HUGE))
    refused(lsdc("predict", "run", "x.npy", cwd=run), "model.safetensors", "10,737,418,240")


def beyond(folder, cluster):
    """Put the last sample of a run into a cluster that it does not have."""
    *lines, last = (folder / "labels.csv").read_text().splitlines()
    name, _, *rest = last.split(",")
    (folder / "labels.csv").write_text("\n".join([*lines, ",".join([name, str(cluster), *rest]), ""]))


def test_labels_of_clusters_that_are_not_there(run):
    """Whether the number of clusters was asked for, or found by the method."""
    beyond(run / "run", 3)
    for words in COMMANDS[1:3]:
        refused(inside(*words, cwd=run), "labels.csv", "invalid clusters")
    assert inside("fit", "x.npy", "--method", "finch", "--out", "found", cwd=run).returncode == 0
    beyond(run / "found", 39)
    refused(inside("report", "found", cwd=run), "labels.csv", "names cluster 39, but the model has")
