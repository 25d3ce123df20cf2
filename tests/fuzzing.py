"""A law held against thousands of spoilt files, the same ones on every machine."""

import resource
from collections import Counter

from hypothesis import HealthCheck, given, settings

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
    "jsonl": 150,
    "txt": 50,
    "npy": 200,
    "npz": 200,
    "images": 400,
}
MOST_MEMORY = 2**20  # kilobytes that any of the tests may need beyond what was needed before


def fuzz(name, strategy, law):
    """Hold a law against as many spoilt files as are promised, the same ones on every machine."""
    seen = Counter()

    @settings(
        max_examples=EXAMPLES[name],
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def check(case):
        seen["cases"] += 1
        said = "nothing was wrong"
        try:
            law(case)
        except InputError as error:
            said = str(error)
            seen["refused"] += 1
        assert said.isprintable()
        assert 10 < len(said) < 2500

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    check()
    assert seen["cases"] >= EXAMPLES[name]
    forgiving = ("metrics", "checkpoint")  # lines that are none are left out; an earlier checkpoint is taken
    assert seen["refused"] > EXAMPLES[name] // 10 or name in forgiving
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MOST_MEMORY
