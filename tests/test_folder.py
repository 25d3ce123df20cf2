"""Whose a run folder is: the lock, what is looked at under it, and what is left in other people's places."""

import errno
import fcntl
import itertools
import os
import signal
import stat
import threading

import numpy as np
import pytest

from attacks import VECTORS
from lsdc import KMeans
from lsdc.errors import Busy, HealthWarning, InputError
from lsdc.runs import atomic
from lsdc.runs.atomic import write_atomic
from lsdc.runs.checkpoint import Checkpoint
from lsdc.runs.folder import Run
from test_cli import inside, refused
from victims import exit_code_of


def fitted(run, k=3, **options):
    return KMeans(k, random_state=0).fit(VECTORS, run=run, **options)


@pytest.mark.parametrize("target", ["elsewhere", "run/precious"])
def test_a_lock_that_is_a_link_is_not_followed(tmp_path, target):
    (tmp_path / "run").mkdir()
    (tmp_path / target).write_text("precious")
    if target.startswith("run"):  # a finished run, and a link within it
        (tmp_path / target).unlink()
        fitted(tmp_path / "run")
        (tmp_path / target).write_text("precious")
        (tmp_path / "run" / ".lock").unlink()
    (tmp_path / "run" / ".lock").symlink_to(tmp_path / target)
    np.save(tmp_path / "x.npy", VECTORS)
    words = ("fit", "x.npy", "-k", 3, "--method", "kmeans", "--out", "run", "--overwrite")
    refused(inside(*words, cwd=tmp_path), "run/.lock", "not a plain file; remove it")
    assert (tmp_path / target).read_text() == "precious"


def test_a_lock_that_is_a_pipe_is_not_waited_for(tmp_path):
    (tmp_path / "run").mkdir()
    os.mkfifo(tmp_path / "run" / ".lock")
    with pytest.raises(InputError, match=r"run/\.lock: not a plain file; remove it"):
        fitted(tmp_path / "run")


def test_a_lock_that_was_waited_for_cannot_be_held_twice(tmp_path):
    """One process has the file open when another ends: were it removed then, a third would lock a new one."""
    run = Run(tmp_path / "run")
    with run.alone():
        waiting = os.open(tmp_path / "run" / ".lock", os.O_RDWR)
    fcntl.flock(waiting, fcntl.LOCK_EX | fcntl.LOCK_NB)
    with pytest.raises(Busy, match="another process is using"), run.alone():
        pass
    os.close(waiting)
    with run.alone():
        pass


def test_a_file_system_without_locks_is_said(tmp_path, monkeypatch):
    def flock(*words):
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", flock)
    with pytest.warns(HealthWarning, match=r"run: the file system has no locks \(Function not implemented\)"):
        fitted(tmp_path / "run")
    assert (tmp_path / "run" / "labels.csv").exists()
    np.save(tmp_path / "x.npy", VECTORS)
    done = inside("fit", "x.npy", "-k", 3, "--method", "kmeans", "--out", "other", cwd=tmp_path)
    assert done.returncode == 0
    assert done.stderr.count("no locks") == 1  # though it is asked for again, for the report
    assert "HealthWarning" not in done.stderr


def test_a_file_system_that_cannot_sync_is_written_to(tmp_path, monkeypatch):
    def fsync(*words):
        raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr(os, "fsync", fsync)
    write_atomic(tmp_path / "deep" / "file", b"content")
    assert (tmp_path / "deep" / "file").read_bytes() == b"content"


@pytest.mark.parametrize("kind", ["create", "resume"])
def test_a_run_that_was_finished_meanwhile_is_not_replaced(tmp_path, kind):
    """The folder was vacant when the command began, and is not when its data is read."""
    first = getattr(Run, kind)(tmp_path / "run")
    fitted(tmp_path / "run")
    before = left_by(tmp_path / "run")
    with pytest.raises(InputError, match="a run already exists here; resume it, overwrite it, or choose another"):
        fitted(first, k=4)
    assert left_by(tmp_path / "run") == before


def left_by(folder):
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def overwrite(folder, n):
    """Replace a run, and die at the n-th file that is removed or put in place."""
    run = Run.create(folder, overwrite=True)
    count = itertools.count(1)

    def dying(function):
        def wrapper(*words, **options):
            if next(count) == n:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*words, **options)

        return wrapper

    os.unlink, os.replace = dying(os.unlink), dying(os.replace)
    fitted(run, k=4)


@pytest.mark.parametrize("n", [1, 3, 5, 6])
def test_a_kill_while_a_run_is_cleared_leaves_a_run(tmp_path, n):
    """Files of other people in the folder, so that it is not simply empty."""

    np.save(tmp_path / "x.npy", VECTORS)
    fitted(tmp_path / "run")
    (tmp_path / "run" / "notes.txt").write_text("mine")
    assert exit_code_of(overwrite, tmp_path / "run", n) == -signal.SIGKILL
    refused(inside("fit", "x.npy", "-k", 3, "--out", "run", cwd=tmp_path), "a run already exists")
    fitted(None, resume=tmp_path / "run")
    fitted(Run.create(tmp_path / "run", overwrite=True), k=4)
    assert (tmp_path / "run" / "notes.txt").read_text() == "mine"


