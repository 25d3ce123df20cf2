"""All cases of ``golden/paper_vectors.json``, computed elsewhere by plain loops over the paper's formulas."""

import json
from pathlib import Path

import pytest
import torch

import lsdc.functional as functional
from lsdc.metrics import clustering_accuracy

CASES = json.loads((Path(__file__).parent / "golden" / "paper_vectors.json").read_text())


def computed(case):
    name = case["what"]
    if name == "clustering_accuracy":
        return clustering_accuracy(case["y"], case["labels"])
    if name == "rampup":
        return functional.rampup(case["t"], case["length"], case["weight"])
    function = getattr(functional, name)
    inputs = ("f",) if name in functional.SIMILARITIES else ("A", "sigma", "w", "p", "p_composed", "p_augmented")
    if name == "pair_loss":
        inputs = ("p", "p_composed", "Y")
    return function(*(torch.tensor(case[key]) for key in inputs if key in case), **case.get("args", {}))


def expected(case):
    return case["value"] if "value" in case else case["A" if case["what"] in functional.SIMILARITIES else "Y"]


def test_all_cases_are_here():
    assert len(CASES) == 38


@pytest.mark.parametrize("case", CASES, ids=[f"{i}-{case['what']}" for i, case in enumerate(CASES)])
def test_golden(case):
    result, wanted = torch.as_tensor(computed(case)).double(), torch.tensor(expected(case)).double()
    torch.testing.assert_close(result, wanted, rtol=0, atol=1e-5)
