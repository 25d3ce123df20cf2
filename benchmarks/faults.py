"""A fault at every system call of a fit, one after the other: what is left must be a run that goes on, and no other's.

``python benchmarks/faults.py [--every 1] [--out results/faults.json]``. faults.c, preloaded, counts the calls of a
small ``lsdc fit`` that touch the disk, stdout or stderr. For each of them in turn a fit, forked from a process that has
imported everything, is killed before it or half-way through it, or the call fails (EIO; ENOSPC, once or from there on).
Then the fit is resumed. Two fits into one folder are interleaved the same way: the first is stopped at each of its
calls while the second runs. Exits with 1 if labels, losses or weights differ from those of a fit left in peace, if a
failure is not said in one line, or if files of others have changed.

With ``--out``, what was tried is kept beside it until the end, and the same command goes on there, as long as no line
of lsdc or of this file has changed. All is done in a file system in memory where there is one: the calls are the same,
and a disk would take nine tenths of the time.
"""

import argparse
import ctypes
import errno
import gc
import hashlib
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import redirect_stderr, redirect_stdout, suppress
from functools import partial
from pathlib import Path

HERE = Path(__file__).parent
COUNT, KILL, TEAR, STOP, FAIL, FULL = range(6)
QUICK = Path("/dev/shm")
KINDS = {  # what is clustered, and how: each saves in other stages
    "in batches": ("vectors.npy", "epochs=2 width=0.05 batch_size=12 neighbours=batch"),
    "with a graph": ("vectors.npy", "epochs=2 n_init=2 batch_size=4096"),
    "with a pretext": ("images.npy", "epochs=1 pretext_plan.epochs=1 width=0.05 batch_size=12 neighbours=batch"),
}
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
    """A command in a forked process, with a fault at one of its calls; ``ended`` is its exit code or minus a signal."""

    def __init__(self, place, words, at=0, how=COUNT, error=0):
        self.place, self.log = place, Path(tempfile.mkdtemp(dir=place.parent))
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


def left(folder):
    """What does not depend on the clock: labels, losses, weights, and how K-means compares."""
    losses = [json.loads(line)["loss"] for line in (folder / "metrics.jsonl").read_text().splitlines()]
    model = (folder / "model.safetensors").read_bytes()
    after = (folder / "comparison.json").read_text() if (folder / "comparison.json").exists() else ""
    return (folder / "labels.csv").read_text(), losses, model[8 + int.from_bytes(model[:8], "little") :], after


