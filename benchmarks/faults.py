"""A fault at every system call of a fit, one after the other: what is left must be a run that goes on, and no other's.

``python benchmarks/faults.py [--every 1] [--out results/faults.json]``. faults.c, preloaded, counts the calls of a
small ``lsdc fit`` that touch the disk (or stdout and stderr). For each of them in turn a fit, forked from a process
that has imported everything, is killed before it or half-way through it, or the call fails (EIO; ENOSPC, once or from
there on). Then the fit is resumed. Two fits into one folder are interleaved the same way: one is stopped at each call
while the other runs. Exits with 1 if labels or weights differ, anything but one line is said, or files of others change.
"""

import argparse
import ctypes
import errno
import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

HERE = Path(__file__).parent
COUNT, KILL, TEAR, STOP, FAIL, FULL = range(6)
SETTINGS = ["epochs=2", "pretext_plan.epochs=1", "width=0.05", "batch_size=24", "neighbours=batch"]
FIT = ["--set", *" --set ".join(SETTINGS).split(), "--save-every", "0", "-k", "3"]
WAYS = {  # what happens at a call, and to which calls it can
    "killed before it": (KILL, 0, lambda call: True),
    "killed after half of it": (TEAR, 0, lambda call: call[0] in ("write", "open", "rename", "unlink", "mkdir")),
    "fails with EIO": (FAIL, errno.EIO, lambda call: True),
    "fails with ENOSPC": (FAIL, errno.ENOSPC, lambda call: call[1]),
    "disk full from there on": (FULL, errno.ENOSPC, lambda call: call[1]),
}


def preloaded():
    """Start again with faults.c preloaded."""
    library = Path(tempfile.mkdtemp()) / "faults.so"
    compiler = next(filter(shutil.which, ("cc", "gcc", "clang")), None)
    if not compiler or not sys.platform.startswith("linux"):
        sys.exit("faults.py needs Linux and a C compiler (cc)")
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, HERE / "faults.c", "-ldl"], check=True)
    more = {"LSDC_FAULTS": str(library), "LD_PRELOAD": str(library), "OMP_NUM_THREADS": "1", "LSDC_OFFLINE": "1"}
    os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **more})


