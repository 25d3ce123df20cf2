"""The examples run, as they stand, and find what they say."""

import importlib.util
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


def example(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_photos(capsys):
    example("photos").main()
    counts = [int(word) for word in capsys.readouterr().out.split() if word.isdigit()]
    assert sum(counts) == 2 * 3 * 5
    assert len(counts) == 4


@pytest.mark.parametrize("encoder", [None, "wordllama"])
def test_texts(tmp_path, capsys, encoder):
    if encoder:
        pytest.importorskip(encoder)
    (tmp_path / "x.txt").write_text("\n".join(["the cat sleeps", "the bank lends", "rain falls", "trains run"] * 3))
    example("texts").main(str(tmp_path / "x.txt"), encoder)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "12 texts"
    assert sum(int(line.split()[0]) for line in lines[1:]) == 12
    assert any("cat" in line for line in lines)


def test_texts_that_people_wrote(tmp_path, capsys):
    """What scikit-learn says of its functions, and Debian of its packages where there are any."""
    example("texts").main()
    found = capsys.readouterr().out
    assert int(found.split()[0]) > 100
    assert "cluster" in found
    status = Path("/var/lib/dpkg/status")
    lines = status.read_text(encoding="utf-8").splitlines() if status.is_file() else []
    if about := [line.removeprefix("Description: ") for line in lines if line.startswith("Description: ")]:
        (tmp_path / "packages.txt").write_text("\n".join(about))
        example("texts").main(str(tmp_path / "packages.txt"))
        assert f"{len(about)} texts" in capsys.readouterr().out


def test_table(tmp_path, capsys):
    table = example("table")
    result = table.main()
    assert result.index[0] == "wine 1"
    assert len(result) == 178
    assert result.cluster.nunique() == 3
    assert result.confidence.between(0, 1).all()
    table.wines().to_csv(tmp_path / "wines.csv")
    assert (table.main(str(tmp_path / "wines.csv")).cluster.to_numpy() == result.cluster.to_numpy()).all()
    assert capsys.readouterr().out.count("suggested: 3 clusters") == 2
