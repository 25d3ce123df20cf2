"""The engine: jobs in processes of their own, what they report, and how they end."""

import os
import signal
from multiprocessing import Pipe

import pytest

from lsdc.experiments.compare import job
from lsdc.experiments.engine import Place, _reporter, run_table
from lsdc.experiments.job import Source
from lsdc.training.context import Progress

STEPS = [
    Progress("pretext", 1, 2, 1, 2),
    Progress("pretext", 1, 2, 2, 2),
    Progress("pretext", 1, 2, 2, 2, {"loss": 1.0}),
    Progress("pretext", 2, 2, 1, 2),
    Progress("clustering", 1, 1, 1, 1),
    Progress("clustering", 1, 1, 1, 1, {"loss": 0.5}),
]


def test_a_job_reports_where_a_stage_begins_and_every_epoch():
    ours, theirs = Pipe(duplex=False)
    report = _reporter(theirs)
    for step in STEPS:
        report(step)
    theirs.close()
    assert [ours.recv() for _ in range(4)] == [STEPS[0], STEPS[2], STEPS[4], STEPS[5]]
    with pytest.raises(EOFError):
        ours.recv()


def test_a_job_whose_parent_is_gone_stops():
    ours, theirs = Pipe(duplex=False)
    ours.close()
    with pytest.raises(SystemExit):
        _reporter(theirs)(STEPS[0])


def test_a_job_that_is_killed_fails_alone(tmp_path):
    """It is killed at its first report, as the system does when memory runs out."""
    endless = job(Source("blobs"), "lsdc", 5, 0, {"epochs": 100_000})
    jobs, tables, seen = [endless, job(Source("blobs"), "kmeans", 5, 0)], [], []

    def watch(state):
        for running in state.running:
            if running.progress and running.job is endless and not seen:
                seen.append(running.progress)
                os.kill(running.process.pid, signal.SIGKILL)

    def write(results, state):
        tables.append(([result["method"] for result in results], state.notes))

    state = run_table(jobs, {}, Place(tmp_path, tmp_path, jobs=2), write, asked=["lsdc"], watch=watch)
    message = "its process ended with code -9 (-9: killed, perhaps out of memory)"
    assert state.failed == {"lsdc-seed0": message}
    assert (state.done, state.total, state.running) == (2, 2, [])
    assert seen[0].stage == "starts"
    assert len(tables) == 3  # before anything has run, and after each
    assert tables[0] == ([], [])
    assert tables[-1] == (["kmeans"], [f"Failed, not included in the means: lsdc-seed0 ({message})."])
    again = run_table(
        jobs[1:], {"kmeans-seed0": jobs[1].read(tmp_path)}, Place(tmp_path, tmp_path), write, asked=["kmeans"]
    )
    assert (again.done, again.total) == (1, 1)  # nothing was run
