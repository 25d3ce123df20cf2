"""A law held against thousands of damaged files, the same ones on every machine; benchmarks/fuzz.py tries others."""

import json
import os
import resource
from collections import Counter
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings

from lsdc import InputError

EXAMPLES = {
    "model bytes": 450,
    "model header": 450,
    "tensor header": 200,
    "config": 250,
    "config bytes": 100,
    "labels": 150,
    "metrics": 100,
    "checkpoint": 60,
    "csv": 250,
    "amounts": 150,
    "jsonl": 150,
    "txt": 50,
    "truth": 100,
    "npy": 200,
    "npz": 200,
    "parquet": 150,
    "images": 400,
}
MOST_MEMORY = 2**20  # kilobytes that any of the tests may need beyond what was needed before
BROKEN = Path(__file__).parent / "broken"  # files that broke a reader once: NAME-SEED, the smallest of its kind
SLOW = ("config", "config bytes", "labels", "metrics", "checkpoint")  # each takes a whole command
TIMES = int(os.environ.get("LSDC_FUZZ_TIMES", "1"))  # as many as usual, of those that are not slow
SEED = os.environ.get("LSDC_FUZZ_SEED")  # of other files than the usual ones
TALLY = os.environ.get("LSDC_FUZZ_TALLY")  # a file to count them in


def fuzz(name, strategy, law, known=lambda content: [content]):
    """Hold a law against as many damaged files as are promised, the same ones on every machine, and all that broke.

    ``known`` makes cases of the content of a file that broke a reader once.
    """
    seen, wanted = Counter(), EXAMPLES[name] * (1 if name in SLOW else TIMES)

    def hold(case):
        seen["cases"] += 1
        said = "nothing was wrong"
        try:
            law(case)
        except InputError as error:
            said = str(error)
            seen["refused"] += 1
        assert said.isprintable()
        assert 10 < len(said) < 2500

    def kept(case):
        """What breaks a reader stays in its place, also where it ends the process."""
        file = BROKEN / f"{name}-{SEED}" if SEED else None
        if file:
            file.write_bytes(case if isinstance(case, bytes) else case[0])
        hold(case)
        if file:
            file.unlink()

    how = {"max_examples": wanted, "derandomize": not SEED, "database": None, "deadline": None}
    if SEED:  # to make a failing model smaller can take all memory
        how["phases"] = [Phase.generate]
    check = settings(**how, suppress_health_check=list(HealthCheck))(given(strategy)(kept))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for file in sorted(BROKEN.glob(f"{name}-*")):
        for case in known(file.read_bytes()):
            hold(case)
    (seed(int(SEED))(check) if SEED else check)()
    if TALLY:
        with Path(TALLY).open("a") as file:
            file.write(json.dumps({"seed": SEED, "name": name, **seen}) + "\n")
    assert seen["cases"] >= wanted
    forgiving = ("metrics", "checkpoint")  # lines that are none are left out; an earlier checkpoint is taken
    assert seen["refused"] > wanted // 10 or name in forgiving
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MOST_MEMORY
