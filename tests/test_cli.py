"""The command line as people use it: real processes, real files, exit codes, one line on stderr for mistakes."""

import contextlib
import io
import json
import os
import re
import signal
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from inspect import signature

import numpy as np
import pytest
from PIL import Image

from lsdc import LSDC
from lsdc.cli.fit import fit
from lsdc.cli.listing import Kind
from lsdc.cli.main import app, main
from lsdc.cli.tables import NAMES
from lsdc.data.augment import AUGMENTATIONS
from lsdc.data.datasets import DATASETS
from lsdc.data.encoders import ENCODERS
from lsdc.experiments.paper import TABLES
from lsdc.experiments.recipes import RECIPES
from lsdc.functional import COMPOSITIONS, SIMILARITIES
from lsdc.interrupt import TO_END
from lsdc.methods import METHODS
from lsdc.nn.network import BACKBONES
from lsdc.pretext import PRETEXTS
from lsdc.runs.folder import INTERVAL
from victims import Signals, surrounded

FEW = ["--set", "epochs=2", "--set", "pretext_plan.epochs=1", "--set", "width=0.1"]
QUICK = ["--set", "neighbours=batch", *FEW]


def lsdc(*words, cwd, env=None):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "100", **(env or {})}
    command = [sys.executable, "-m", "lsdc", *map(str, words)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, env=environment, check=False)


def inside(*words, cwd):
    """The same command without the seconds a new process takes to import PyTorch: for all that needs no process."""
    stdout, stderr = io.StringIO(), io.StringIO()
    before = {number: signal.getsignal(number) for number in TO_END}
    with contextlib.chdir(cwd), redirect_stdout(stdout), redirect_stderr(stderr), pytest.raises(SystemExit) as ended:
        main([str(word) for word in words])
    for number, handler in before.items():
        signal.signal(number, handler)
    return subprocess.CompletedProcess(words, ended.value.code, stdout.getvalue(), stderr.getvalue())


PROGRESS = re.compile(r"[a-z ]+: [\d,]+/[\d,]+ in ")


def refused(result, *parts):
    """Exit code 2, and one line that holds what matters; a slow machine may have shown progress before it."""
    assert result.returncode == 2, result.stderr
    assert result.stdout == ""
    lines = [line for line in result.stderr.strip().splitlines() if not PROGRESS.match(line)]
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("lsdc: ")
    for part in parts:
        assert str(part) in lines[0]


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cli")
    result = lsdc("fit", "digits", *QUICK, "--seed", 3, cwd=folder)
    assert result.returncode == 0, result.stderr
    return folder, result


