"""Corrections become what the model knows: what resembles them follows, and the run they were made in stays."""

import json
import warnings

import numpy as np
import pytest

import lsdc
from exploring import fitted
from lsdc.cli.main import main
from lsdc.cli.run_data import data_of_run
from lsdc.errors import InputError
from lsdc.explore.corrected import carry_over, refine_run
from lsdc.explore.edits import EDIT, initial, replayed
from lsdc.explore.journal import Journal, header_of
from lsdc.explore.refine import corrections
from lsdc.methods import read_config
from lsdc.runs.folder import Run

BLOBS, EACH = 5, 60
TRUTH = np.repeat(np.arange(BLOBS), EACH)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Five blobs in four clusters: two of them had to share one."""
    folder = tmp_path_factory.mktemp("refine")
    rng = np.random.default_rng(0)
    centres = rng.normal(0, 1, (BLOBS, 40))
    centres[4] = centres[3] + 0.4 * rng.normal(0, 1, 40)
    np.save(folder / "x.npy", centres[TRUTH] + 0.15 * rng.normal(0, 1, (len(TRUTH), 40)))
    with warnings.catch_warnings(action="ignore"):
        return fitted(folder / "x.npy", folder / "run", 4, "lsdc", n_init=8, epochs=4)


def refine(run, edits, out):
    journal, _ = Journal.open(run / "edits.jsonl", header_of(run / "labels.csv"))
    for edit in edits:
        journal.append(EDIT.validate_python(edit))
    try:
        config = read_config(Run.open(run))
        new = Run.create(out)
        return refine_run(Run.open(run), new, config, data_of_run(config, None), 4, lambda progress: None)
    finally:
        (run / "edits.jsonl").unlink()


def test_samples_that_resemble_what_was_moved_follow(made, tmp_path):
    _, labels, _ = Run.open(made).read_labels()
    shared = labels[-1]
    assert (labels[TRUTH >= 3] == shared).mean() > 0.9  # the last two blobs are one cluster
    some = np.flatnonzero(TRUTH == 4)[:8].tolist()
    edits = [
        {"do": "move", "samples": some, "to": None},
        {"do": "name", "cluster": 4, "name": "the fifth"},
        {"do": "outlier", "samples": [0]},
    ]
    result = refine(made, edits, tmp_path / "refined")
    _, after, _ = Run.open(tmp_path / "refined").read_labels()
    assert (result.n_clusters, result.corrected, result.followed) == (5, 8, 8)
    others = (TRUTH == 4) & (np.arange(len(TRUTH)) >= some[-1] + 1)
    assert (after[others] == 4).mean() > 0.9  # 52 samples that nobody touched
    assert (after[TRUTH < 4] != 4).mean() > 0.95
    assert result.others == (after != np.where(np.isin(np.arange(len(labels)), some), 4, labels))[1:].sum()
    model = lsdc.load(tmp_path / "refined")
    assert np.array_equal(model.predict(np.load(made.parent / "x.npy")), after)
    _, kept = Journal.open(tmp_path / "refined/edits.jsonl", header_of(tmp_path / "refined/labels.csv"))
    state = replayed(initial(after, 5), kept).state
    assert (state.called(4), state.labels[0]) == ("the fifth", -1)


def test_merged_clusters_become_one_and_the_run_before_stays(made, capsys):
    """By the command, as people call it."""
    journal, _ = Journal.open(made / "edits.jsonl", header_of(made / "labels.csv"))
    journal.append(EDIT.validate_python({"do": "merge", "cluster": 0, "into": 1}))
    before = {file.name: file.read_bytes() for file in made.iterdir() if file.is_file()}
    _, labels, _ = Run.open(made).read_labels()
    codes = []
    for more in ([], [], ["--overwrite"]):
        with pytest.raises(SystemExit) as end:
            main(["refine", str(made), "--epochs", "2", *more])
        codes.append(end.value.code)
    assert codes == [0, 2, 0]
    said = capsys.readouterr()
    assert "0 untouched samples changed cluster" in said.out
    assert "refined: a run already exists here; use --overwrite or another --out" in said.err
    _, after, _ = Run.open(made / "refined").read_labels()
    together = np.isin(labels, [0, 1])
    assert len(set(after[together])) == 1
    assert (after[~together] != after[together][0]).all()
    assert {file.name: file.read_bytes() for file in made.iterdir() if file.is_file()} == before
    config = json.loads((made / "refined/config.json").read_text())
    assert config["params"]["n_clusters"] == config["settings"]["n_clusters"] == 3
    assert {"environment.json", "metrics.jsonl", "labels.csv", "model.safetensors", "report.html"} <= {
        file.name for file in (made / "refined").iterdir()
    }
    assert Run.open(made / "refined").read_metrics()[-1]["stage"] == "refine"
    (made / "edits.jsonl").unlink()


def test_a_refined_run_is_not_resumed_as_if_it_had_been_fitted(made, tmp_path, capsys):
    """It has the settings and the data of the run it came from, so a fit would have begun anew in its folder."""
    out = tmp_path / "refined"
    refine(made, [{"do": "move", "samples": [0, 1], "to": None}], out)
    before = {file.name: file.read_bytes() for file in out.iterdir() if file.is_file()}
    with pytest.raises(SystemExit) as ended:
        main(["fit", str(made.parent / "x.npy"), "--clusters", "5", "--out", str(out), "--resume"])
    assert ended.value.code == 2
    assert "was refined from another run" in capsys.readouterr().err
    assert {file.name: file.read_bytes() for file in out.iterdir() if file.is_file()} == before


def test_halves_of_a_split_are_told_apart(made, tmp_path):
    _, labels, _ = Run.open(made).read_labels()
    half = np.flatnonzero(TRUTH == 4)
    edits = [{"do": "split", "cluster": int(labels[-1]), "samples": half[labels[half] == labels[-1]].tolist()}]
    assert refine(made, edits, tmp_path / "refined").n_clusters == 5
    _, after, _ = Run.open(tmp_path / "refined").read_labels()
    assert (after[half] == 4).mean() > 0.9
    assert (after[TRUTH == 3] == 4).mean() < 0.1


def test_what_cannot_be_refined_is_said(made, tmp_path):
    with pytest.raises(InputError, match=r"run: nothing has been corrected yet; correct some samples in the explorer"):
        refine(made, [{"do": "outlier", "samples": [1]}, {"do": "undo"}], tmp_path / "refined")
    n = len(TRUTH)
    for outliers in (range(n), range(1, n)):
        with pytest.raises(InputError, match=r"run: all samples, or all but one, are outliers; move some"):
            refine(made, [{"do": "outlier", "samples": [*outliers]}], tmp_path / "refined")
    with pytest.raises(InputError, match=r"edits.jsonl: does not match the labels \(there is no sample 300; .*move it"):
        refine(made, [{"do": "outlier", "samples": [n]}], tmp_path / "refined")
    assert not (tmp_path / "refined").exists()
    np.save(tmp_path / "x.npy", np.random.default_rng(0).random((20, 4)))
    other = fitted(tmp_path / "x.npy", tmp_path / "other", 2)
    with pytest.raises(InputError, match=r"models of the method lsdc, not kmeans"):
        refine(other, [{"do": "merge", "cluster": 0, "into": 1}], tmp_path / "elsewhere")


def test_a_few_samples_among_many_outliers_are_enough(made, tmp_path, monkeypatch):
    """The graph is made of samples that are left, however few of all samples it takes."""
    monkeypatch.setattr("lsdc.methods.graph.SAMPLES", 4)
    edits = [{"do": "outlier", "samples": [*range(298)]}, {"do": "move", "samples": [298], "to": 0}]
    assert refine(made, edits, tmp_path / "refined").corrected == 1


def test_warnings_of_training_are_plain_lines(made, tmp_path, capsys):
    """Sixty clusters of one sample each, of which some are bound to be empty."""
    journal, _ = Journal.open(made / "edits.jsonl", header_of(made / "labels.csv"))
    for i in range(60):
        journal.append(EDIT.validate_python({"do": "move", "samples": [i], "to": None}))
    with pytest.raises(SystemExit) as end:
        main(["refine", str(made), "--out", str(tmp_path / "refined")])
    (made / "edits.jsonl").unlink()
    said = capsys.readouterr().err
    assert end.value.code == 0
    assert "warning: " in said
    assert "HealthWarning" not in said


def test_corrections_count_clusters_that_are_there(tmp_path):
    base = initial(np.array([0, 0, 1, 1, 2, 2]), 3)
    edits = [
        {"do": "merge", "cluster": 0, "into": 2},
        {"do": "move", "samples": [2], "to": 2},
        {"do": "move", "samples": [3], "to": None},
        {"do": "name", "cluster": 2, "name": "two"},
        {"do": "outlier", "samples": [0]},
    ]
    found = corrections(replayed(base, map(EDIT.validate_python, edits)))
    assert found.labels.tolist() == [-1, 0, 0, 1, 0, 0]
    assert found.moved.tolist() == [False, False, True, True, False, False]
    assert found.sources == ((0, 2), ())
    assert found.names == {0: "two"}
    new, learnt = Run.create(tmp_path), np.array([0, 0, 1, 1, 0, 0])  # which does not follow in sample 2
    new.write_labels(range(6), learnt, np.ones(6))
    carry_over(new, found, learnt)
    _, kept = Journal.open(tmp_path / "edits.jsonl", header_of(tmp_path / "labels.csv"))
    state = replayed(initial(learnt, 2), kept).state
    assert (state.labels.tolist(), state.called(0)) == (found.labels.tolist(), "two")
