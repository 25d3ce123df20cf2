"""``lsdc compare``: every method once, one table, K-means always in it; without labels, what can be said then."""

import json
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from lsdc.cli.main import main
from lsdc.data.datasets import load
from lsdc.experiments import compare, measure, table
from lsdc.experiments.compare import job, rows_of
from lsdc.experiments.engine import Place, State
from lsdc.experiments.job import Source
from lsdc.experiments.results import is_interrupted, settings_of
from lsdc.experiments.time_plot import against_time, legend
from lsdc.methods import FINCH, LSDC, KMeans
from lsdc.metrics import clustering_accuracy
from lsdc.runs.folder import Run
from victims import exit_code_of, interrupted

SMALL = {"epochs": 2, "pool": 0, "lr": 1e-9}  # learns nothing, and that fast
TINY = [word for key, value in SMALL.items() for word in ("--set", f"lsdc.{key}={value}")]


def call(*words):
    with pytest.raises(SystemExit) as stopped:
        main([str(word) for word in words])
    return stopped.value.code


LABELLED = (*table.SCORED, "note")


def shown(row, columns):
    return tuple(table.cells([row], columns)[0])


def result(method, seed, acc, own=None, seconds=1.0, peak=300.0, deep=True, alive=5):
    scores = {"acc": acc, "nmi": 0.5, "ari": 0.25, "kmeans_features_acc": own}
    more = {"alive": alive, "sizes": [1] * 5, "history": [{"epoch": 1}] if deep else []}
    cost = {"seconds": seconds, "cpu_seconds": seconds / 2, "peak_mb": peak}
    return {"method": method, "seed": seed, "scores": scores, **cost, **more}


def unlabelled(method, seed, labels, silhouette=0.5):
    scores = {"silhouette": silhouette, "silhouette_inputs": 0.25}
    more = {"alive": 2, "sizes": [2, 2], "history": [], "seconds": 20.0, "peak_mb": None}
    return {"method": method, "seed": seed, "scores": scores, "labels": labels, **more}


# ---- the table, by hand -------------------------------------------------------------------------------------


def test_rows_are_sorted_by_accuracy_and_those_below_kmeans_are_named():
    rows = rows_of(
        [
            *(result("dec", 0, 0.6), result("dec", 1, 0.8, seconds=3.0, peak=500.0, alive=4)),
            result("kmeans", 0, 0.75, deep=False),
            *(result("lsdc", 0, 0.9, own=0.8), result("idec", 0, 0.8, own=0.85), result("finch", 0, 0.5, deep=False)),
        ]
    )
    assert [row.method for row in rows] == ["lsdc", "idec", "kmeans", "dec", "finch"]
    notes = {row.method: row.note for row in rows}
    assert notes == {
        **{"lsdc": "", "kmeans": "", "finch": ""},  # FINCH is not deep: it learns no features to be worse than
        **{"dec": "below K-means", "idec": "below K-means on its own features"},
    }
    # by hand: mean 70, deviation sqrt(2 * 10^2 / 1) = 14.1, the worst, 2 s on average, the largest peak
    assert table.below(rows) == ["below K-means: dec", "below K-means on its own features: idec"]
    assert legend(rows) == ["orange: below K-means or below K-means on its own features"]
    assert legend([row for row in rows if row.method != "dec"]) == ["orange: below K-means on its own features"]
    assert legend([row for row in rows if not row.note]) == []
    figures = ("70.0 ± 14.1 (2)", "60.0", "50.0", "25.0", "4/5", "2.0", "1.0", "500")
    assert shown(rows[3], LABELLED) == ("dec", *figures, "below K-means")


def test_without_labels_seeds_are_compared_with_each_other():
    (one,) = rows_of([unlabelled("kmeans", 0, "0 0 1 1")])
    assert shown(one, table.UNLABELLED) == ("kmeans", "0.50 (1)", "0.25", "-", "2/2", "20", "-", "-")
    (two,) = rows_of([unlabelled("kmeans", 0, "0 0 1 1"), unlabelled("kmeans", 1, "1 1 0 0")])
    assert two.stability == 1.0  # other numbers, the same clusters
    three = table.stability([[*"0011"], [*"1100"], [*"0101"]])
    assert three == pytest.approx((1 - 0.5 - 0.5) / 3)  # ARI of two crossed halvings of four samples is -1/2