def files(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


class Trial:
    """A place with data, a run of somebody else and what was there before: nothing, a run begun or a run finished."""

    def __init__(self, folder, kind):
        import numpy as np

        self.place, self.model, self.kind = folder / "place", folder / "model", kind
        self.place.mkdir(parents=True)
        rng = np.random.default_rng(0)
        centres = np.repeat([[0.0] * 6, [5.0] * 6, [9.0] * 6], 10, axis=0)
        np.save(self.place / "vectors.npy", (centres + rng.normal(size=(30, 6))).astype(np.float32))
        np.save(self.place / "images.npy", rng.integers(0, 255, (30, 8, 8)).astype(np.uint8))
        self._warm_up()
        self.fit("other", 5)
        self.others = self.theirs()
        self.whole = [self.fit("run", seed) for seed in (0, 1)]

    def _warm_up(self):
        """Import, build and look up once what every fit needs, in the process that all others are forked from."""
        import torch

        from lsdc.cli.main import main

        torch.set_num_threads(1)
        for more in ([], ["--resume"]):
            with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()), suppress(SystemExit):
                main([*self.words("run", 0), *more])
        shutil.rmtree(self.place / "run")
        gc.collect()
        gc.freeze()  # what is shared with the children is not copied for being looked at

    def begin(self, before):
        """Let there be what was there before."""
        shutil.rmtree(self.place / "run", ignore_errors=True)
        if before == "a run begun":
            calls = self.count(self.words("run", 0))
            Fit(self.place, self.words("run", 0), len(calls) // 2, KILL).wait().close()
        if before == "a run finished":
            self.fit("run", 2, remove=False)
        shutil.rmtree(self.model, ignore_errors=True)
        shutil.copytree(self.place, self.model)

    def words(self, out, seed):
        file, settings = KINDS[self.kind]
        given = [f"--set={setting}" for setting in settings.split()]
        fit = ["fit", str(self.place / file), "--out", str(self.place / out), "-k", "3", "--save-every", "0"]
        return [*fit, *given, "--seed", str(seed)]

    def fit(self, out, seed, remove=True):
        """What a fit comes to that nothing happens to."""
        fit = Fit(self.place, self.words(out, seed)).wait()
        assert fit.ended == 0, fit.said
        fit.close()
        found = left(self.place / out)
        if remove and out == "run":
            shutil.rmtree(self.place / out)
        return found

    def count(self, words):
        """The calls of a command."""
        fit = Fit(self.place, words).wait()
        assert fit.ended == 0, fit.said
        calls = fit.calls
        fit.close()
        shutil.rmtree(self.place / "run")
        return calls

    def theirs(self):
        """All files but those of the run."""
        return {name: content for name, content in files(self.place).items() if not name.startswith("run/")}

    def reset(self):
        shutil.rmtree(self.place)
        shutil.copytree(self.model, self.place)

    def wrong_with_the_rest(self):
        if list((self.place / "run").rglob("*.tmp")):
            return "temporary files are left"
        return "files of others have changed" if self.theirs() != self.others else ""

    def fault(self, option, at, how, error):
        """The outcome of one fault, and what is wrong with it, if anything."""
        self.reset()
        plain = self.words("run", 0)
        fit = Fit(self.place, [*plain, *option], at, how, error).wait()
        outcome = {0: "put up with", -signal.SIGKILL: "killed"}.get(fit.ended, "one line")
        if fit.ended != -signal.SIGKILL and not fit.is_plain:
            return "wrong", f"exit {fit.ended}: {fit.said}"
        if fit.ended == 0 and left(self.place / "run") != self.whole[0]:
            return "wrong", f"other results: {fit.said}"
        fit.close()
        again = Fit(self.place, [*plain, "--resume"]).wait()
        if option == ["--overwrite"] and again.ended == 2 and again.is_plain:  # it is still the run that was there
            again.close()
            again = Fit(self.place, [*plain, *option]).wait()
        if again.ended != 0:
            return "wrong", f"after {outcome}, exit {again.ended}: {again.said}"
        again.close()
        if left(self.place / "run") != self.whole[0]:
            return "wrong", f"after {outcome}, resumed: other results"
        why = self.wrong_with_the_rest()
        return ("wrong", why) if why else (outcome, "")

    def meeting(self, options, at):
        """Two fits into one folder: the first is stopped at a call, the second runs, the first goes on."""
        self.reset()
        seeds = (0, 0) if options[0] == options[1] == ["--resume"] else (0, 1)  # a run goes on with its own seed only
        fits = [Fit(self.place, [*self.words("run", 0), *options[0]], at, STOP).wait()]
        fits.append(Fit(self.place, [*self.words("run", seeds[1]), *options[1]]).wait())
        if fits[0].ended is None:
            fits[0].go_on()
        said = " | ".join(f"exit {fit.ended}: {fit.said}" for fit in fits)
        ended = [fit.ended for fit in fits]
        if not all(fit.is_plain for fit in fits) or 0 not in ended:
            return "wrong", said
        if ended == [0, 0] and ["--overwrite"] not in options and seeds == (0, 1):
            return "wrong", f"both went well: {said}"
        found = left(self.place / "run")
        if found not in [self.whole[seeds[i]] for i in (0, 1) if ended[i] == 0]:
            return "wrong", f"the run is that of neither: {said}"
        if json.loads((self.place / "run" / "config.json").read_text())["seed"] != self.whole.index(found):
            return "wrong", f"a run of two: {said}"
        for fit in fits:
            fit.close()
        why = self.wrong_with_the_rest()
        outcome = {(0, 0): "one after the other", (0, 2): "the second is refused", (2, 0): "the first is refused"}
        return ("wrong", why) if why else (outcome.get(tuple(ended), "one line"), "")


NEW = ("nothing", [])
RESUMED = ("a run begun", ["--resume"])
FAULTS = {
    "over another": ("in batches", "a run finished", ["--overwrite"]),
    "new": ("in batches", *NEW),
    "resumed": ("in batches", *RESUMED),
    "new, with a graph": ("with a graph", *NEW),
    "resumed, with a graph": ("with a graph", *RESUMED),
    "new, with a pretext": ("with a pretext", *NEW),
    "resumed, with a pretext": ("with a pretext", *RESUMED),
}
MEETINGS = {
    "two new": ("nothing", ([], [])),
    "new, resumed": ("nothing", ([], ["--resume"])),
    "new, overwriting": ("nothing", ([], ["--overwrite"])),
    "two resumed": ("a run begun", (["--resume"], ["--resume"])),
    "resumed, overwriting": ("a run begun", (["--resume"], ["--overwrite"])),
    "overwriting, new": ("a run finished", (["--overwrite"], [])),
    "two overwriting": ("a run finished", (["--overwrite"], ["--overwrite"])),
}


def sources():
    """One digest of the code that is tried, and of what tries it."""
    import lsdc

    files = sorted(Path(lsdc.__file__).parent.rglob("*.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in [*files, *HERE.glob("faults.*")])).hexdigest()


class Journal:
    """What was tried so far, a line each, kept in a file if there is to be one."""

    def __init__(self, file, every):
        self.file, self.first, self.known = file, {"sources": sources(), "every": every}, {}
        lines = [json.loads(line) for line in file.read_text().splitlines()] if file and file.exists() else []
        if lines[:1] == [self.first]:
            self.known = {tuple(line[:4]): tuple(line[4:]) for line in lines[1:]}
        elif file:
            file.write_text(json.dumps(self.first) + "\n")

    def outcome(self, key, trial):
        """What came of a trial: as noted down, or made now."""
        if key not in self.known:
            started = time.time()
            self.known[key] = (*trial(), round(time.time() - started, 2))
            if self.file:
                with self.file.open("a") as file:
                    file.write(json.dumps([*key, *self.known[key]]) + "\n")
        return self.known[key]


class Tally:
    """What was tried and what came of it, every ``every``-th of all."""

    def __init__(self, every, journal):
        self.every, self.journal, self.seen, self.tried = every, journal, 0, 0
        self.counts, self.wrong, self.seconds = {}, [], 0.0

    def try_each(self, story, way, calls, applies, trial):
        """Try something at each call it can happen to."""
        counts = self.counts.setdefault(story, {"calls": len(calls)}).setdefault(way, Counter())
        for at in [i for i, call in enumerate(calls, 1) if applies(call)]:
            self.seen += 1
            if self.seen % self.every:
                continue
            outcome, why, seconds = self.journal.outcome((story, len(calls), way, at), partial(trial, at))
            self.tried, self.seconds = self.tried + 1, self.seconds + seconds
            counts[outcome] += 1
            if why:
                self.wrong.append({"story": story, "way": way, "call": [at, *calls[at - 1]], "why": why})
                print(f"{story}, call {at} {calls[at - 1]}, {way}: {why}", flush=True)
        print(f"{story}: {len(calls)} calls, {way}: {dict(counts)}", flush=True)


def faults(trials, tally):
    """Every fault at every call of a fit."""
    for story, (kind, before, option) in FAULTS.items():
        trial = trials[kind]
        trial.begin(before)
        calls = trial.count([*trial.words("run", 0), *option])
        for way, (how, error, applies) in WAYS.items():
            tally.try_each(story, way, calls, applies, partial(trial.fault, option, how=how, error=error))


def meetings(trials, tally):
    """Two fits into one folder, at every call of the first."""
    trial = trials["in batches"]
    for story, (before, options) in MEETINGS.items():
        trial.begin(before)
        calls = trial.count([*trial.words("run", 0), *options[0]])
        tally.try_each(story, "the other runs at it", calls, lambda call: True, partial(trial.meeting, options))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, default=1, help="try one fault in so many")
    parser.add_argument("--out", type=Path)
    words = parser.parse_args()
    if "LSDC_FAULTS" not in os.environ:
        preloaded()
    from lsdc.runs.environment import environment

    journal = Journal(words.out and words.out.with_suffix(".jsonl").resolve(), words.every)
    with tempfile.TemporaryDirectory(dir=QUICK if QUICK.is_dir() else None) as place:
        trials = {kind: Trial(Path(place).resolve() / str(i), kind) for i, kind in enumerate(KINDS)}
        tally = Tally(words.every, journal)
        for part in (meetings, faults):
            part(trials, tally)
    result = {
        "command": f"python benchmarks/faults.py --every {words.every}",
        "tried": tally.tried,
        "outcomes": tally.counts,
        "wrong": tally.wrong,
        "seconds": round(tally.seconds),
        "environment": environment(),
    }
    print(json.dumps({k: v for k, v in result.items() if k not in ("environment", "wrong")}, indent=1))
    if words.out:
        words.out.write_text(json.dumps(result, indent=1) + "\n")
        journal.file.unlink()
    sys.exit(bool(tally.wrong))


if __name__ == "__main__":
    main()