def test_temporary_files_of_others_are_left(tmp_path):
    (tmp_path / "run").mkdir()
    for name in (".config.json.abcdefgh.tmp", ".labels.csv.0123abcd.tmp"):
        (tmp_path / "run" / name).write_text("ours")
    fitted(tmp_path / "run")
    assert not list((tmp_path / "run").glob(".*.tmp"))
    (tmp_path / "run" / ".mine.tmp").write_text("theirs")
    fitted(Run.create(tmp_path / "run", overwrite=True))
    assert (tmp_path / "run" / ".mine.tmp").read_text() == "theirs"


def test_the_folder_of_a_new_folder_is_synced(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(atomic, "sync_folder", synced.append)
    write_atomic(tmp_path / "a" / "b" / "file", b"")
    assert synced == [tmp_path, tmp_path / "a", tmp_path / "a" / "b"]


def test_files_have_the_rights_that_the_user_wants_and_the_umask_is_not_touched(tmp_path, monkeypatch):
    before = os.umask(0o027)
    try:
        monkeypatch.setattr(os, "umask", None)  # threads would see what is set for a moment
        threads = [threading.Thread(target=write_atomic, args=(tmp_path / str(i), b"")) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        monkeypatch.undo()
        os.umask(before)
    assert {stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()} == {0o640}


def test_a_run_does_not_go_on_with_another_method(tmp_path):
    np.save(tmp_path / "x.npy", VECTORS)
    words = ("fit", "x.npy", "-k", 3, "--out", "run")
    assert inside(*words, "--method", "finch", cwd=tmp_path).returncode == 0
    before = left_by(tmp_path / "run")
    result = inside(*words, "--resume", "--method", "kmeans", cwd=tmp_path)
    refused(result, "run: started with --method finch, not kmeans; choose another --out")
    assert left_by(tmp_path / "run") == before
    for more in ((), ("--method", "finch")):
        assert inside(*words, "--resume", *more, cwd=tmp_path).returncode == 0


def test_nothing_is_added_to_a_run_that_another_process_has_replaced(tmp_path):
    """The lock is free between the fit and its report."""
    run = Run.create(tmp_path / "run")
    fitted(run)
    with run.again():
        pass
    fitted(Run.create(tmp_path / "run", overwrite=True), k=4)
    before = left_by(tmp_path / "run")
    with pytest.raises(InputError, match="another process has replaced this run"), run.again():
        pass
    assert left_by(tmp_path / "run") == before


def test_names_as_long_as_a_file_system_takes_them(tmp_path):
    for name in ("n" * 255, "ü" * 127, "🙂" * 63):
        write_atomic(tmp_path / name, b"content")
        assert (tmp_path / name).read_bytes() == b"content"


def test_a_run_goes_on_with_the_outliers_and_the_reading_it_was_started_with(tmp_path):
    rows = "".join(f"{a:.3f},{b:.3f},{c:.3f}\n" for a, b, c, *_ in VECTORS)
    (tmp_path / "x.csv").write_text("a,b,c\n" + rows)
    words = ("fit", "x.csv", "-k", 3, "--method", "kmeans", "--out", "run")
    more = ("--drop", "c", "--outliers", 0.2)
    assert inside(*words, *more, cwd=tmp_path).returncode == 0
    labels = (tmp_path / "run" / "labels.csv").read_text()
    assert labels.count(",-1,") == 8
    for again in ((), more, ("--columns", "a,b")):
        (tmp_path / "run" / "labels.csv").unlink()
        assert inside(*words, "--resume", *again, cwd=tmp_path).returncode == 0
        assert (tmp_path / "run" / "labels.csv").read_text() == labels
    for other in (("--drop", "a"), ("--columns", "a"), ("--scale",)):
        result = inside(*words, "--resume", *other, cwd=tmp_path)
        refused(result, "run: started with other settings or data")
    assert (tmp_path / "run" / "labels.csv").read_text() == labels


def test_records_that_a_full_disk_refused_stand_before_those_of_later_stages(tmp_path):
    run = Run.create(tmp_path / "run")
    run.start({"method": "any"}, {"n_clusters": 1}, {})
    (run.path / "checkpoint").write_text("in the way")
    first, second = ([{"stage": stage, "epoch": 1, "loss": 1.0}] for stage in ("pretext", "clustering"))
    with pytest.raises(OSError, match="checkpoint"):
        run.keep("pretext", Checkpoint({}, {}, first))
    (run.path / "checkpoint").unlink()
    run.keep("clustering", Checkpoint({}, {}, second))
    assert run.read_metrics() == first + second