def test_a_silhouette_that_does_not_exist_is_a_dash():
    (row,) = rows_of([{**unlabelled("lsdc", 0, "0 0"), "scores": {"silhouette": None}}])
    assert shown(row, table.UNLABELLED)[1:4] == ("- (1)", "-", "-")
    assert row.leading == ()


def test_markdown_and_latex_hold_every_row_and_the_notes():
    rows = rows_of([result("kmeans", 0, 0.75, deep=False)])
    for write in (table.markdown, table.latex):
        text = write("blobs", LABELLED, rows, ["Left out: iic (needs images)."])
        assert "75.0 (1)" in text
        assert "Left out: iic (needs images)." in text


def test_peak_memory_is_that_of_this_process():
    assert exit_code_of(allocating) == 0


def allocating():
    """In a process whose peak is now, which that of the tests need not be."""
    before = measure.peak_mb()
    block = np.ones(2**25)  # 256 MB
    after = measure.peak_mb()
    del block
    assert 250 < after - before < 300
    assert abs(measure.peak_mb() - after) < 20  # a peak stays; the kernel counts pages in batches


# ---- one cell -----------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::lsdc.errors.HealthWarning")  # hardly trained, it may leave a cluster empty
def test_an_entry_is_what_the_estimator_gives_by_itself(tmp_path):
    entry = job(Source("blobs"), "lsdc", 5, 3, SMALL)
    stored = entry.work(tmp_path, tmp_path / "out", "cpu", lambda progress: None)
    data = load("blobs")
    alone = LSDC(5, random_state=3, device="cpu", **SMALL).fit(data)
    assert stored["sizes"] == np.bincount(alone.labels_, minlength=5).tolist()
    assert stored["scores"]["acc"] == clustering_accuracy(data.y, alone.labels_)
    features = KMeans(5, n_init=measure.STARTS, random_state=3).fit(alone.transform(data.X))
    assert stored["scores"]["kmeans_features_acc"] == clustering_accuracy(data.y, features.labels_)
    assert json.loads(entry.file(tmp_path / "out").read_text()) == json.loads(json.dumps(stored))
    assert stored["config"]["settings"]["plan"]["epochs"] == 2
    assert stored["seconds"] >= sum(record["seconds"] for record in stored["history"])
    assert stored["cpu_seconds"] > 0


def test_seconds_are_those_of_all_epochs_and_of_what_is_done_outside_them(tmp_path):
    class Enough(Exception):
        pass

    def stop(progress):
        if progress.record and progress.stage == "clustering":
            raise Enough

    with pytest.raises(Enough):
        LSDC(5, random_state=0, device="cpu", **SMALL).fit(load("blobs"), run=tmp_path / "run", monitor=stop)
    model, started = LSDC(5, random_state=0, device="cpu", **SMALL), time.perf_counter()
    spent, _ = measure.timed(model, load("blobs"), Run(tmp_path / "run"), True, None)
    now = time.perf_counter() - started
    before, last = model.history_[:-1], model.history_[-1]
    earlier = sum(record["seconds"] for record in before)
    assert earlier + last["seconds"] < spent.seconds <= earlier + now
    assert spent.cpu_seconds is None  # nobody knows what the first epochs took of the processor
    assert (spent + measure.Spent(1.0, 2.0)).as_dict() == {"seconds": round(spent.seconds + 1, 2), "cpu_seconds": None}


def test_silhouettes_are_of_the_features_and_of_the_inputs():
    X = np.array([[0.0, 0], [0, 1], [9, 9], [9, 10]])
    model = FINCH(2).fit(X)
    found = measure.silhouettes(model, X, X)
    # by hand: 1 within, and to the other two sqrt(162), sqrt(181) or sqrt(145), sqrt(162)
    far = [(162**0.5 + 181**0.5) / 2, (145**0.5 + 162**0.5) / 2]
    expected = np.mean([1 - 1 / d for d in far])
    assert found == {"silhouette": pytest.approx(expected, 1e-5), "silhouette_inputs": pytest.approx(expected)}
    model.labels_ = np.zeros(4, np.int64)
    assert measure.silhouettes(model, X, X) == {"silhouette": None, "silhouette_inputs": None}


