"""The journal of edits: whatever happens between them, what is there again is what was accepted, and nothing else."""

import errno
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsdc.errors import InputError
from lsdc.explore.edits import EDIT, OUTLIER, applied, initial, replayed
from lsdc.explore.journal import Journal, header_of

N, K = 12, 4
LABELS = np.arange(N) % K
BASE = initial(LABELS, K)
MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None  # hundreds of fsyncs, which a disk takes seconds for
HEADER = {"lsdc": "edits", "format": 1, "labels": "0" * 16}

clusters = st.integers(0, K + 3)
samples = st.lists(st.integers(0, N), min_size=1, max_size=5)
edits = st.one_of(
    st.builds(lambda c, n: {"do": "name", "cluster": c, "name": n}, clusters, st.text(max_size=8)),
    st.builds(lambda c, i: {"do": "merge", "cluster": c, "into": i}, clusters, clusters),
    st.builds(lambda c, s: {"do": "split", "cluster": c, "samples": s}, clusters, samples),
    st.builds(lambda s, t: {"do": "move", "samples": s, "to": t}, samples, clusters | st.none()),
    st.builds(lambda s: {"do": "outlier", "samples": s}, samples),
    st.just({"do": "undo"}),
    st.just({"do": "redo"}),
)
happenings = st.lists(edits | st.sampled_from(["crash", "torn"]), max_size=30)


def edit(**content):
    return EDIT.validate_python(content)


def content(state):
    return state.labels.tolist(), state.clusters, dict(state.names), state.free


@given(happenings, st.integers(1, 60))
def test_any_interleaving_of_edits_undo_redo_and_crashes_is_a_replay(things, cut):
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        path = Path(folder) / "edits.jsonl"
        journal, before = Journal.open(path, HEADER)
        history = replayed(BASE, before)
        accepted, snapshots, redo = [], [BASE], []  # what undo and redo mean, told by states alone
        for thing in things:
            if isinstance(thing, str):
                if thing == "torn" and path.exists():
                    with path.open("ab") as file:
                        file.write(b'{"version":99,"edit":{"do":"outlier","samples":[1,2,3]}}'[:cut])
                journal, before = Journal.open(path, HEADER)
                history = replayed(BASE, before)
            else:
                one = EDIT.validate_python(thing)
                try:
                    after = history.then(one)
                except InputError:
                    continue
                journal.append(one)
                history = after
                accepted.append(one)
                if one.do == "undo":
                    redo.append(snapshots.pop())
                elif one.do == "redo":
                    snapshots.append(redo.pop())
                else:
                    snapshots.append(applied(snapshots[-1], one))
                    redo = []
            assert content(history.state) == content(snapshots[-1])
            assert (len(history.done), len(history.undone)) == (len(snapshots) - 1, len(redo))
        journal, read = Journal.open(path, HEADER)
        assert read == accepted
        assert journal.version == len(accepted)


@given(st.lists(edits, max_size=12))
def test_corrections_leave_the_state_before_as_it_was_and_every_sample_in_a_cluster_that_is_there(things):
    history = replayed(BASE, [])
    for thing in things:
        before = content(history.state)
        try:
            after = history.then(EDIT.validate_python(thing))
        except InputError:
            continue
        assert content(history.state) == before
        history = after
        assert set(history.state.labels.tolist()) <= {*history.state.clusters, OUTLIER}
        assert set(history.state.names) <= set(history.state.clusters)
    assert (BASE.labels == LABELS).all()


def test_what_each_correction_does():
    state = applied(BASE, edit(do="name", cluster=1, name=" big\n\x00 ones "))
    assert state.called(1) == "big ones"
    state = applied(state, edit(do="merge", cluster=1, into=2))
    assert state.labels.tolist() == [0, 2, 2, 3] * 3
    assert state.clusters == (0, 2, 3)
    assert state.called(2) == "big ones"  # nobody had named the other
    state = applied(state, edit(do="split", cluster=2, samples=[1, 5]))
    assert state.labels.tolist() == [0, 4, 2, 3, 0, 4, 2, 3, 0, 2, 2, 3]
    state = applied(state, edit(do="move", samples=[0, 0, 3], to=None))
    assert state.labels[[0, 3]].tolist() == [5, 5]
    state = applied(state, edit(do="outlier", samples=[11]))
    assert state.labels[11] == OUTLIER
    assert applied(state, edit(do="move", samples=[11], to=3)).labels[11] == 3
    assert applied(state, edit(do="name", cluster=2, name="")).called(2) == "cluster 2"


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"do": "name", "cluster": 9, "name": "x"}, "no cluster 9"),
        ({"do": "merge", "cluster": 1, "into": 1}, "with itself"),
        ({"do": "split", "cluster": 0, "samples": [0, 4, 8]}, "that would leave"),
        ({"do": "split", "cluster": 0, "samples": [1]}, "not all of these samples"),
        ({"do": "move", "samples": [12], "to": 0}, "no sample 12"),
    ],
)
def test_corrections_that_make_no_sense_are_refused(wrong, why):
    with pytest.raises(InputError, match=why):
        applied(BASE, EDIT.validate_python(wrong))


def test_looking_writes_nothing_and_the_first_edit_says_which_labels(tmp_path):
    labels = tmp_path / "labels.csv"
    labels.write_text("id,cluster,confidence\n")
    path = tmp_path / "edits.jsonl"
    journal, _ = Journal.open(path, header_of(labels))
    assert not path.exists()
    journal.append(edit(do="undo"))
    Journal.open(path, header_of(labels))
    labels.write_text("id,cluster,confidence\na,0,1\n")
    with pytest.raises(InputError, match=r"other labels.*move it away"):
        Journal.open(path, header_of(labels))