def test_fit_leaves_a_whole_run(fitted):
    folder, result = fitted
    run = folder / "runs" / "digits"
    names = {p.name for p in run.iterdir()}
    assert {
        "config.json",
        "environment.json",
        "metrics.jsonl",
        "labels.csv",
        "model.safetensors",
        "checkpoint",
    } <= names
    config = json.loads((run / "config.json").read_text())
    assert config["params"]["random_state"] == 3
    assert config["params"]["n_clusters"] == 10  # the data set knows
    assert config["data"]["source"] == "digits"
    assert config["settings"]["plan"]["epochs"] == 2
    environment = json.loads((run / "environment.json").read_text())
    assert {"python", "packages", "processor", "threads", "commit"} <= environment.keys()
    assert len((run / "labels.csv").read_text().splitlines()) == 1798
    stages = [json.loads(line)["stage"] for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert stages == ["pretext", "clustering", "clustering"]
    assert "run folder: runs/digits" in result.stdout
    assert "lsdc evaluate runs/digits" in result.stdout
    assert "clusters alive" in result.stderr


@pytest.mark.filterwarnings("ignore::lsdc.errors.HealthWarning")
@pytest.mark.parametrize("method", METHODS)
def test_every_method_from_fit_to_labels_of_new_data(method, tmp_path):
    X = np.random.default_rng(0).normal(size=(90, 5)) + np.repeat([[0.0], [6], [12]], 30, axis=0)
    np.save(tmp_path / "x.npy", X.astype(np.float32))
    known = METHODS[method]().get_params()
    words = [word for word in ("epochs=2", "width=0.1", "pretext_plan.epochs=1") if re.split("[.=]", word)[0] in known]
    options = [part for word in words for part in ("--set", word)]
    fitted = inside("fit", "x.npy", "--clusters", 3, "--method", method, *options, cwd=tmp_path)
    assert fitted.returncode == 0, fitted.stderr
    assert "run folder: runs/x" in fitted.stdout
    assert (tmp_path / "runs" / "x" / "report.html").stat().st_size > 1000
    again = inside("predict", "runs/x", "x.npy", "--out", "new.csv", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    assert (tmp_path / "new.csv").read_text() == (tmp_path / "runs" / "x" / "labels.csv").read_text()


def test_no_pickle_in_a_run(fitted):
    folder, _ = fitted
    files = [p for p in (folder / "runs" / "digits").rglob("*") if p.is_file() and p.name != ".lock"]  # which is empty
    assert {p.suffix for p in files} == {".json", ".jsonl", ".csv", ".safetensors", ".html"}


def test_evaluate_shows_the_rows(fitted):
    folder, _ = fitted
    result = inside("evaluate", "runs/digits", "--baselines", cwd=folder)
    assert result.returncode == 0, result.stderr
    for word in ("ACC", "NMI", "ARI", "K-means on inputs", "K-means on pretext features", "lsdc"):
        assert word in result.stdout


def test_evaluate_gives_json(fitted):
    folder, _ = fitted
    result = json.loads(inside("evaluate", "runs/digits", "--json", cwd=folder).stdout)
    assert result["lsdc"].keys() == {"acc", "nmi", "ari", "confident_share", "confident_acc"}


def test_predict_equals_the_labels(fitted):
    folder, _ = fitted
    labels = (folder / "runs" / "digits" / "labels.csv").read_text()
    assert inside("predict", "runs/digits", "digits", cwd=folder).stdout == labels
    result = inside("predict", "runs/digits", "digits", "--out", "new.csv", cwd=folder)
    assert result.returncode == 0
    assert (folder / "new.csv").read_text() == labels


def test_same_seed_same_files(fitted, tmp_path):
    folder, _ = fitted
    inside("fit", "digits", *QUICK, "--seed", 3, "--out", tmp_path / "again", cwd=tmp_path)
    for name in ("labels.csv", "config.json"):
        assert (tmp_path / "again" / name).read_bytes() == (folder / "runs" / "digits" / name).read_bytes()


def test_existing_runs_are_kept(fitted):
    folder, _ = fitted
    before = (folder / "runs" / "digits" / "labels.csv").read_bytes()
    refused(inside("fit", "digits", *QUICK, cwd=folder), "runs/digits", "--overwrite", "--resume")
    assert (folder / "runs" / "digits" / "labels.csv").read_bytes() == before


def test_resuming_a_finished_run_changes_nothing(fitted):
    folder, _ = fitted
    before = (folder / "runs" / "digits" / "labels.csv").read_bytes()
    result = inside("fit", "digits", "--resume", cwd=folder)
    assert result.returncode == 0, result.stderr
    assert (folder / "runs" / "digits" / "labels.csv").read_bytes() == before


def test_resuming_with_other_settings_is_refused(fitted):
    folder, _ = fitted
    refused(inside("fit", "digits", "--resume", "--set", "epochs=9", cwd=folder), "epochs=2", "9")
    refused(inside("fit", "digits", "--resume", "--clusters", 9, cwd=folder), "n_clusters=10", "9")


def test_overwrite_replaces_runs_and_nothing_else(tmp_path):
    np.save(tmp_path / "x.npy", np.random.default_rng(0).random((60, 4)))
    first = ["fit", "x.npy", "-k", 2, "--set", "epochs=1", "--out", "run"]
    assert inside(*first, cwd=tmp_path).returncode == 0
    model = (tmp_path / "run" / "model.safetensors").read_bytes()
    assert inside(*first, "--overwrite", "--seed", 1, cwd=tmp_path).returncode == 0
    assert json.loads((tmp_path / "run" / "config.json").read_text())["seed"] == 1
    assert (tmp_path / "run" / "model.safetensors").read_bytes() != model
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "thesis.tex").write_text("years of work")
    refused(inside("fit", "x.npy", "-k", 2, "--out", "precious", "--overwrite", cwd=tmp_path), "not a run folder")
    assert (tmp_path / "precious" / "thesis.tex").read_text() == "years of work"


def test_a_refused_overwrite_keeps_the_old_run(tmp_path):
    np.save(tmp_path / "x.npy", np.random.default_rng(0).random((60, 4)))
    first = ["fit", "x.npy", "-k", 2, "--set", "epochs=1", "--out", "run"]
    assert inside(*first, cwd=tmp_path).returncode == 0
    before = {p: p.read_bytes() for p in (tmp_path / "run").rglob("*") if p.is_file()}
    refused(inside(*first, "--overwrite", "--set", "k=999", cwd=tmp_path), "k=999")
    refused(inside(*first, "--overwrite", "--device", "gpu", cwd=tmp_path), "gpu")
    refused(inside("fit", "nowhere.npy", "-k", 2, "--out", "run", "--overwrite", cwd=tmp_path), "nowhere.npy")
    assert {p: p.read_bytes() for p in (tmp_path / "run").rglob("*") if p.is_file()} == before


def test_overwrite_takes_only_what_a_run_consists_of(tmp_path):
    np.save(tmp_path / "x.npy", np.random.default_rng(0).random((60, 4)))
    first = ["fit", "x.npy", "-k", 2, "--set", "epochs=1", "--out", "run"]
    assert inside(*first, cwd=tmp_path).returncode == 0
    (tmp_path / "run" / "notes.txt").write_text("mine")
    assert inside(*first, "--overwrite", cwd=tmp_path).returncode == 0
    assert (tmp_path / "run" / "notes.txt").read_text() == "mine"
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text('{"model_type": "bert"}')
    refused(inside("fit", "x.npy", "-k", 2, "--out", "model", "--overwrite", cwd=tmp_path), "not a run folder")


def test_this_folder_gets_a_run_of_its_own(tmp_path):
    folder = tmp_path / "pictures"
    folder.mkdir()
    for i in range(12):
        Image.new("RGB", (8, 8), (20 * i, 0, 0)).save(folder / f"{i}.png")
    result = inside("fit", ".", "-k", 2, "--image-size", 8, *QUICK, cwd=folder)
    assert result.returncode == 0, result.stderr
    rows = (folder / "runs" / "pictures" / "labels.csv").read_text().splitlines()[1:]
    assert sorted(row.split(",")[0] for row in rows) == sorted(f"{i}.png" for i in range(12))


def test_resuming_remembers_how_the_data_was_read(tmp_path):
    """--image-size is in the run: the command that resumes need not repeat it."""
    (tmp_path / "p").mkdir()
    for i in range(12):
        Image.new("RGB", (30, 30), (20 * i, 0, 0)).save(tmp_path / "p" / f"{i}.png")
    assert inside("fit", "p", "-k", 2, "--image-size", 9, *QUICK, cwd=tmp_path).returncode == 0
    labels = (tmp_path / "runs" / "p" / "labels.csv").read_bytes()
    done = inside("fit", "p", "--out", "runs/p", "--resume", cwd=tmp_path)
    assert "read: 12 images of 3 x 9 x 9" in done.stderr
    assert (tmp_path / "runs" / "p" / "labels.csv").read_bytes() == labels
    refused(inside("fit", "p", "--resume", "--seed", 5, cwd=tmp_path), "random_state=0", "5")


def test_names_are_shown_as_they_are(tmp_path):
    np.save(tmp_path / "x.npy", np.random.default_rng(0).random((60, 4)))
    result = inside("fit", "x.npy", "-k", 2, "--method", "kmeans", "--out", "[bold]run", cwd=tmp_path)
    assert "run folder: [bold]run" in result.stdout


def test_devices_are_written_to_and_not_replaced(tmp_path):
    np.save(tmp_path / "x.npy", np.random.default_rng(0).random((60, 4)))
    assert inside("fit", "x.npy", "-k", 2, "--method", "kmeans", "--out", "run", cwd=tmp_path).returncode == 0
    os.mkfifo(tmp_path / "pipe")
    reader = subprocess.Popen(["cat", "pipe"], cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    assert inside("predict", "run", "x.npy", "--out", "pipe", cwd=tmp_path).returncode == 0
    assert len(reader.communicate()[0].splitlines()) == 61
    assert (tmp_path / "pipe").is_fifo()


def test_recipes_can_be_changed_in_parts(tmp_path):
    """--set pretext_plan.epochs keeps the rest of the recipe's plan."""
    few = ["--set", "pretext_plan.epochs=1", "--set", "epochs=1", "--set", "width=0.1"]
    result = inside("fit", "digits", "--recipe", "paper", *few, "--out", "run", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    plan = json.loads((tmp_path / "run" / "config.json").read_text())["settings"]["pretext_plan"]
    assert (plan["epochs"], plan["optimizer"], plan["lr"], plan["milestones"]) == (1, "sgd", 0.1, [60, 120, 160])


LONGER = ["--set", "neighbours=batch", "--set", "epochs=6", "--set", "pretext_plan.epochs=2", "--set", "width=0.1"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The labels of a run that nothing happened to."""
    folder = tmp_path_factory.mktemp("whole")
    result = inside("fit", "digits", *LONGER, "--out", "run", cwd=folder)
    assert result.returncode == 0, result.stderr
    return (folder / "run" / "labels.csv").read_bytes()


@pytest.mark.parametrize("number", [signal.SIGINT, *TO_END])
def test_interrupted_runs_go_on_where_they_were(tmp_path, number, whole):
    """Ctrl-C, SIGTERM or a closed terminal in the middle: its own exit code, how to resume, then the same labels."""
    code, out, said = surrounded(tmp_path, Signals(number), "fit", "digits", *LONGER, "--out", "cut")
    assert code == 128 + number, said
    assert out == "signal\nstep\n"  # which is finished
    assert "everything up to epoch 2, step 3 is saved. Resume with:" in said
    assert "lsdc fit digits --out cut --resume" in said
    assert not (tmp_path / "cut" / "labels.csv").exists()
    refused(inside("evaluate", "cut", cwd=tmp_path), "labels.csv", "not finished")
    resumed = inside("fit", "digits", "--out", "cut", "--resume", cwd=tmp_path)
    assert resumed.returncode == 0, resumed.stderr
    assert (tmp_path / "cut" / "labels.csv").read_bytes() == whole


def test_a_folder_of_images(tmp_path):
    rng = np.random.default_rng(0)
    (tmp_path / "photos" / "trip").mkdir(parents=True)
    for i in range(24):
        pixels = np.zeros((20, 30, 3), np.uint8)
        pixels[..., i % 2] = rng.integers(100, 255)
        Image.fromarray(pixels).save(tmp_path / "photos" / "trip" / f"{i:02}.png")
    few = [*FEW, "--set", "n_init=2", "--set", "batch_size=32"]  # of the default, a neighbour graph
    result = inside("fit", "photos", "--clusters", 2, "--image-size", 8, *few, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    lines = (tmp_path / "runs" / "photos" / "labels.csv").read_text().splitlines()
    assert lines[1].startswith("trip/00.png,")
    assert "lsdc predict runs/photos NEW_DATA" in result.stdout
    predicted = inside("predict", "runs/photos", "photos", cwd=tmp_path)
    assert predicted.stdout.splitlines() == lines
    shown = inside("evaluate", "runs/photos", cwd=tmp_path)
    assert "samples" in shown.stdout
    assert "--labels" in shown.stderr


def test_a_table_of_texts(tmp_path):
    animals, money = "cat dog bird horse mouse", "bank money loan credit cash"
    rng = np.random.default_rng(0)
    rows = [" ".join(rng.choice((animals, money)[i % 2].split(), 5)) for i in range(60)]
    (tmp_path / "mails.csv").write_text("id,text\n" + "\n".join(f"m{i},{row}" for i, row in enumerate(rows)) + "\n")
    (tmp_path / "truth.txt").write_text("\n".join("am"[i % 2] for i in range(60)) + "\n")
    result = inside("fit", "mails.csv", "--clusters", 2, *QUICK, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    scores = json.loads(inside("evaluate", "runs/mails", "--labels", "truth.txt", "--json", cwd=tmp_path).stdout)
    assert 0.5 <= scores["lsdc"]["acc"] <= 1
    (tmp_path / "new.txt").write_text("dog cat\nloan cash\n")
    assert len(inside("predict", "runs/mails", "new.txt", cwd=tmp_path).stdout.splitlines()) == 3
    refused(inside("evaluate", "runs/mails", "--labels", "new.txt", cwd=tmp_path), "2 labels", "60 samples")


def test_kmeans_by_the_same_interface(tmp_path):
    result = inside("fit", "blobs", "--method", "kmeans", "--out", "run", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert json.loads(inside("evaluate", "run", "--json", cwd=tmp_path).stdout)["kmeans"]["acc"] == 1.0


def test_finch_needs_no_number_of_clusters(tmp_path):
    centres = np.repeat(10 * np.eye(4), 30, axis=0)
    np.save(tmp_path / "x.npy", centres + np.random.default_rng(0).normal(size=centres.shape))
    refused(inside("fit", "x.npy", "--method", "kmeans", cwd=tmp_path), "--clusters is missing")
    result = inside("fit", "x.npy", "--method", "finch", "--out", "run", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "run" / "report.html").exists()
    result = inside("evaluate", "run", "--json", cwd=tmp_path)
    sizes = json.loads(result.stdout)["sizes"]
    assert sum(sizes) == 120
    assert 4 <= len(sizes) <= 8
    assert inside("predict", "run", "x.npy", cwd=tmp_path).stdout.count("\n") == 121
    assert inside("fit", "x.npy", "--method", "finch", "--out", "run", "--overwrite", cwd=tmp_path).returncode == 0


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["fit", "digitz"], ["digitz", "'digits'"]),
        (["fit", "nowhere.npy", "-k", 3], ["nowhere.npy", "no such file"]),
        (["fit", "digits", "--recipe", "papr"], ["'papr'", "'paper'"]),
        (["fit", "digits", "--method", "lsd"], ["'lsd'", "'lsdc'"]),
        (["fit", "digits", "--set", "epoch=3"], ["'epoch'", "'epochs'"]),
        (["fit", "digits", "--set", "epochs"], ["--set epochs", "KEY=VALUE"]),
        (["fit", "digits", "--set", "epochs=many"], ["epochs", "many"]),
        (["fit", "digits", "--set", "similarity=knm"], ["'knm'", "'knn'"]),
        (["fit", "digits", "--set", "similarity=knn", "--set", "k=256"], ["k=256", "256"]),
        (["fit", "digits", "--set", "pretext_plan.epoch=3"], ["pretext_plan.epochs"]),
        (["fit", "digits", "--set", "pretext_plan=5"], ["pretext_plan", "5"]),
        (["fit", "digits", "--set", "epochs=1", "--set", "epochs.x=3"], ["epochs.x=3"]),
        (["fit", "digits", "--set", "lr=Infinity"], ["lr", "inf"]),
        (["fit", "digits", "--set", "n_frozen=99"], ["n_frozen", "99"]),
        (["fit", "blobs", "--set", "composition=ricap", "--out", "runs/digits"], ["ricap", "needs images"]),
        (["fit", "blobs", "--set", "backbone=vgg4", "--out", "runs/digits"], ["vgg4", "needs images"]),
        (
            ["fit", "blobs", "--method", "dac", "--set", "backbone=vgg4", "--out", "runs/digits"],
            ["vgg4", "needs images"],
        ),
        (["fit", "line.npy", "-k", 2], ["line.npy", "1D array"]),
        (["fit", "digits", "--clusters", 0], ["n_clusters", "0"]),
        (["fit", "digits", "--clusters", "x"], ["--clusters"]),
        (["fit", "digits", "--clusters", 1798], ["n_clusters=1798", "1797"]),
        (["fit", "digits", "--device", "gpu"], ["device", "gpu"]),
        (["fit", "digits", "--resume", "--out", "."], [".: not a run folder"]),
        (["fit", "digits", "--resume", "--overwrite"], ["--resume", "--overwrite"]),
        (["fit", "digits", "--out", "/proc/run"], ["/proc/run", "cannot write"]),
        (["fit", "numbers.npy"], ["--clusters is missing"]),
        (["fit", "bad.npy", "-k", 2], ["bad.npy", "NaN in row 5"]),
        (["fit"], ["DATA"]),
        (["fti", "digits"], ["fti"]),
        (["fit", "digits", "--cluster", 3], ["--cluster"]),
        (["predict", "nowhere", "digits"], ["nowhere", "not a run folder"]),
        (["evaluate", "."], ["not a run folder"]),
        (["list", "nothing"], ["nothing"]),
        (["list", "xsettings"], ["'xsettings': did you mean 'settings'"]),
    ],
)
def test_mistakes_get_one_line(tmp_path, words, parts):
    X = np.random.default_rng(0).random((20, 3))
    np.save(tmp_path / "numbers.npy", X)
    np.save(tmp_path / "line.npy", X[:, 0])
    X[5, 1] = np.nan
    np.save(tmp_path / "bad.npy", X)
    refused(inside(*words, cwd=tmp_path), *parts)
    assert not (tmp_path / "runs" / "digits").exists()  # a refused fit leaves nothing behind


def test_broken_models_get_one_line(tmp_path):
    assert inside("fit", "blobs", "--method", "kmeans", "--out", "run", cwd=tmp_path).returncode == 0
    model = tmp_path / "run" / "model.safetensors"
    model.write_bytes(model.read_bytes()[:-10])
    refused(inside("predict", "run", "blobs", cwd=tmp_path), "model.safetensors", "truncated")
    model.write_bytes(b"\x80\x04N.")
    refused(inside("predict", "run", "blobs", cwd=tmp_path), "model.safetensors", "not a file written by lsdc")
    (tmp_path / "run" / "config.json").write_text("{")
    refused(inside("evaluate", "run", cwd=tmp_path), "not a run folder", "config.json")


def test_other_shapes_get_one_line(fitted):
    folder, _ = fitted
    refused(inside("predict", "runs/digits", "blobs", cwd=folder), "fitted on images of shape (1, 8, 8)")


NAMED = {
    "methods": METHODS,
    "datasets": DATASETS,
    "similarities": SIMILARITIES,
    "compositions": COMPOSITIONS,
    "pretexts": PRETEXTS,
    "backbones": BACKBONES,
    "augmentations": AUGMENTATIONS,
    "encoders": ENCODERS,
    "recipes": RECIPES,
    "settings": LSDC().get_params(),
}


@pytest.mark.parametrize("kind", Kind)
def test_lists_explain_every_name(tmp_path, kind):
    result = inside("list", kind, cwd=tmp_path)
    assert result.returncode == 0
    lines = [line.split() for line in result.stdout.rstrip().splitlines()[1:] if not line.startswith(" ")]
    assert [name for name, *_ in lines] == list(NAMED[kind])
    assert all(words for _, *words in lines)


@pytest.mark.parametrize(("option", "other"), [(("-k", 2), "n_clusters=5"), (("--seed", 1), "random_state=2")])
def test_an_option_and_a_setting_that_differ_are_refused(tmp_path, option, other):
    """The setting was ignored without a word."""
    done = inside("fit", "blobs", *option, "--set", other, "--method", "kmeans", "--out", "run", cwd=tmp_path)
    name = {"-k": "--clusters"}.get(option[0], option[0])
    assert (done.returncode, done.stderr) == (
        2,
        f"lsdc: --set {other} and {name} {option[1]} differ; give one of them\n",
    )
    same = other.partition("=")[0] + f"={option[1]}"
    assert inside("fit", "blobs", *option, "--set", same, "--method", "kmeans", cwd=tmp_path).returncode == 0


@pytest.mark.parametrize("method", METHODS)
def test_settings_are_explained_in_place(tmp_path, method):
    text = " ".join(inside("list", "settings", "--method", method, cwd=tmp_path).stdout.split())
    for name in METHODS[method]().get_params():
        assert re.search(rf" {name} default [^:]+: \w", text), name
    assert "As for" not in text


def test_the_settings_of_every_method_can_be_listed(tmp_path):
    result = inside("list", "settings", "--method", "finch", cwd=tmp_path)
    assert result.stdout.startswith("settings of finch")
    assert "metric" in result.stdout
    assert "epochs" not in result.stdout
    words = ["list", "settings", "--method", "finsh"]  # codespell:ignore finsh
    refused(inside(*words, cwd=tmp_path), words[-1], "did you mean 'finch'?")


def test_help_and_version(tmp_path):
    assert "lsdc fit digits" in lsdc("--help", cwd=tmp_path).stdout
    assert "--resume" in inside("fit", "--help", cwd=tmp_path).stdout
    assert inside("--version", cwd=tmp_path).stdout.startswith("lsdc 0.")


HELPS = """
import sys
from lsdc.__main__ import main
for words in {commands}:
    try:
        sys.argv = ["lsdc", *words]
        main()
    except SystemExit as ended:
        assert ended.code == 0, words
assert not {{"torch", "sklearn", "scipy", "numpy"}} & sys.modules.keys()
"""


def test_help_and_version_need_no_pytorch(tmp_path):
    """They answer at once: what takes seconds to import is imported by the command that needs it."""
    names = [command.name or command.callback.__name__ for command in app.registered_commands]
    assert {"fit", "predict", "evaluate", "report", "explore", "suggest-k", "reproduce", "list"} < set(names)
    commands = [["--help"], ["--version"], *([name, "--help"] for name in names)]
    code = HELPS.format(commands=commands)
    result = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("Usage:") == len(commands) - 1


def test_help_names_the_tables_and_the_seconds_that_are():
    assert tuple(TABLES) == NAMES
    assert signature(fit).parameters["save_every"].default == INTERVAL


SWALLOWED = """
import signal, sys
class Torch:
    def find_spec(self, name, path=None, target=None):
        if name == "torch":
            try:
                signal.raise_signal(signal.{number})
            except BaseException:
                raise ImportError("cut in two")  # libraries make anything of it
sys.meta_path.insert(0, Torch())
from lsdc.__main__ import main
main()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_while_pytorch_is_imported_gets_one_line(tmp_path, number):
    code = SWALLOWED.format(number=number.name)
    words = [sys.executable, "-c", code, "fit", "digits"]
    result = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (128 + number, "lsdc: stopped\n")


def test_commands_that_share_no_work_refuse_several_processes(tmp_path, monkeypatch):
    monkeypatch.setattr("lsdc.parallel.join", lambda: None)
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "0")
    refused(inside("list", "methods", cwd=tmp_path), "torchrun", "run lsdc list without it")