class Fit:
    """A command in a forked process, with a fault at one of its calls; ``ended`` is its exit code, or minus a signal."""

    def __init__(self, place, words, at=0, how=COUNT, error=0, modules=False):
        self.place, self.modules, self.log = place, modules, Path(tempfile.mkdtemp(dir=place.parent))
        self.pid = os.fork()
        if not self.pid:
            self._child(words, at, how, error)
        self.ended = None

    def _child(self, words, at, how, error):
        code = 70
        try:
            from lsdc.cli.main import main

            os.environ.pop("LD_PRELOAD", None)
            os.chdir(self.place)
            for number, name in ((1, "out"), (2, "err"), (100, "trace")):
                handle = os.open(self.log / name, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
                os.dup2(handle, number)
                os.close(handle)
            library = ctypes.CDLL(os.environ["LSDC_FAULTS"])
            library.faults_arm(str(self.place).encode(), ctypes.c_long(at), how, error, 100)
            try:
                main(list(words))
            except SystemExit as done:
                code = done.code if isinstance(done.code, int) else 1
            if self.modules:
                (self.log / "modules").write_text(" ".join(sys.modules))
            try:  # as Python does at its end
                sys.stdout.flush()
            except OSError:
                code = 120
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            os._exit(code)

    def wait(self):
        """Until it has ended, or stopped."""
        _, status = os.waitpid(self.pid, os.WUNTRACED)
        self.ended = None if os.WIFSTOPPED(status) else os.waitstatus_to_exitcode(status)
        return self

    def go_on(self):
        os.kill(self.pid, signal.SIGCONT)
        return self.wait()

    def close(self):
        shutil.rmtree(self.log)

    @property
    def calls(self):
        """Name, whether it takes room, and path of every call."""
        lines = (self.log / "trace").read_text().splitlines()
        return [(name, fills == "1", path) for name, fills, path in (line.split("\t") for line in lines)]

    @property
    def said(self):
        return (self.log / "err").read_text(errors="replace")

    @property
    def is_plain(self):
        """Whether it ended well, or with a code of ours and one line that says why."""
        lines = [line for line in self.said.splitlines() if line.startswith("lsdc: ")]
        if "Traceback" in self.said or self.ended not in (0, 1, 2):
            return False
        return self.ended == 0 or len(lines) == 1


def import_everything(folder):
    """All that a fit imports, once and for all that are forked: the names of the modules come from a first one."""
    import torch

    torch.set_num_threads(1)
    first = Trial(folder, "first", prepare=False)
    fit = Fit(first.place, [*first.words("run"), "--method", "lsdc"], modules=True).wait()
    for name in (fit.log / "modules").read_text().split():
        with suppress(Exception):  # some are made by others, and cannot be imported by themselves
            importlib.import_module(name)


def left(folder):
    """What does not depend on the clock: labels, losses, weights."""
    losses = [json.loads(line)["loss"] for line in (folder / "metrics.jsonl").read_text().splitlines()]
    model = (folder / "model.safetensors").read_bytes()
    return (folder / "labels.csv").read_text(), losses, model[8 + int.from_bytes(model[:8], "little") :]


def files(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


class Trial:
    """A place with data, a run of somebody else and, in some stories, what was there before."""

    def __init__(self, folder, story, prepare=True):
        import numpy as np

        self.story, self.model, self.place = story, folder / f"{story}-model", folder / story
        self.place.mkdir()
        centres = np.repeat([[0.0] * 6, [5.0] * 6, [9.0] * 6], 20, axis=0)
        np.save(self.place / "x.npy", (centres + np.random.default_rng(0).normal(size=(60, 6))).astype(np.float32))
        if prepare:
            self._prepare()

    def _prepare(self):
        self.fit("other", "--seed", "5")
        self.plain = [*self.words("run"), "--seed", "0"]
        self.fit("run", "--seed", "0")
        self.whole = left(self.place / "run")
        shutil.rmtree(self.place / "run")
        if self.story == "resume":
            calls = self.count([*self.plain, "--resume"])
            Fit(self.place, self.plain, len(calls) // 2, KILL).wait().close()
        if self.story == "overwrite":
            self.fit("run", "--seed", "1")
        self.options = [] if self.story == "new" else [f"--{self.story}"]
        shutil.copytree(self.place, self.model)
        self.others = {name: content for name, content in files(self.place).items() if not name.startswith("run/")}

    def words(self, out):
        return ["fit", "x.npy", "--out", str(self.place / out), *FIT]

    def fit(self, out, *more):
        fit = Fit(self.place, [*self.words(out), *more]).wait()
        assert fit.ended == 0, fit.said
        fit.close()

    def count(self, words):
        fit = Fit(self.place, words).wait()
        assert fit.ended == 0, fit.said
        calls = fit.calls
        fit.close()
        shutil.rmtree(self.place / "run")
        return calls

    def reset(self):
        shutil.rmtree(self.place)
        shutil.copytree(self.model, self.place)

    def trouble(self, at, how, error):
        """The outcome of one fault, and what is wrong with it, if anything."""
        self.reset()
        fit = Fit(self.place, [*self.plain, *self.options], at, how, error).wait()
        outcome = {0: "put up with", -signal.SIGKILL: "killed"}.get(fit.ended, "one line")
        if fit.ended != -signal.SIGKILL and not fit.is_plain:
            return "wrong", f"exit {fit.ended}: {fit.said}"
        if fit.ended == 0 and left(self.place / "run") != self.whole:
            return "wrong", f"other results: {fit.said}"
        fit.close()
        again = Fit(self.place, [*self.plain, "--resume"]).wait()
        if self.story == "overwrite" and again.ended == 2 and again.is_plain:  # it is still the run that was there
            again.close()
            again = Fit(self.place, [*self.plain, "--overwrite"]).wait()
        if again.ended != 0:
            return "wrong", f"after {outcome}, exit {again.ended}: {again.said}"
        again.close()
        if left(self.place / "run") != self.whole:
            return "wrong", f"after {outcome}, resumed: other results"
        if list((self.place / "run").rglob("*.tmp")):
            return "wrong", "temporary files are left"
        if {name: c for name, c in files(self.place).items() if not name.startswith("run/")} != self.others:
            return "wrong", "files of others have changed"
        return outcome, ""


def one_fault_each(folder, every):
    """Counts by story, way and outcome; and what was wrong."""
    counts, wrong, tried = {}, [], 0
    for story in ("new", "resume", "overwrite"):
        trial = Trial(folder, story)
        trial.reset()
        calls = trial.count([*trial.plain, *trial.options])
        counts[story] = {"calls": len(calls), **{way: Counter() for way in WAYS}}
        for way, (how, error, applies) in WAYS.items():
            for at in [i for i, call in enumerate(calls, 1) if applies(call)]:
                tried += 1
                if tried % every:
                    continue
                outcome, why = trial.trouble(at, how, error)
                counts[story][way][outcome] += 1
                if why:
                    wrong.append({"story": story, "way": way, "call": [at, *calls[at - 1]], "why": why})
                    print(f"{story}, call {at} {calls[at - 1]} {way}: {why}", flush=True)
            print(f"{story}: {len(calls)} calls, {way}: {dict(counts[story][way])}", flush=True)
    return counts, wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, default=1, help="try one fault in so many")
    parser.add_argument("--out", type=Path)
    words = parser.parse_args()
    if "LSDC_FAULTS" not in os.environ:
        preloaded()
    from lsdc.runs.environment import environment

    started = time.time()
    with tempfile.TemporaryDirectory() as place:
        import_everything(Path(place))
        counts, wrong = one_fault_each(Path(place).resolve(), words.every)
    result = {
        "command": f"python benchmarks/faults.py --every {words.every}",
        "faults": counts,
        "wrong": wrong,
        "seconds": round(time.time() - started),
        "environment": environment(),
    }
    print(json.dumps({k: v for k, v in result.items() if k not in ("environment", "wrong")}, indent=1))
    if words.out:
        words.out.write_text(json.dumps(result, indent=1) + "\n")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
