"""Every figure in the documents can be traced to a cell in results/."""

import json
import re
from pathlib import Path

import pytest

from lsdc.experiments import tables
from lsdc.experiments.cells import Cell, parse

ROOT = Path(__file__).parent.parent
CELLS = sorted((ROOT / "results" / "cells").glob("*.json"))
WRITTEN = sorted((ROOT / "results").glob("*-cpu.md"))


def stored(name, scale="cpu"):
    cells = [parse(file) for file in CELLS]
    wanted = tables.TABLES[name].variants
    mine = [cell for cell in cells if cell["variant"] in wanted and cell["scale"] == scale]
    return [cell for cell in mine if tables.belongs(name, cell["dataset"])]


def test_results_are_there():
    assert {file.stem for file in WRITTEN} >= {"table1-cpu", "reuters-cpu", "ablation-cpu", "ablation-extra-cpu"}


@pytest.mark.parametrize("file", CELLS, ids=lambda file: file.stem)
def test_a_cell_is_complete_and_was_measured_on_committed_code(file):
    cell = parse(file)
    named = Cell.named(file.stem)
    assert (named.dataset, named.variant, named.scale, named.seed) == tuple(
        cell[key] for key in ("dataset", "variant", "scale", "seed")
    )
    assert sum(cell["sizes"]) == cell["n"] == sum(map(sum, cell["confusion"]))
    right = sum(row[i] for i, row in enumerate(cell["confusion"]) if i < len(row))
    assert right / cell["n"] == pytest.approx(cell["scores"]["acc"])
    assert re.fullmatch("[0-9a-f]{40}", cell["environment"]["commit"])


@pytest.mark.parametrize("file", WRITTEN, ids=lambda file: file.stem)
def test_a_table_is_that_of_its_cells_and_stands_in_the_results_page(file):
    name = file.stem.removesuffix("-cpu")
    text = file.read_text()
    assert text == tables.markdown(name, "cpu", tables.summarise(name, stored(name)))
    page = (ROOT / "docs" / "results.md").read_text()
    assert all(line in page for line in text.splitlines() if line.startswith("| "))


def test_the_measured_figures_of_the_readme_are_those_of_the_tables():
    rows = [row for file in WRITTEN for row in json.loads(file.with_suffix(".json").read_text())["rows"]]
    measured = {row["measured"] for row in rows}
    figures = re.findall(r"\d+\.\d ± \d+\.\d \(\d+\)", (ROOT / "README.md").read_text())
    assert figures
    assert set(figures) <= measured
