"""Damaged files for every reader, a million of them: each must be read, or refused in one line.

``python benchmarks/fuzz.py [--inputs 1000000] [--minutes 30] [--out results/fuzz.json]`` runs the tests with damaged
files (tests/test_fuzz.py, tests/test_fuzz_data.py) again and again, each round with new files, and counts them in the
file ``--out``. Started again, it continues counting. A file that breaks a reader of data is kept in tests/broken,
where the tests find it from then on. The exit code is then 1. No process of a round may take more than 4 GB: a reader
that wants more fails its round, and the machine goes on.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from lsdc.runs.environment import environment

TESTS = Path(__file__).parent.parent / "tests"
TIMES = 20  # as many files in a round as in the tests, of those that are quick to try
MOST_MEMORY = 4 * 2**30  # bytes of data of any process; a round needs less than one
QUICK = Path("/dev/shm")  # a file system in memory: half the time goes into waiting for a disk


def limit_memory(most=MOST_MEMORY):
    """Limit this process and those it starts; a reader without bounds took 22 GB before the kernel ended it."""
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    resource.setrlimit(resource.RLIMIT_DATA, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def one_round(number):
    """Counts of one round by reader, and which tests failed."""
    with tempfile.TemporaryDirectory(dir=QUICK if QUICK.is_dir() else None) as place:
        tally = Path(place) / "tally"
        words = {"LSDC_FUZZ_TIMES": str(TIMES), "LSDC_FUZZ_SEED": str(number), "LSDC_FUZZ_TALLY": str(tally)}
        files = [TESTS / "test_fuzz_data.py", TESTS / "test_fuzz.py"]
        run = [sys.executable, "-m", "pytest", "-q", "--no-header", "-p", "no:cacheprovider", "-p", "no:xdist", *files]
        run.append(f"--basetemp={place}/files")
        done = subprocess.run(run, env={**os.environ, **words}, cwd=TESTS.parent, capture_output=True, text=True)
        lines = tally.read_text().splitlines() if tally.exists() else []
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    if done.returncode and not failed:
        failed = [f"round {number}: ended with {done.returncode}"]  # a crash, which no test outlives
    return [json.loads(line) for line in lines], failed


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=1_000_000)
    parser.add_argument("--minutes", type=float, default=1e9)
    parser.add_argument("--out", type=Path, default=Path("results/fuzz.json"))
    words = parser.parse_args()
    limit_memory()
    old = json.loads(words.out.read_text()) if words.out.exists() else {}
    cases, refused, failed = Counter(old.get("cases", {})), Counter(old.get("refused", {})), old.get("failed", [])
    number, seconds, started = old.get("rounds", 0), old.get("seconds", 0), time.time()
    while cases.total() < words.inputs and time.time() - started < 60 * words.minutes:
        number += 1
        found, wrong = one_round(number)
        for line in found:
            cases[line["name"]] += line["cases"]
            refused[line["name"]] += line.get("refused", 0)
        failed += wrong
        result = {
            "command": "python benchmarks/fuzz.py",
            "rounds": number,
            "inputs": cases.total(),
            "cases": dict(cases),
            "refused": dict(refused),
            "failed": failed,
            "seconds": round(seconds + time.time() - started),
            "environment": environment(),
        }
        words.out.write_text(json.dumps(result, indent=1) + "\n")
        print(f"{cases.total():,} inputs in {number} rounds, {len(failed)} failed {wrong or ''}", flush=True)
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