@pytest.mark.parametrize("kind", ["texts.txt", "labelled.csv"])
def test_files_are_compared_too(tmp_path, kind):
    file = tmp_path / kind
    words = ["ship sea sail", "sea sail wave", "goal ball team", "team ball match"] * 5
    if kind == "texts.txt":
        file.write_text("\n".join(words))
    else:
        file.write_text("x,y,label\n" + "\n".join(f"{i % 2 * 5},{i % 3},{'ab'[i % 2]}" for i in range(20)))
    entry = job(Source(str(file)), "kmeans", 2, 0)
    stored = entry.work(tmp_path, tmp_path / "out", "cpu", lambda progress: None)
    assert sum(stored["sizes"]) == stored["n"] == 20
    assert ("labels" in stored) == (kind == "texts.txt")
    assert stored["scores"].get("acc", 1.0) == 1.0


# ---- the command --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A real comparison, each fit in a process of its own."""
    out = tmp_path_factory.mktemp("compare") / "out"
    assert call("compare", "blobs", "--methods", "lsdc,finch", "--out", out, "--jobs", 2, *TINY) == 0
    return out


def test_a_comparison_has_its_cells_table_and_plot(finished):
    assert {file.stem for file in (finished / "cells").iterdir()} == {"lsdc-seed0", "finch-seed0", "kmeans-seed0"}
    stored = json.loads((finished / "cells" / "lsdc-seed0.json").read_text())
    assert stored["environment"]["threads"] == 1
    assert stored["peak_mb"] > 50
    assert len(stored["history"]) == 2
    rows = {row["method"]: row for row in json.loads((finished / "compare.json").read_text())["rows"]}
    assert set(rows) == {"lsdc", "finch", "kmeans"}  # K-means though nobody asked
    assert rows["kmeans"]["scores"]["acc"] == [1.0]
    assert rows["lsdc"]["note"] == "below K-means"
    assert rows["lsdc"]["deep"]
    assert not rows["finch"]["deep"]
    assert "| kmeans | 100.0 (1) |" in (finished / "compare.md").read_text()
    assert "kmeans & 100.0 (1)" in (finished / "compare.tex").read_text()
    assert "ACC (%)" in (finished / "compare.svg").read_text()


