"""``lsdc reproduce``: cells that are run once, tables that say what was measured, figures."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from lsdc.cli import main
from lsdc.data.datasets import DATASETS, load
from lsdc.errors import InputError
from lsdc.experiments import cells, figures, tables
from lsdc.experiments.cells import Cell
from lsdc.experiments.recipes import CPU, LABELLINGS, PAPER, labelling
from lsdc.experiments.reproduce import grid
from lsdc.functional import closest, knn
from lsdc.methods import LSDC


def call(*words):
    with pytest.raises(SystemExit) as stopped:
        main([str(word) for word in words])
    return stopped.value.code


def cell_result(seed, acc, variant="lsdc", dataset="mnist"):
    scores = {"acc": acc, "nmi": 0.5, "ari": 0.25}
    common = {"dataset": dataset, "title": dataset.upper(), "variant": variant, "seed": seed}
    return {**common, "scores": scores, "alive": 10 - seed, "sizes": [1] * 10, "seconds": 10.0 * (seed + 1)}


def test_a_row_is_the_mean_and_the_deviation_of_its_cells():
    (row,) = tables.summarise("table1", [cell_result(1, 0.94), cell_result(0, 0.98)])
    # by hand: mean 96, deviation sqrt((2^2 + 2^2) / (2 - 1)) = 2.83
    assert row.measured == "96.0 ± 2.8 (2)"
    assert row.published == "98.6 ± 0.5"
    assert tables.fields(row) == (
        "MNIST",
        "LSD-C",
        "96.0 ± 2.8 (2)",
        "94.0",
        "50.0",
        "25.0",
        "9/10",
        "15",
        "98.6 ± 0.5",
    )


def test_one_seed_has_no_deviation_and_other_data_no_published_figure():
    (row,) = tables.summarise("table1", [cell_result(0, 0.5, dataset="digits")])
    assert (row.measured, row.published) == ("50.0 (1)", "-")


def test_rows_stand_in_the_order_of_the_paper():
    mixed = [cell_result(0, 0.5, v, d) for d in ("digits", "mnist", "cifar10") for v in ("kmeans", "lsdc")]
    found = [(row.dataset, row.variant) for row in tables.summarise("table1", mixed)]
    assert found == [(d, v) for d in ("cifar10", "mnist", "digits") for v in ("lsdc", "kmeans")]


def test_markdown_and_latex_hold_every_row():
    rows = tables.summarise("table1", [cell_result(0, 0.5), cell_result(1, 0.5)])
    assert "| MNIST | LSD-C | 50.0 ± 0.0 (2) |" in tables.markdown("table1", "cpu", rows)
    assert r"MNIST & LSD-C & 50.0 $\pm$ 0.0 (2) & 50.0 & 25.0 & 98.6 $\pm$ 0.5 \\" in tables.latex(
        "table1", "cpu", rows
    )


def test_the_published_figures_are_those_of_the_paper():
    published = tables.TABLES["ablation"].published["cifar10"]
    assert (published["knn"], published["none"], published["sne-predictions"]) == ("81.7", "53.7", "67.0")
    for name, table in tables.TABLES.items():
        for dataset, row in table.published.items():
            assert dataset in table.datasets, name
            assert set(row) <= set(table.variants), name


@pytest.mark.parametrize("scale", ["cpu", "paper"])
@pytest.mark.parametrize("dataset", ["cifar10", "mnist"])
@pytest.mark.parametrize("variant", [name for name, v in tables.VARIANTS.items() if v.method == "lsdc"])
def test_every_variant_of_every_recipe_can_be_built(dataset, variant, scale):
    from lsdc.data.dataset import Dataset
    from lsdc.methods.settings import resolve

    shape = (4, 28, 28) if dataset == "mnist" else (4, 3, 32, 32)
    data = Dataset(dataset, np.zeros(shape, np.uint8), class_names=tuple("0123456789"))
    model = cells.build(Cell(dataset, variant, scale, 0), data)
    settings = resolve(model.get_params(), (1, 28, 28) if dataset == "mnist" else (3, 32, 32), 70_000)
    if tables.VARIANTS[variant].similarity:
        assert settings.labelling.similarity == tables.VARIANTS[variant].similarity


def test_the_recipes_are_for_known_data_and_known_settings():
    known = LSDC().get_params()
    for table in (PAPER, CPU):
        assert set(table) <= set(DATASETS)
        assert all(set(params) <= set(known) for params in table.values())
    assert labelling("cosine", "cifar100-20", "paper")["tau"] == 0.95
    assert labelling("cosine", "cifar100-20", "cpu")["tau"] is None
    assert set(LABELLINGS) <= set(DATASETS)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """One small table, run by the command line."""
    out = tmp_path_factory.mktemp("reproduce") / "out"
    assert call("reproduce", "table1", "--datasets", "two-moons", "--seeds", 2, "--out", out, "--jobs", 2) == 0
    return out


def test_a_finished_table_has_its_cells_and_files(finished, capsys):
    names = sorted(file.name for file in (finished / "cells").iterdir())
    # two moons have no pretext, so there is no K-means on one
    assert names == [f"two-moons-cpu-{v}-seed{s}.json" for v in ("kmeans", "lsdc") for s in (0, 1)]
    stored = json.loads((finished / "cells" / names[2]).read_text())
    assert stored["scores"]["acc"] > 0.99
    assert stored["settings"]["n_clusters"] == 2
    assert stored["environment"]["threads"] == 1
    assert np.sum(stored["confusion"]) == stored["n"] == 2000
    rows = json.loads((finished / "table1-cpu.json").read_text())["rows"]
    assert [(row["variant"], len(row["acc"])) for row in rows] == [("lsdc", 2), ("kmeans", 2)]
    assert (finished / "table1-cpu.md").read_text().count("| two-moons |") == 2
    assert (finished / "table1-cpu.tex").read_text().count("two-moons &") == 2


def test_a_cell_is_what_the_estimator_gives_by_itself(finished):
    stored = json.loads((finished / "cells" / "two-moons-cpu-lsdc-seed1.json").read_text())
    data = load("two-moons")
    torch.set_num_threads(1)
    labels = LSDC(2, random_state=1).fit_predict(data.X)
    assert stored["sizes"] == np.bincount(labels).tolist()


def test_finished_cells_are_not_run_again(finished):
    before = {file: file.stat().st_mtime_ns for file in (finished / "cells").iterdir()}
    assert call("reproduce", "table1", "--datasets", "two-moons", "--seeds", 2, "--out", finished) == 0
    assert before == {file: file.stat().st_mtime_ns for file in (finished / "cells").iterdir()}


def altered(finished, tmp_path, change):
    out = tmp_path / "out"
    (out / "cells").mkdir(parents=True)
    name = "two-moons-cpu-lsdc-seed0.json"
    content = json.loads((finished / "cells" / name).read_text())
    text = change(content)
    (out / "cells" / name).write_text(text)
    return out, out / "cells" / name, text


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda c: json.dumps({**c, "config": {**c["config"], "params": {**c["config"]["params"], "balance": 7}}}),
            "balance was 7",
        ),
        (lambda c: "{", "not a result"),
        (lambda c: "[]", "not a result"),
        (lambda c: json.dumps({**c, "scores": {}}), "not a result"),
    ],
)
def test_a_result_of_another_time_is_refused_and_left_alone(finished, tmp_path, capsys, change, said):
    out, file, text = altered(finished, tmp_path, change)
    assert call("reproduce", "table1", "--datasets", "two-moons", "--seeds", 1, "--out", out) == 2
    error = capsys.readouterr().err.strip().splitlines()
    assert len(error) == 1
    assert said in error[0]
    assert file.name in error[0]
    assert file.read_text() == text


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["tabel1"], "table1"),
        (["table1", "--datasets", "mnits"], "mnist"),
        (["table1", "--datasets", "blobs", "--scale", "gpu"], "scale"),
        (["ablation", "--datasets", "two-moons"], "composes images"),
        (["table1", "--datasets", "mnist"], "train-images-idx3-ubyte"),
    ],
)
def test_mistakes_are_one_line(words, said, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("LSDC_OFFLINE", "1")
    assert call("reproduce", *words, "--out", tmp_path / "out", "--data-root", tmp_path) == 2
    error = capsys.readouterr().err.strip().splitlines()
    assert len(error) == 1
    assert said in error[0]
    assert not (tmp_path / "out").exists()


@pytest.mark.filterwarnings("ignore::lsdc.errors.HealthWarning")
def test_cells_of_one_seed_share_a_pretext_and_end_as_if_they_did_not(tmp_path):
    data = load("digits")
    small = {"pretext_plan": {"epochs": 2}, "epochs": 1, "random_state": 3}
    folders = [tmp_path / "runs" / name for name in ("a", "b")]
    alone = LSDC(10, **small, composition="none").fit(data)
    LSDC(10, **small).fit(data, run=cells.CellRun(folders[0]))
    shared = list((tmp_path / "runs" / "pretexts").iterdir())
    assert len(shared) == 1
    stamp = shared[0].stat().st_mtime_ns
    second = LSDC(10, **small, composition="none").fit(data, run=cells.CellRun(folders[1]))
    assert shared[0].stat().st_mtime_ns == stamp  # it was not trained again
    assert (second.predict_proba(data.X) == alone.predict_proba(data.X)).all()
    assert [r["stage"] for r in cells.CellRun(folders[1]).read_metrics()] == ["pretext", "pretext", "clustering"]
    other = LSDC(10, **{**small, "random_state": 4}).fit(data, run=cells.CellRun(tmp_path / "runs" / "c"))
    assert other.seed_ == 4
    assert len(list((tmp_path / "runs" / "pretexts").iterdir())) == 2


@pytest.mark.slow
def test_an_interrupted_table_goes_on_where_it_was(tmp_path):
    words = [sys.executable, "-m", "lsdc", "reproduce", "table1", "--datasets", "blobs", "--seeds", "1", "--out", "out"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(words, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, start_new_session=True)
    metrics = tmp_path / "out" / "runs" / "blobs-cpu-lsdc-seed0" / "metrics.jsonl"
    deadline = time.monotonic() + 120
    while not metrics.exists() or metrics.read_text().count("\n") < 3:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)
    assert b"Go on with the same command" in process.communicate(timeout=60)[1]
    assert process.returncode == 130
    before = metrics.read_text().splitlines()
    assert subprocess.run(words, cwd=tmp_path, env=environment, check=False).returncode == 0
    after = metrics.read_text().splitlines()
    assert after[: len(before) - 1] == before[:-1]  # seconds and all: these epochs were not run again
    whole = LSDC(5, random_state=0).fit_predict(load("blobs").X)
    stored = json.loads((tmp_path / "out" / "cells" / "blobs-cpu-lsdc-seed0.json").read_text())
    assert stored["sizes"] == np.bincount(whole).tolist()


@pytest.mark.parametrize("samples", [None, 500])
@pytest.mark.parametrize("variant", tables.VARIANTS)
@pytest.mark.parametrize("dataset", ["two-moons", "cifar100-20"])
def test_a_cell_is_known_by_its_name(dataset, variant, samples):
    cell = Cell(dataset, variant, "paper", 12, samples)
    assert Cell.named(cell.name) == cell
    assert Cell.named(cell.name + "x") is None


def test_a_sample_is_the_same_for_every_seed_and_says_so():
    first, second = cells.opened("digits", Path(), 500), cells.opened("digits", Path(), 500)
    assert np.array_equal(first.X, second.X)
    assert len(first.X) == len(first.y) == 500
    assert first.title == "digits, 500 of 1,797"
    with pytest.raises(InputError, match="has 1,797 samples"):
        cells.opened("digits", Path(), 1797)


def test_the_grid_has_every_variant_of_every_seed():
    data = {"digits": load("digits")}
    found = grid("ablation", data, 3, "cpu")
    assert len(found) == len(set(found)) == 3 * len(tables.TABLES["ablation"].variants)


def test_two_moons_has_650_edges_in_each_of_the_four_labelings():
    _, _, labelings = figures.moons_edges()
    assert {name: len(pairs) for name, pairs in labelings.items()} == dict.fromkeys(("L2", "cosine", "kNN", "SNE"), 650)


def test_rank_scores_are_knn():
    f = torch.randn(40, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    A = knn(f, 3)
    assert (closest(figures.rank_scores(f), int(A.triu(1).sum())) == A).all()


def test_figures_are_files_that_do_not_change(tmp_path, finished):
    cell = json.loads((finished / "cells" / "two-moons-cpu-lsdc-seed0.json").read_text())
    makers = [
        lambda out: figures.two_moons(out),
        lambda out: figures.confusions(cell, out),
        lambda out: figures.curves([cell], out),
    ]
    for make in makers:
        first, second = make(tmp_path / "a"), make(tmp_path / "b")
        assert [file.suffix for file in first] == [".svg", ".pdf"]
        assert [a.read_bytes() for a in first] == [b.read_bytes() for b in second]


def test_unknown_labels_cannot_be_measured(tmp_path):
    with pytest.raises(InputError, match="composes images"):
        tables.check("ablation", ["blobs"], {"blobs": False})
