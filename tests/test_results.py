"""Every figure in the documents can be traced to a cell in results/."""

import json
import re
from pathlib import Path

import pytest

from lsdc.experiments.paper import VARIANTS
from lsdc.experiments.reproduce import COLUMNS, parts, rows_of, title_of
from lsdc.experiments.results import parsed
from lsdc.experiments.table import markdown

ROOT = Path(__file__).parent.parent
CELLS = sorted((ROOT / "results" / "cells").glob("*.json"))
WRITTEN = sorted((ROOT / "results").glob("*-cpu.md"))


@pytest.fixture(scope="module")
def stored():
    return [parsed(file) for file in CELLS]


def test_results_are_there():
    assert {file.stem for file in WRITTEN} >= {"table1-cpu", "reuters-cpu", "ablation-cpu", "ablation-extra-cpu"}


@pytest.mark.parametrize("file", CELLS, ids=lambda file: file.stem)
def test_a_cell_is_complete_and_was_measured_on_committed_code(file):
    cell, named = parsed(file), parts(file.stem)
    assert all(cell[key] == named[key] for key in ("dataset", "variant", "scale", "seed"))
    assert sum(cell["sizes"]) == cell["n"] == sum(map(sum, cell["confusion"]))
    right = sum(row[i] for i, row in enumerate(cell["confusion"]) if i < len(row))
    assert right / cell["n"] == pytest.approx(cell["scores"]["acc"])
    assert re.fullmatch("[0-9a-f]{40}", cell["environment"]["commit"])


@pytest.mark.parametrize("file", WRITTEN, ids=lambda file: file.stem)
def test_a_table_is_that_of_its_cells_and_stands_in_the_page_of_tables(file, stored):
    name = file.stem.removesuffix("-cpu")
    text = file.read_text()
    assert text == markdown(title_of(name, "cpu"), COLUMNS, rows_of(name, "cpu", stored))
    page = (ROOT / "docs" / "results-tables.md").read_text()
    assert all(line in page for line in text.splitlines() if line.startswith("| "))


@pytest.mark.parametrize("page", ["README.md", "docs/results.md", "docs/results-tables.md", "docs/results-notes.md"])
def test_the_measured_figures_of_a_page_are_those_of_the_tables(page):
    rows = [row for file in WRITTEN for row in json.loads(file.with_suffix(".json").read_text())["rows"]]
    measured = {row["measured"] for row in rows}
    figures = re.findall(r"\d+\.\d(?: ± \d+\.\d)? \(\d+\)", (ROOT / page).read_text())
    assert figures
    assert set(figures) <= measured


def test_the_comparison_has_the_figures_of_its_columns():
    """A row of it is a method, a column a data set: each figure stands in the table of just these two."""
    rows = [row for file in WRITTEN for row in json.loads(file.with_suffix(".json").read_text())["rows"]]
    names = {variant: v.title.replace("the pretext", "LSD-C's pretext") for variant, v in VARIANTS.items()}
    found = {(names[row["variant"]], row["title"].split(",")[0]): [] for row in rows}
    for row in rows:
        found[names[row["variant"]], row["title"].split(",")[0]].append(row["measured"])
    page = (ROOT / "docs" / "results.md").read_text()
    head, _, *lines = page[page.index("| method | MNIST |") :].split("\n\n")[0].splitlines()
    columns = [cell.strip() for cell in head.strip("|").split("|")]
    for line in lines:
        cells = dict(zip(columns, (cell.strip() for cell in line.strip("|").split("|")), strict=True))
        for data in ("MNIST", "RCV1-10K (rebuilt)", "digits", "CIFAR-10, a part"):
            figure = cells[data].removesuffix(" *")
            assert figure == "-" or figure in found[cells["method"], data.split(",")[0]]
    assert len(lines) == 13
