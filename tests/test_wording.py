"""Layers below the command line name parameters; Python shows them as its own, the command line as its options."""

import ast
import re
import socket
from dataclasses import fields
from inspect import signature
from pathlib import Path
from pickle import dumps, loads

import numpy as np
import pytest
import typer.main

import lsdc
from lsdc.cli.main import app
from lsdc.cli.wording import OPTIONS
from lsdc.data.reading import Reading
from lsdc.errors import Busy, InputError, Note
from lsdc.explore.serve import listening
from lsdc.methods.base import Estimator
from lsdc.runs.folder import Run
from test_cli import inside, refused

SOURCES = sorted(path for path in Path(lsdc.__file__).parent.rglob("*.py") if "cli" not in path.parts)
KNOWN = {
    name: {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    for name, command in typer.main.get_command(app).commands.items()
}
KMEANS = ["-k", 2, "--method", "kmeans", "--out", "run"]


def nodes(kind):
    return [
        (path.name, node)
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, kind)
    ]


def named_in_messages():
    """The parameters that errors and notes of the lower layers are given."""
    calls = [node for _, node in nodes(ast.Call) if getattr(node.func, "id", "") in ("InputError", "Note")]
    return {word.value for call in calls for word in call.args[1:] if isinstance(word, ast.Constant)}


def test_no_text_below_the_command_line_names_an_option():
    known = sorted(option for option in set.union(*KNOWN.values()) if option.startswith("--"))
    options = re.compile(rf"(?<![\w-])({'|'.join(known)})(?![\w-])")
    texts = [(name, node.value) for name, node in nodes(ast.Constant) if isinstance(node.value, str)]
    assert len(texts) > 1000
    assert [(name, text) for name, text in texts if options.search(text)] == []


def test_every_parameter_that_a_message_names_exists_in_python_and_has_an_option():
    in_python = {field.name for field in fields(Reading)}
    for function in (Estimator.fit, Run.create, listening):
        in_python |= signature(function).parameters.keys()
    assert {"drop", "array", "overwrite", "port"} <= named_in_messages() <= OPTIONS.keys()
    assert OPTIONS.keys() <= in_python
    for options in OPTIONS.values():
        assert set(options.split("/")) <= KNOWN["fit"] | KNOWN["explore"]


def test_python_reads_parameters():
    error = InputError("x.npz: no array is named 'X'; choose one", "array")
    assert str(error) == "x.npz: no array is named 'X'; choose one (array=...)"
    assert str(InputError("bad", "drop", "columns")) == "bad (drop=..., columns=...)"
    assert str(InputError("bad")) == "bad"
    within = Busy("in use", "run").within("there")
    assert (type(within), str(within)) == (Busy, "there: in use (run=...)")


def test_messages_survive_another_process():
    error, note = loads(dumps([InputError("bad", "drop"), Note("odd", "scale")]))
    assert (str(error), error.text, error.parameters) == ("bad (drop=...)", "bad", ("drop",))
    assert (note, note.parameters) == ("odd", ("scale",))


