"""``lsdc explore`` as people start it: a real process, killed, started again, and closed."""

import shutil
import signal
import socket
import subprocess
import sys

import httpx
import pytest

from exploring import fitted, photos
from lsdc.cli.main import main

PATIENCE = 600  # seconds: a busy machine is slow, and only a hang is a failure


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("process")
    return fitted(photos(folder / "photos"), folder / "run")


def started(run):
    words = [sys.executable, "-m", "lsdc", "explore", str(run), "--no-browser"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    address, _, token = process.stdout.readline().split()[-1].partition("?token=")
    return process, httpx.Client(base_url=address, headers={"Authorization": f"Bearer {token}"}, timeout=PATIENCE)


def refusal(capsys, *words):
    with pytest.raises(SystemExit) as end:
        main(["explore", *map(str, words), "--no-browser"])
    assert end.value.code == 2
    return capsys.readouterr().err


def test_every_change_outlives_kill_9_and_ctrl_c_is_the_way_to_end(run, capsys):
    process, client = started(run)
    assert "in use by another explorer or a fit; close that first" in refusal(capsys, run)
    for version, name in enumerate(("one", "two", "three")):
        wish = {"version": version, "edit": {"do": "name", "cluster": version, "name": name}}
        assert client.post("/api/edits", json=wish).status_code == 200
    process.kill()
    process.communicate()
    client.close()
    with (run / "edits.jsonl").open("a") as file:
        file.write('{"version":4,"edit":{"do":"mer')  # as a crash in the middle of a line leaves it
    process, client = started(run)
    state = client.get("/api/state").json()
    assert ([one["name"] for one in state["clusters"]], state["version"]) == (["one", "two", "three"], 3)
    wish = {"version": 3, "edit": {"do": "undo"}}
    assert client.post("/api/edits", json=wish).json()["clusters"][2]["name"] == ""
    client.close()
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    assert f"closed; all 4 changes are in {run / 'edits.jsonl'}" in said.replace("\n", " ")


def test_what_cannot_be_opened_is_said_in_one_line(run, tmp_path, capsys):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        assert f"127.0.0.1:{port} (address already in use)" in refusal(capsys, run, "--port", port)
    assert "not a run folder" in refusal(capsys, tmp_path)
    unfinished = shutil.copytree(run, tmp_path / "unfinished")
    (unfinished / "labels.csv").unlink()
    assert "the run has not finished" in refusal(capsys, unfinished)


def test_the_extra_is_named_where_it_is_missing(run, capsys, monkeypatch):
    for name in [name for name in sys.modules if name.startswith(("fastapi", "lsdc.explore"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "fastapi", None)
    assert "pip install 'lsd-clusters[app]'" in refusal(capsys, run)
