"""Several processes are one: the same loss, gradients and updates as a single process with the same global batch."""

import numpy as np
import pytest
import torch

import processes
from lsdc import parallel
from lsdc.data.augment import noise
from lsdc.data.sampler import RowsOf


@pytest.fixture(scope="module")
def alone():
    return processes.train_all()


@pytest.fixture(scope="module", params=[2, 3])
def group(request, tmp_path_factory):
    """What each of two and of three processes came to; what rounding does is the same in three as in two."""
    job = processes.in_both_precisions if request.param == 2 else processes.in_double_precision
    return processes.together(job, request.param, tmp_path_factory.mktemp("group"))


def test_every_stage_equals_that_of_one_process(alone, group):
    """Losses, gradients and updates to 1e-5 in single precision; these and the memory to 1e-7 in double, with Adam."""
    for results, _ in group:
        assert {case for case in alone if case.endswith("double") or len(group) == 2} == results.keys()
        for case, (record, tensors) in results.items():
            expected_record, expected = alone[case]
            precise = case.endswith("double")
            most = 1e-7 if precise else 1e-5
            for name in expected_record.keys() & {"loss", "pair", "consistency", "density", "accuracy"}:
                assert record[name] == pytest.approx(expected_record[name], rel=most, abs=most), (case, name)
            assert tensors.keys() == expected.keys()
            for name in [n for n in expected if precise or not n.startswith("memory.")]:
                tensor = expected[name]
                scale = max(1.0, np.abs(tensor).max(initial=0))
                assert np.abs(tensors[name] - tensor).max(initial=0) <= most * scale, (case, name)


def test_an_estimator_just_works_in_a_group(group):
    """Also where nobody gave a seed, and where a block of samples is smaller than the group."""
    seed, labels, p, f = group[0][1]
    assert (labels.shape, p.shape, f.shape[0]) == ((2100,), (2049, 3), 7)
    assert np.array_equal(labels[:2049], p.argmax(1))
    for _, other in group[1:]:
        assert other[0] == seed
        assert all(np.array_equal(a, b) for a, b in zip(other[1:], (labels, p, f), strict=True))


def test_a_single_process_is_left_alone():
    x = torch.rand(5, 2, requires_grad=True)
    assert parallel.gather(x, 5) is x
    assert parallel.own(x, 5).shape == x.shape
    assert parallel.bounds(5) == [0, 5]
    assert parallel.broadcast(b"a") == b"a"
    assert parallel.broadcast_all([b"a", b""]) == [b"a", b""]
    assert (parallel.rank(), parallel.size(), parallel.any_of(False)) == (0, 1, False)


@pytest.mark.parametrize("size", [1, 2, 3, 7])
@pytest.mark.parametrize("n", [0, 1, 7, 20, 41])
def test_parts_lose_and_repeat_nothing(monkeypatch, size, n):
    monkeypatch.setattr(parallel, "size", lambda: size)
    found = []
    for rank in range(size):
        monkeypatch.setattr(parallel, "rank", lambda rank=rank: rank)
        found.append(parallel.own(range(n), n))
    assert [i for part in found for i in part] == list(range(n))
    assert max(map(len, found)) - min(map(len, found)) <= 1


def test_rows_draw_what_one_process_draws_for_them():
    x = torch.zeros(11, 3)
    whole = noise(x, torch.Generator().manual_seed(4))
    parts = []
    for first, last in ((0, 4), (4, 8), (8, 11)):
        rng = RowsOf()
        rng.first, rng.last, rng.n = first, last, 11
        parts.append(noise(x[first:last], rng.manual_seed(4)))
    assert torch.equal(torch.cat(parts), whole)