@pytest.fixture
def mistakes(tmp_path, monkeypatch):
    np.savez(tmp_path / "two.npz", a=np.zeros((4, 2)), b=np.zeros((4, 2)))
    (tmp_path / "x.csv").write_text("a,b\n1.5,2\n3,4\n")
    (tmp_path / "hole.csv").write_text("a,b\n1,2\n,4\n")
    (tmp_path / "words.csv").write_text("a,b\n" + "".join(f"{i}.5,word {i}\n" for i in range(30)))
    (tmp_path / "x.jsonl").write_text('{"a": 1, "b": "hello"}\n')
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("data", "words", "what", "parameters"),
    [
        ("two.npz", {}, "no array is named 'X'", ["array"]),
        ("two.npz", {"array": "c"}, "no array 'c'", ["array"]),
        ("x.csv", {"array": "c"}, "x.csv: not a .npz file", ["array"]),
        ("two.npz", {"id_column": "a", "drop": "b"}, "two.npz: not a table", ["drop", "id_column"]),
        ("x.csv", {"column": "a", "columns": "b"}, "not both", ["column", "columns"]),
        ("x.csv", {"columns": "b", "drop": "b"}, "'b' cannot be both", ["columns", "drop"]),
        ("x.csv", {"column": "a"}, "column 'a' holds numbers", ["columns"]),
        ("x.jsonl", {"column": "c"}, "it has a, b", ["column"]),
        ("hole.csv", {}, "line 3, column 'a': no value", ["drop"]),
        ("words.csv", {}, "column 'b': 'word 0' is not a number", ["drop", "id_column", "column"]),
        ("x.csv", {"encoder": "a", "text_encoder": "b"}, "not both", ["encoder", "text_encoder"]),
        ("x.csv", {"encoder": "a.onnx"}, "the encoder is for images", ["encoder"]),
    ],
)
def test_python_and_the_shell_read_what_each_can_use(mistakes, data, words, what, parameters):
    given = {name: (value,) if name in ("columns", "drop") else value for name, value in words.items()}
    with pytest.raises(InputError, match=re.escape(what)) as caught:
        lsdc.open_data(data, **given)
    assert str(caught.value).endswith(f" ({', '.join(f'{name}=...' for name in parameters)})")
    asked = [word for name, value in words.items() for word in (OPTIONS[name], value)]
    done = inside("fit", data, *KMEANS, *asked, cwd=mistakes)
    refused(done, what)
    assert done.stderr.endswith(f" ({', '.join(OPTIONS[name] for name in parameters)})\n")
    assert "=..." not in done.stderr


def test_run_folders(tmp_path):
    X = np.random.default_rng(0).normal(size=(40, 3))
    np.save(tmp_path / "x.npy", X)
    lsdc.KMeans(2, random_state=0).fit(X, run=tmp_path / "run")
    message = "a run already exists here; resume it, overwrite it, or choose another folder"
    with pytest.raises(InputError, match=message) as caught:
        lsdc.KMeans(2, random_state=0).fit(X, run=tmp_path / "run")
    assert str(caught.value).endswith("(resume=..., overwrite=..., run=...)")
    refused(inside("fit", "x.npy", *KMEANS, cwd=tmp_path), f"{message} (--resume, --overwrite, --out)")
    (tmp_path / "run" / "labels.csv").unlink()
    with pytest.raises(InputError, match=r"the run has not finished; resume it \(resume=...\)"):
        Run.open(tmp_path / "run").read_labels()
    refused(inside("evaluate", "run", cwd=tmp_path), "resume it (lsdc fit --resume)")  # evaluate has no such option


def test_ports(small_run, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(InputError, match=rf"cannot listen on 127.0.0.1:{port} .*\(port=...\)"):
            listening("127.0.0.1", port)
        done = inside("explore", small_run, "--no-browser", "--port", port, cwd=tmp_path)
        refused(done, f"cannot listen on 127.0.0.1:{port}", "(--port)")


def test_notes_name_the_options_that_the_command_has(tmp_path):
    counted, scaled = "used as the id, not as a feature", "columns are divided by their standard deviations"
    rows = [f"{7 * i},{i % 5}.5,{1000 * (i % 7)}.5" for i in range(40)]
    (tmp_path / "x.csv").write_text("\n".join(["user_id,b,c", *rows, ""]))
    notes = lsdc.open_data(str(tmp_path / "x.csv")).notes
    assert [note.parameters for note in notes] == [("columns", "id_column", "drop"), ("scale",)]
    assert notes[0].endswith(counted)
    assert notes[1].startswith(scaled)
    done = inside("fit", "x.csv", *KMEANS, cwd=tmp_path)
    assert f"{counted}; change this with --columns, --id-column or --drop\n" in done.stderr
    assert f"{notes[1]}; change this with --scale/--no-scale\n" in done.stderr
    stored = (tmp_path / "run" / "read.json").read_text()
    assert counted in stored
    assert "--" not in stored  # the report may be read by anybody
    (tmp_path / "new.csv").write_text("\n".join(["nr,b,c", *(f"{i},1.5,{i}.5" for i in range(9)), ""]))
    done = inside("predict", "run", "new.csv", cwd=tmp_path)
    assert f"column nr counts the rows: {counted}; change this with --columns or --id-column\n" in done.stderr
    assert "--drop" not in done.stderr
