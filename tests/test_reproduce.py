"""``lsdc reproduce``: cells that are run once, tables that say what was measured, figures."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
import torch

from lsdc.cli.main import main
from lsdc.data.datasets import DATASETS, load
from lsdc.errors import InputError
from lsdc.experiments import figures, paper, reproduce
from lsdc.experiments.engine import Place, State
from lsdc.experiments.job import Source
from lsdc.experiments.recipes import CPU, LABELLINGS, PAPER, labelling
from lsdc.experiments.reproduce import COLUMNS, grid, job, parts, rows_of
from lsdc.experiments.sharing import SharingRun
from lsdc.experiments.table import cells, latex, markdown
from lsdc.functional import closest, knn
from lsdc.methods import DEC, IDEC, LSDC, VaDE
from lsdc.methods.lsdc import IMAGES_BEHAVIOUR
from lsdc.runs.folder import Run
from victims import interrupted


def call(*words):
    with pytest.raises(SystemExit) as stopped:
        main([str(word) for word in words])
    return stopped.value.code


def cell_result(seed, acc, variant="lsdc", dataset="mnist"):
    scores = {"acc": acc, "nmi": 0.5, "ari": 0.25}
    common = {"dataset": dataset, "title": dataset.upper(), "variant": variant, "scale": "cpu", "seed": seed}
    more = {"alive": 10 - seed, "sizes": [1] * 10, "seconds": 10.0 * (seed + 1), "history": []}
    return {**common, "scores": scores, **more}


def rows(*results, name="table1"):
    return rows_of(name, "cpu", results)


def test_a_row_is_the_mean_and_the_deviation_of_its_cells():
    measured = {"cpu_seconds": 14.0, "peak_mb": 400.0}
    (row,) = rows(cell_result(1, 0.94), {**cell_result(0, 0.98), **measured})
    # by hand: mean 96, deviation sqrt((2^2 + 2^2) / (2 - 1)) = 2.83
    assert row.measured == "96.0 ± 2.8 (2)"
    assert row.published == "98.6 ± 0.5"
    figures = ["96.0 ± 2.8 (2)", "94.0", "50.0", "25.0", "9/10", "15", "14", "400"]
    assert cells([row], COLUMNS) == [["MNIST", "LSD-C", *figures, "98.6 ± 0.5"]]
    (old,) = rows(cell_result(0, 0.98))  # of a time when processor and memory were not measured
    assert cells([old], ("CPU s", "MB")) == [["-", "-"]]


def test_each_data_set_stands_where_the_paper_has_it():
    homes = {d: [name for name in paper.TABLES if paper.belongs(name, d)] for d in ("mnist", "reuters10k", "digits")}
    assert homes["mnist"] == homes["digits"] == ["table1", "ablation", "ablation-extra"]
    assert homes["reuters10k"] == ["reuters", "ablation", "ablation-extra"]


def test_one_seed_has_no_deviation_and_other_data_no_published_figure():
    (row,) = rows(cell_result(0, 0.5, dataset="digits"))
    assert (row.measured, row.published) == ("50.0 (1)", "-")


def test_rows_stand_in_the_order_of_the_paper():
    mixed = [cell_result(0, 0.5, v, d) for d in ("digits", "mnist", "cifar10") for v in ("kmeans", "lsdc")]
    found = [(row.title, row.variant) for row in rows(*mixed)]
    assert found == [(d, v) for d in ("CIFAR10", "MNIST", "DIGITS") for v in ("lsdc", "kmeans")]


def test_markdown_and_latex_hold_every_row():
    found = rows(cell_result(0, 0.5), cell_result(1, 0.5))
    assert "| MNIST | LSD-C | 50.0 ± 0.0 (2) |" in markdown("t", COLUMNS, found)
    whole = r"MNIST & LSD-C & 50.0 $\pm$ 0.0 (2) & 50.0 & 50.0 & 25.0 & 9/10 & 15 & - & - & 98.6 $\pm$ 0.5 \\"
    assert whole in latex("t", COLUMNS, found)


def test_the_published_figures_are_those_of_the_paper():
    published = {name: table.published for name, table in paper.TABLES.items()}
    assert [published["table1"][d]["lsdc"] for d in ("cifar10", "cifar100-20", "stl10", "mnist")] == (
        ["81.7 ± 0.9", "42.3 ± 1.0", "66.4 ± 3.2", "98.6 ± 0.5"]
    )
    assert [published["table1"][d]["kmeans"] for d in ("cifar10", "cifar100-20", "stl10", "mnist")] == (
        ["22.9", "13.0", "19.2", "57.2"]
    )
    others = ("jule", "dec", "dac", "iic", "deepcluster")
    for dataset, row in (
        ("cifar10", "27.2 30.1 52.2 61.7 37.4"),
        ("cifar100-20", "13.7 18.5 23.8 25.7 18.9"),
        ("stl10", "27.7 35.9 47.0 59.6 33.4"),
    ):
        assert [published["table1"][dataset][variant] for variant in others] == row.split()
    others = ("jule", "dec", "dac", "iic", "idec", "imsat", "vade")
    row = ["96.4", "84.3", "97.8", "99.2", "88.1", "98.4", "94.5"]
    assert [published["table1"]["mnist"][variant] for variant in others] == row
    assert "deepcluster" not in published["table1"]["mnist"]
    text = {"kmeans": "52.4", "imsat": "71.9", "dec": "72.2", "idec": "75.6", "vade": "79.8", "finch": "81.5"}
    assert published["reuters"]["reuters10k"] == {**text, "lsdc": "79.0 ± 4.3"}
    order = (
        "l2",
        "cosine",
        "knn",
        "sne",
        "cosine-predictions",
        "knn-predictions",
        "sne-predictions",
        "knn",
        "mixup",
        "none",
    )
    for dataset, row in (
        ("cifar10", "70.2 81.1 81.7 81.5 63.7 64.7 67.0 81.7 75.3 53.7"),
        ("cifar100-20", "26.1 34.4 42.3 40.4 20.4 32.8 30.4 42.3 37.1 35.4"),
    ):
        assert [published["ablation"][dataset][variant] for variant in order] == row.split()
    for dataset, row in (("cifar10", "14.3 81.7 80.2 82.0"), ("cifar100-20", "9.1 40.5 39.2 38.6")):
        extra = ("kmeans-rotnet", "knn", "no-mse", "two-layer")
        assert [published["ablation-extra"][dataset][variant] for variant in extra] == row.split()
    for name, table in paper.TABLES.items():
        for dataset, row in table.published.items():
            assert dataset in table.datasets, name
            assert set(row) <= set(table.variants), name


def facts(n, shape, n_clusters, sparse=False):
    return {"n": n, "shape": shape, "sparse": sparse, "n_clusters": n_clusters, "digest": "", "unlabelled": 0}


FACTS = {
    "cifar10": facts(60_000, [3, 32, 32], 10),
    "cifar100-20": facts(60_000, [3, 32, 32], 20),
    "stl10": facts(13_000, [3, 96, 96], 10),
    "mnist": facts(70_000, [1, 28, 28], 10),
    "reuters10k": facts(10_000, [2000], 4, sparse=True),
}


@pytest.mark.parametrize("scale", ["cpu", "paper"])
@pytest.mark.parametrize("name", paper.TABLES)
def test_every_cell_of_every_table_can_be_built(name, scale):
    datasets = {dataset: FACTS[dataset] for dataset in paper.TABLES[name].datasets}
    found = grid(name, datasets, 3, scale)
    assert (
        len(found)
        == len({each.name for each in found})
        == 3 * sum(len(paper.columns(name, dataset)) for dataset in datasets)
    )
    for each in found:
        decided = each.config(FACTS[each.source.data])
        if similarity := paper.VARIANTS[each.facts["variant"]].similarity:
            assert decided["settings"]["similarity"] == similarity


def test_columns_are_those_of_the_methods_that_are_there_and_asked_for(monkeypatch):
    every = {variant.method: LSDC for variant in paper.VARIANTS.values()}
    monkeypatch.setattr(paper, "METHODS", every)
    assert paper.columns("table1", "mnist") == list(paper.TABLES["table1"].variants)
    assert set(paper.columns("table1", "mnist")) - set(paper.columns("table1", "stl10")) == {"idec", "imsat", "vade"}
    assert "idec" in paper.columns("table1", "digits")
    assert set(paper.columns("reuters")) >= {"imsat", "dec", "idec", "vade", "finch", "kmeans-lsa"}
    assert not any(name.endswith("-pretext") for name in paper.columns("reuters"))  # documents have none
    assert paper.columns("table1", "mnist", ["kmeans", "dec"]) == ["kmeans", "kmeans-pretext", "dec"]
    monkeypatch.setattr(paper, "METHODS", {"lsdc": LSDC, "dec": LSDC})
    assert paper.columns("table1", "mnist") == ["lsdc", "dec"]
    assert paper.columns("table1", "mnist", ["kmeans", "dec"]) == ["dec"]


def test_the_papers_ablation_is_literal():
    def settings(variant):
        return job(FACTS["cifar10"], "cifar10", variant, "paper", 0).config(FACTS["cifar10"])["settings"]

    assert settings("knn")["k"] == 20
    assert settings("l2") | {"similarity": ""} == settings("knn") | {"similarity": ""}
    assert settings("sne-predictions")["space"] == "predictions"
    assert (settings("mixup")["plan"]["weight_decay"], settings("knn")["plan"]["weight_decay"]) == (1e-4, 5e-4)
    assert settings("no-mse")["consistency"] == 0
    assert settings("two-layer")["head"] == "two-layer"


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
    assert stored["config"]["settings"]["n_clusters"] == 2
    assert stored["environment"]["threads"] == 1
    assert np.sum(stored["confusion"]) == stored["n"] == 2000
    rows = json.loads((finished / "table1-cpu.json").read_text())["rows"]
    assert [(row["variant"], len(row["scores"]["acc"])) for row in rows] == [("lsdc", 2), ("kmeans", 2)]
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
        (lambda c: json.dumps({**c, "config": {**c["config"], "behaviour": 0}}), "behaviour was 0"),
        (lambda c: json.dumps(c).replace('"balance": 2.0', '"balance": 7.0'), "balance was 7.0, is 2.0"),
        (lambda c: json.dumps({**c, "config": {**c["config"], "data": {**c["config"]["data"], "n": 1}}}), "n was 1"),
        (lambda c: json.dumps({key: value for key, value in c.items() if key != "title"}), "not a result"),
        (lambda c: json.dumps({**c, "seed": 5}), "not a result"),
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
        (["ablation", "--datasets", "two-moons"], "needs images"),
        (["table1", "--datasets", "blobs", "--methods", "kmean"], "kmeans"),
        (["ablation", "--methods", "kmeans"], "not in table ablation"),
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


def test_a_result_of_another_table_is_not_looked_at(tmp_path):
    (tmp_path / "cells").mkdir()
    (tmp_path / "cells" / "mnist-cpu-knn-seed0.json").write_text("{")
    assert reproduce.existing("table1", "cpu", tmp_path, {}) == {}
    with pytest.raises(InputError, match=r"mnist-cpu-knn-seed0.json: not a result"):
        reproduce.existing("ablation", "cpu", tmp_path, {})


@pytest.mark.filterwarnings("ignore::lsdc.errors.HealthWarning")
def test_cells_of_one_seed_share_a_pretext_and_end_as_if_they_did_not(tmp_path):
    data = load("digits")
    small = {"pretext_plan": {"epochs": 2}, "epochs": 1, "random_state": 3, "neighbours": "batch", "width": 0.1}
    folders = [tmp_path / "runs" / name for name in ("a", "b")]
    alone = LSDC(10, **small, composition="none").fit(data)
    LSDC(10, **small).fit(data, run=SharingRun(folders[0]))
    shared = list((tmp_path / "runs" / "pretexts").iterdir())
    assert len(shared) == 1
    stamp = shared[0].stat().st_mtime_ns
    second = LSDC(10, **small, composition="none").fit(data, run=SharingRun(folders[1]))
    assert shared[0].stat().st_mtime_ns == stamp  # it was not trained again
    assert (second.predict_proba(data.X) == alone.predict_proba(data.X)).all()
    assert [r["stage"] for r in SharingRun(folders[1]).read_metrics()] == ["pretext", "pretext", "clustering"]
    other = LSDC(10, **{**small, "random_state": 4}).fit(data, run=SharingRun(tmp_path / "runs" / "c"))
    assert other.seed_ == 4
    assert len(list((tmp_path / "runs" / "pretexts").iterdir())) == 2


@pytest.mark.filterwarnings("ignore::lsdc.errors.HealthWarning")
def test_methods_on_a_stacked_autoencoder_share_it_and_end_as_if_they_did_not(tmp_path):
    data = load("digits")
    small = {"pretext_plan": {"epochs": 2}, "epochs": 1, "random_state": 3}
    for method in (DEC, IDEC, VaDE):
        alone = method(10, **small).fit(data)
        shared = method(10, **small).fit(data, run=SharingRun(tmp_path / "runs" / method.method))
        assert (shared.predict_proba(data.X) == alone.predict_proba(data.X)).all()
        assert len(list((tmp_path / "runs" / "pretexts").iterdir())) == 1


@pytest.mark.slow
def test_an_interrupted_table_goes_on_where_it_was(tmp_path):
    words = ["reproduce", "table1", "--datasets", "blobs", "--seeds", "1", "--jobs", "1", "--out", f"{tmp_path}/out"]
    stopped = interrupted(words, tmp_path)
    assert "Run the same command again" in stopped.stderr
    assert stopped.returncode == 130
    metrics = tmp_path / "out" / "runs" / "blobs-cpu-lsdc-seed0" / "metrics.jsonl"
    before = metrics.read_text().splitlines()
    assert before  # of epochs shorter than a second, the first
    assert call(*words) == 0
    after = metrics.read_text().splitlines()
    assert after[: len(before)] == before  # seconds and all: what was kept was not run again
    assert len(after) > len(before)
    whole = LSDC(5, random_state=0).fit_predict(load("blobs").X)
    stored = json.loads((tmp_path / "out" / "cells" / "blobs-cpu-lsdc-seed0.json").read_text())
    assert stored["sizes"] == np.bincount(whole).tolist()


@pytest.mark.parametrize("samples", [None, 500])
@pytest.mark.parametrize("variant", paper.VARIANTS)
@pytest.mark.parametrize("dataset", ["two-moons", "cifar100-20"])
def test_a_cell_is_known_by_its_name(dataset, variant, samples):
    given = {"dataset": dataset, "variant": variant, "scale": "paper", "seed": 12, "samples": samples}
    name = job(FACTS["cifar100-20"], **given).name
    assert parts(name) == given
    assert parts(name + "x") is None


def test_a_sample_is_the_same_for_every_seed_and_says_so():
    first, second = (Source("digits", samples=500).open(Path()) for _ in range(2))
    assert np.array_equal(first.X, second.X)
    assert len(first.X) == len(first.y) == 500
    assert first.title == "digits, 500 of 1,797"
    with pytest.raises(InputError, match="has only 1,797 samples"):
        Source("digits", samples=1797).open(Path())


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
        lambda out: figures.confusions(cell, out, "x"),
        lambda out: figures.curves([cell], out, "x"),
    ]
    for make in makers:
        first, second = make(tmp_path / "a"), make(tmp_path / "b")
        assert [file.suffix for file in first] == [".svg", ".pdf"]
        assert [a.read_bytes() for a in first] == [b.read_bytes() for b in second]


def test_figures_are_drawn_from_the_cells_that_are_there(finished):
    words = ["reproduce", "figures", "--datasets", "two-moons", "--seeds", 2, "--out", finished]
    assert call(*words) == 0
    names = {file.name for file in (finished / "figures").glob("*.svg")}
    assert names == {"two-moons.svg", "confusion-two-moons-cpu.svg", "curves-two-moons-cpu.svg"}


def test_a_place_that_cannot_be_written_is_said_in_one_line(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert call("reproduce", "table1", "--datasets", "blobs", "--out", tmp_path / "file") == 2
    assert f"{tmp_path / 'file'}: cannot be written to" in capsys.readouterr().err


def test_a_change_of_images_leaves_other_results_valid():
    """The behaviour of a fit counts the changes of its own kind: vectors, documents and labels within batches stay."""

    def behaviour(shape, **params):
        model = LSDC(10, **params)
        return model.behaviour_with(model.resolved(shape, 1000, False))

    assert behaviour((1, 28, 28)) == IMAGES_BEHAVIOUR
    assert behaviour((3, 32, 32), pretext="contrastive") == IMAGES_BEHAVIOUR
    assert {behaviour((1, 28, 28), neighbours="batch"), behaviour((64,)), behaviour((3, 32, 32))} == {LSDC.behaviour}
    assert DEC(10).behaviour_with({}) == DEC.behaviour


def test_the_run_of_another_time_is_not_gone_on_with(finished, tmp_path):
    each = job(
        reproduce.read_data("table1", ["two-moons"], "cpu", tmp_path)["two-moons"], "two-moons", "lsdc", "cpu", 0
    )
    shutil.copytree(each.folder(finished), each.folder(tmp_path))
    config = each.folder(tmp_path) / "config.json"
    today = config.read_text()
    old = today.replace(f'"behaviour": {LSDC.behaviour}', f'"behaviour": {LSDC.behaviour - 1}')
    assert old != today
    config.write_text(old)
    assert each.work(tmp_path, tmp_path, "cpu")["sizes"] == each.read(finished)["sizes"]
    assert json.loads(config.read_text())["behaviour"] == LSDC.behaviour


def test_two_processes_do_not_work_on_one_cell(tmp_path):
    each = job({"n": 2000, "n_clusters": 5}, "blobs", "kmeans", "cpu", 0)
    with Run(each.folder(tmp_path)).alone(), pytest.raises(InputError, match="another process"):
        each.work(tmp_path, tmp_path)
    assert each.work(tmp_path, tmp_path)["scores"]["acc"] == 1.0


def test_a_failed_cell_is_named_in_the_table():
    notes = State(1, failed={"a-cell": "diverged"}).notes
    for write in (markdown, latex):
        assert "a-cell (diverged)" in write("t", COLUMNS, rows(cell_result(0, 0.5)), notes)


def test_what_cannot_take_the_data_is_named_in_the_table_and_alone_refused(tmp_path, capsys):
    X = sp.csc_matrix(np.random.default_rng(0).poisson(0.3, size=(200, 20)).astype(float))
    (tmp_path / "reuters10k").mkdir()
    scipy.io.savemat(tmp_path / "reuters10k" / "reuters10k.mat", {"X": X, "Y": np.arange(200)[None] % 4})
    words = ("reproduce", "table1", "--datasets", "reuters10k", "--seeds", 1, "--jobs", 1, "--data-root", tmp_path)
    assert call(*words, "--methods", "kmeans,jule", "--out", tmp_path / "both") == 0
    said = "jule takes images and dense vectors, not sparse vectors; methods that do: lsdc"
    assert capsys.readouterr().err.count(f"left out: reuters10k-cpu-jule: {said}") == 1
    assert f"Left out: reuters10k-cpu-jule ({said}" in (tmp_path / "both" / "table1-cpu.md").read_text()
    assert list(json.loads((tmp_path / "both" / "table1-cpu.json").read_text())["left_out"]) == ["reuters10k-cpu-jule"]
    assert call(*words, "--methods", "jule", "--out", tmp_path / "alone") == 2
    assert capsys.readouterr().err.strip().splitlines()[-1].startswith(f"lsdc: {said}")


def test_what_cannot_run_is_refused_before_anything_is_written(tmp_path, capsys):
    out = tmp_path / "out"
    assert call("reproduce", "table1", "--datasets", "two-moons", "--out", out, "--device", "tpu") == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert line == "lsdc: device must be 'auto', 'cpu' or 'cuda', got 'tpu'"
    with pytest.raises(InputError, match="nothing to run: table table1 has none of these methods on cifar100-20"):
        reproduce.reproduce("table1", [], {"cifar100-20": {}}, "cpu", Place(tmp_path, out))
    assert not out.exists()


@pytest.mark.parametrize(("option", "said"), [("--methods", "lsdc list methods"), ("--datasets", "lsdc list datasets")])
def test_an_empty_list_is_refused(option, said, tmp_path, capsys):
    assert call("reproduce", "table1", option, " ,", "--out", tmp_path) == 2
    assert f"lsdc: {option} ' ,': name at least one ({said})" in capsys.readouterr().err


def test_published_figures_are_for_whole_and_original_sets():
    part, rebuilt = cell_result(0, 0.5), cell_result(0, 0.5, dataset="reuters10k")
    part["title"], rebuilt["title"] = "MNIST, 10,000 of 70,000", "RCV1-10K (rebuilt)"
    assert rows(part)[0].published == "-"
    assert rows(rebuilt, name="reuters")[0].published == "79.0 ± 4.3 (original set)"
