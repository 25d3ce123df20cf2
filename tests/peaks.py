"""How much memory a program takes at its peak, in a process of its own."""

import subprocess
import sys

PEAK = """
import resource, sys
def peak():
    try:  # getrusage of a child begins at its parent's peak, VmHWM does not
        with open("/proc/self/status") as lines:
            return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
"""


def printed(program):
    """What a program prints as numbers; it may call ``peak``, the most bytes it has held so far."""
    done = subprocess.run([sys.executable, "-c", PEAK + program], capture_output=True, text=True, check=True)
    return [int(word) for word in done.stdout.split()]
