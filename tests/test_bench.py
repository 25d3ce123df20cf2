"""What the benchmark computes from its clocks, and how it keeps its results."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = str(Path(__file__).parents[1] / "benchmarks")


@pytest.fixture(autouse=True)
def importable(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)


def test_exponents_are_slopes_of_logarithms():
    from measuring import exponent, growth

    assert exponent([10, 100, 1000], [2.0, 200.0, 20_000.0]) == pytest.approx(2)
    assert exponent([1, 4], [3.0, 3.0]) == pytest.approx(0)
    row = growth("a fit against n", (10, 100, 1000), (1.0, 10.0, None))
    assert row.ratio == pytest.approx(1)
    assert "1 took more than" in row.value


def test_the_first_moment_that_is_good_enough():
    from time_to_quality import reached, table

    points = [[1.0, 2.0, 0.5], [3.0, 5.0, 0.96], [4.0, 7.0, 0.94], [6.0, 9.0, 0.97]]
    assert reached(points, 0.95) == (3.0, 5.0)
    assert reached(points, 0.98) is None
    record = {"data": "digits", "method": "lsdc", "seed": 0, "ended": False, "points": points}
    assert "0.970, ended early | 6.0 | .95: 3.0 (5.0)" in table([record])


def test_a_clock_that_stands_still_counts_nothing(monkeypatch):
    import time_to_quality
    from time_to_quality import Clock

    now = [100.0]
    monkeypatch.setattr(time_to_quality.time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(time_to_quality.time, "process_time", lambda: now[0] / 2)
    clock = Clock()
    now[0] += 3
    assert clock.standing(lambda: now.__setitem__(0, now[0] + 50)) is None
    now[0] += 1
    assert clock.read() == pytest.approx((4, 2))


def test_parts_of_a_day_are_one_file(tmp_path):
    from bench import write

    row = {"part": "step", "what": "a", "value": "1 s", "against": "2 s", "ratio": 0.5}
    missing = {**row, "part": "peers", "what": "b", "ratio": None}
    content = {"date": "2026-01-01", "parts": {}}
    for name, rows in (("peers", [missing]), ("step", [row])):
        content["parts"][name] = {"machine": {"cores": 2}, "rows": rows}
        text = write(tmp_path / "bench.json", content)
    assert text.index("| step | a | 1 s | 2 s | 0.500 |") < text.index("| peers | b | 1 s | 2 s | - |")
    assert list(json.loads((tmp_path / "bench.json").read_text())["parts"]) == ["step", "peers"]


def test_every_part_of_the_benchmark_has_a_function():
    from types import SimpleNamespace

    from bench import PARTS, parts

    assert tuple(parts(SimpleNamespace(small=True, peers_python=sys.executable))) == PARTS


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not count all memory as data")
def test_a_reader_without_bounds_ends_its_round_and_not_the_machine():
    program = f"""
import subprocess, sys
sys.path.insert(0, {BENCHMARKS!r})
import fuzz
fuzz.limit_memory(2**30)
sys.exit(subprocess.run([sys.executable, "-c", "bytearray(2 * 2**30)"], stderr=sys.stderr).returncode)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 1
    assert "MemoryError" in done.stderr