def test_how_the_file_was_read_is_said_before_anything_runs(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("x.csv").write_text("when,a\n" + "".join(f"{i},{i % 2 * 9 + i / 99}\n" for i in range(40)))
    assert call("compare", "x.csv", "--clusters", "2", "--methods", "kmeans", "--out", tmp_path / "out") == 0
    said = capsys.readouterr().err
    assert 0 <= said.index("column when counts the rows") < said.index("kmeans-seed0")


def test_what_is_finished_is_not_run_again(finished, capsys):
    before = {file: file.stat().st_mtime_ns for file in (finished / "cells").iterdir()}
    assert call("compare", "blobs", "--methods", "lsdc,finch", "--out", finished, *TINY) == 0
    assert before == {file: file.stat().st_mtime_ns for file in (finished / "cells").iterdir()}
    said = capsys.readouterr()
    assert "below K-means: lsdc\n" in said.out
    assert "starts" not in said.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([*TINY, "--set", "lsdc.lr=0.5"], "lr was 1e-09, is 0.5"),
        ([*TINY, "--clusters", "4"], "n_clusters was 5, is 4"),
    ],
)
def test_a_result_of_other_settings_is_refused_and_left_alone(finished, capsys, words, said):
    assert call("compare", "blobs", "--methods", "lsdc", "--out", finished, *words) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert said in line
    assert "lsdc-seed0.json" in line


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["blobs", "--methods", "kmean"], "did you mean 'kmeans'"),
        (["blobs", "--methods", ","], "--methods"),
        (["blob"], "did you mean the data set 'blobs'"),
        (["blobs", "--seeds", "0"], "--seeds"),
        (["blobs", "--clusters", "0"], "--clusters"),
        (["blobs", "--set", "epochs=3"], "METHOD.KEY=VALUE"),
        (["blobs", "--set", "kmeans.n_inti=3"], "n_init"),
        (["blobs", "--set", "kmean.n_init=3"], "kmeans"),
        (["blobs", "--set", "kmeans.n_clusters=3"], "--clusters"),
        (["blobs", "--methods", "kmeans", "--set", "lsdc.epochs=3"], "lsdc is not one of the methods to run; add it"),
        (["bare.csv"], "--clusters is missing"),
        (["flat.npy", "--clusters", "2"], "flat.npy: X has one dimension"),
    ],
)
def test_mistakes_are_one_line(words, said, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("bare.csv").write_text("1,2\n3,4\n5,6\n")
    np.save("flat.npy", np.arange(5.0))
    assert call("compare", *words, "--out", tmp_path / "out") == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert said in line
    assert not (tmp_path / "out").exists()


def test_a_place_that_holds_something_else_is_left_alone(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter1.tex").write_text("")
    for name in ("file", "thesis"):
        assert call("compare", "blobs", "--out", tmp_path / name) == 2
        assert "was not written by lsdc compare" in capsys.readouterr().err
    assert [file.name for file in (tmp_path / "thesis").iterdir()] == ["chapter1.tex"]


def test_without_labels_there_are_silhouettes_and_stability(tmp_path, capsys):
    file, out = tmp_path / "bare.csv", tmp_path / "out"
    np.savetxt(file, load("blobs").X[:200], delimiter=",")
    out.mkdir()
    for method in ("kmeans", "finch"):
        for seed in (0, 1):
            job(Source(str(file)), method, 5, seed).work(tmp_path, out, "cpu", lambda progress: None)
    (out / "compare.json").write_text("{}")
    assert call("compare", file, "--clusters", 5, "--methods", "kmeans,finch", "--seeds", 2, "--out", out) == 0
    said = capsys.readouterr().out
    assert "stability" in said
    assert "ACC" not in said
    rows = json.loads((out / "compare.json").read_text())["rows"]
    assert {row["method"]: row["stability"] for row in rows} == {"kmeans": 1.0, "finch": 1.0}
    assert all(0.5 < row["scores"]["silhouette_inputs"][0] < 1 for row in rows)
    assert "silhouette on the inputs" in (out / "compare.svg").read_text()


def test_a_method_that_cannot_take_the_data_is_left_out_and_alone_refused(tmp_path, capsys):
    file = tmp_path / "texts.csv"
    file.write_text("text\n" + "".join(f"{word} and {word} {i}\n" for i in range(20) for word in ("cat", "ship")))
    words = ("compare", file, "--clusters", 2, "--column", "text", "--jobs", 1, "--out", tmp_path / "out")
    assert call(*words, "--methods", "iic,kmeans", "--seeds", 2) == 0
    said = capsys.readouterr()
    assert said.err.count("left out: iic: iic takes images and dense vectors, not texts") == 1  # once for both seeds
    assert "iic" not in said.out
    assert "Left out: iic (iic takes images" in (tmp_path / "out" / "compare.md").read_text()
    assert call(*words, "--methods", "iic") == 2
    line = capsys.readouterr().err.strip().splitlines()[-1]
    assert line.startswith("lsdc: iic takes images and dense vectors, not texts; methods that do: lsdc")
    assert not (tmp_path / "out" / "runs" / "iic-seed0").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--set", "lsdc.epochs=abc"], "lsdc: lsdc: epochs: input should be a valid integer"),
        (["--set", "kmeans.n_init=0"], "lsdc: kmeans: n_init must be a whole number of at least 1, got 0"),
        (["--set", "lsdc.epochs"], "lsdc: --set lsdc.epochs: write METHOD.KEY=VALUE"),
        (["--clusters", "2001"], "lsdc: lsdc: n_clusters=2001 is more than the 2000 samples of X"),
        (["--device", "tpu"], "lsdc: device must be 'auto', 'cpu' or 'cuda', got 'tpu'"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_runs(words, said, tmp_path, capsys):
    assert call("compare", "blobs", "--methods", "lsdc", "--out", tmp_path / "out", *words) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert line.startswith(said)
    assert not (tmp_path / "out").exists()


def test_a_run_that_another_process_is_at_work_on_fails_alone(tmp_path, capsys):
    entry = job(Source("blobs"), "kmeans", 5, 0)
    with Run(entry.folder(tmp_path / "out")).alone():
        (tmp_path / "out" / "compare.json").write_text("{}")
        words = ("compare", "blobs", "--methods", "kmeans", "--seeds", 2, "--jobs", 1, "--out", tmp_path / "out")
        assert call(*words) == 1
    assert "1 of 2 fits failed; kmeans-seed0: " in capsys.readouterr().err
    table = (tmp_path / "out" / "compare.md").read_text()
    assert "Failed, not included in the means: kmeans-seed0 (" in table
    assert "| kmeans | 100.0 (1) |" in table


def test_a_dot_stands_at_the_seconds_of_its_own_seed():
    results = [unlabelled("dec", seed, "0 1") for seed in range(2)]
    results[0]["scores"]["silhouette_inputs"], results[0]["seconds"], results[1]["seconds"] = None, 5.0, 70.0
    (row,) = rows_of(results)
    assert row.points == ((70.0, 0.25),)
    assert row.leading == (0.25,)
    assert row.seconds == (5.0, 70.0)


def test_what_kmeans_cannot_take_ends_everything(tmp_path, capsys):
    file = tmp_path / "three.csv"
    file.write_text("1,2\n3,4\n5,6\n")
    assert call("compare", file, "--clusters", 9, "--methods", "kmeans", "--out", tmp_path / "out") == 2
    assert "n_clusters=9 is more than the 3 samples" in capsys.readouterr().err.strip().splitlines()[-1]


def test_without_matplotlib_the_table_is_there_and_the_plot_is_not(finished, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    before = (finished / "compare.svg").stat().st_mtime_ns
    assert call("compare", "blobs", "--methods", "lsdc,finch", "--out", finished, *TINY) == 0
    said = capsys.readouterr()
    assert "no plot: figures need matplotlib" in said.err
    assert "compare.svg" not in said.out
    assert (finished / "compare.svg").stat().st_mtime_ns == before


def test_the_plot_is_a_file_that_does_not_change(tmp_path):
    rows = rows_of([result("kmeans", 0, 0.75, deep=False), result("dec", 0, 0.7), result("dec", 1, 0.6)])
    first, second = (against_time(rows, "blobs", tmp_path / f"{name}.svg").read_bytes() for name in "ab")
    assert first == second
    assert b"dec" in first


def test_a_failed_fit_is_named(tmp_path):
    state = State(1, failed={"kmeans-seed0": "diverged"})
    table.write(tmp_path / "out" / "compare", "blobs", LABELLED, [], state.notes, state.ends)
    assert "kmeans-seed0 (diverged)" in (tmp_path / "out" / "compare.md").read_text()
    assert json.loads((tmp_path / "out" / "compare.json").read_text())["failed"] == state.failed
    assert Place(tmp_path, tmp_path, jobs=3).slots == range(3)


def test_ctrl_c_keeps_what_is_finished_and_the_same_command_goes_on(tmp_path):
    words = ["compare", "blobs", "--methods", "kmeans,lsdc", "--out", "out", "--jobs", "1", "--set", "lsdc.epochs=4"]
    stopped = interrupted(words, tmp_path)
    assert "Run the same command again" in stopped.stderr
    assert "Traceback" not in stopped.stderr
    assert stopped.returncode == 130
    assert [file.stem for file in (tmp_path / "out" / "cells").iterdir()] == ["kmeans-seed0"]
    assert "kmeans" in (tmp_path / "out" / "compare.md").read_text()
    entry = job(Source("blobs"), "lsdc", 5, 0, {"epochs": 4})
    model, data = entry.build(), compare.plan(Source("blobs"), load("blobs"), ["lsdc"], 1, 5).data
    run = Run(entry.folder(tmp_path / "out"))
    assert is_interrupted(run, model, settings_of(model, data), data)