def test_reading_leaves_alone_what_another_process_is_writing(tmp_path):
    """``lsdc refine`` reads while the explorer has written half of a line."""
    path = tmp_path / "edits.jsonl"
    journal, _ = Journal.open(path, HEADER)
    journal.append(edit(do="outlier", samples=[1]))
    with path.open("ab") as explorer:
        explorer.write(b'{"version":2,"edit":{"do":"out')
        explorer.flush()
        assert len(Journal.open(path, HEADER)[1]) == 1
        explorer.write(b'lier","samples":[2]}}\n')
    assert len(Journal.open(path, HEADER)[1]) == 2


def test_damage_before_the_last_line_is_refused_and_named(tmp_path):
    path = tmp_path / "edits.jsonl"
    journal, _ = Journal.open(path, HEADER)
    for _ in range(3):
        journal.append(edit(do="outlier", samples=[1]))
    lines = path.read_text().splitlines(keepends=True)
    for damaged in ([*lines[:1], *lines[2:]], [lines[0], "{}\n", *lines[2:]], [lines[0], "\x00\n", *lines[2:]]):
        path.write_text("".join(damaged))
        with pytest.raises(InputError, match=r"edits.jsonl: line 2 is damaged"):
            Journal.open(path, HEADER)
    path.write_text('{"other": 1}\n' + lines[1])
    with pytest.raises(InputError, match="cannot read this journal"):
        Journal.open(path, HEADER)


@pytest.mark.parametrize(
    ("last", "why"),
    [
        ('{"version":4,"edit":{"do":"outlier","samples":[2]}}', "version 2 is missing"),
        ('{"version":1,"edit":{"do":"outlier","samples":[2]}}', "version 2 is missing"),
        ('{"version":2,"edit":{"do":"paint"}}', "does not match any"),
        ('{"version":2,"edit":{"do":"outlier","samples":[-1]}}', "greater than or equal to 0"),
        ('{"version":2,"edit":{"do":"outlier","samples":[2}}', "Expecting"),
        ("", "Expecting value"),
    ],
)
def test_a_last_line_that_was_altered_is_refused_not_dropped(tmp_path, last, why):
    """Dropped, it would be overwritten by the next edit."""
    path = tmp_path / "edits.jsonl"
    journal, _ = Journal.open(path, HEADER)
    journal.append(edit(do="outlier", samples=[1]))
    with path.open("a") as file:
        file.write(last + "\n")
    with pytest.raises(InputError, match=rf"edits.jsonl: line 3 is damaged \(.*{why}"):
        Journal.open(path, HEADER)


def test_a_last_line_of_zeros_was_never_written(tmp_path):
    """What a power cut leaves of a line whose length was on disk before its content."""
    path = tmp_path / "edits.jsonl"
    journal, _ = Journal.open(path, HEADER)
    journal.append(edit(do="outlier", samples=[1]))
    before = path.read_bytes()
    for torn in (bytes(50), bytes(50) + b"}}\n"):
        path.write_bytes(before + torn)
        again, read = Journal.open(path, HEADER)
        assert len(read) == 1
        again.append(edit(do="outlier", samples=[2]))
        assert len(Journal.open(path, HEADER)[1]) == 2


def test_a_file_system_that_cannot_sync_takes_edits(tmp_path, monkeypatch):
    def fsync(*words):
        raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr(os, "fsync", fsync)
    journal, _ = Journal.open(tmp_path / "edits.jsonl", HEADER)
    journal.append(edit(do="outlier", samples=[1]))
    assert len(Journal.open(tmp_path / "edits.jsonl", HEADER)[1]) == 1


def test_a_full_disk_leaves_no_half_line(tmp_path, monkeypatch):
    path = tmp_path / "edits.jsonl"
    journal, _ = Journal.open(path, HEADER)
    journal.append(edit(do="outlier", samples=[1]))
    before = path.read_bytes()
    real = os.write

    def full(handle, content):
        if len(content) < 9:
            raise OSError(28, "No space left on device")
        return real(handle, content[:9])

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space"):
        journal.append(edit(do="outlier", samples=[2]))
    monkeypatch.undo()
    assert path.read_bytes() == before
    journal.append(edit(do="outlier", samples=[3]))
    assert [one.samples for one in Journal.open(path, HEADER)[1]] == [[1], [3]]


def test_what_was_accepted_outlives_kill_9(tmp_path):
    """A real process writes and says so; it is killed in the middle, and all it has said is there."""
    program = (
        "import sys; from pathlib import Path; from lsdc.explore.edits import EDIT\n"
        "from lsdc.explore.journal import Journal\n"
        f"journal, _ = Journal.open(Path(sys.argv[1]), {HEADER!r})\n"
        "for i in range(10**6):\n"
        "    journal.append(EDIT.validate_python({'do': 'outlier', 'samples': [i]})); print(i, flush=True)\n"
    )
    path = tmp_path / "edits.jsonl"
    with subprocess.Popen([sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE, text=True) as process:
        for _ in range(50):
            last = int(process.stdout.readline())
        process.send_signal(signal.SIGKILL)
        rest = [int(line) for line in process.stdout.read().split("\n") if line.isdigit()]
    said = max([last, *rest])
    found = [one.samples[0] for one in Journal.open(path, HEADER)[1]]
    assert found == list(range(len(found)))
    assert len(found) in (said + 1, said + 2)  # the last one may have been written and not yet said
