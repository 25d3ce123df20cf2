"""How long the command line takes to answer, as a multiple of the time Python itself takes to start.

Processor seconds: reading files and Python itself are one thread, and what runs beside it is left out.
"""

import resource
import subprocess
import sys
from statistics import median

COMMANDS = [["--version"], ["--help"], ["fit", "--help"], ["list", "methods"]]
RUNS = 7


def spent() -> float:
    """Processor seconds of the children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def seconds(words: list[str]) -> float:
    """The median of a few runs, after one that fills the caches."""
    times = []
    for _ in range(RUNS + 1):
        before = spent()
        subprocess.run([sys.executable, *words], stdout=subprocess.DEVNULL, check=True)
        times.append(spent() - before)
    return median(times[1:])


def main() -> None:
    python = seconds(["-c", "pass"])
    print(f"{'python -c pass':<20} {python:6.3f} s")
    for words in COMMANDS:
        taken = seconds(["-m", "lsdc", *words])
        print(f"{'lsdc ' + ' '.join(words):<20} {taken:6.3f} s  {taken / python:6.1f} times")


if __name__ == "__main__":
    main()
