"""Where the output goes and what there is room for: terminals, readers that have left, memory that is too small."""

import io
import os
import pathlib
import pty
import re
import resource
import select
import signal
import sys
import termios
from contextlib import suppress

import numpy as np
import pytest
from rich.cells import cell_len
from rich.console import Console

from lsdc import KMeans
from lsdc.cli.reading import ReadingBar
from lsdc.metrics import score
from lsdc.report.terminal import Board, scores_table, sizes_table
from lsdc.training.context import Progress
from test_cli import inside
from victims import Signals, redirect, started, surrounded, undisturbed


@pytest.mark.parametrize("width", [24, 40, 52, 56, 60, 66, 72, 80, 120])
def test_figures_are_whole_at_any_width(width):
    rng = np.random.default_rng(0)
    labels, confidence = rng.integers(0, 3, 5000), rng.random(5000)
    names = ["film, actor", "Donaudampfschifffahrt, Kapitän, Fluss", "雨, 天気"]
    scores = {"lsdc": score(labels[::-1], labels, confidence), "kmeans": score(labels, labels, confidence)}
    tables = [
        (sizes_table(labels, confidence, 3, names), [f"{(labels == k).sum():,}" for k in range(3)]),
        (sizes_table(labels, confidence, 3), [f"{(labels == k).mean():.1%}" for k in range(3)]),
        (scores_table(scores, "data"), [f"{s.nmi:.3f}" for s in scores.values()] + ["confident", "ACC", "method"]),
    ]
    for table, figures in tables:
        screen = Console(file=io.StringIO(), width=width)
        screen.print(table)
        text = screen.file.getvalue()
        assert max(map(cell_len, text.splitlines())) <= width
        assert "\N{HORIZONTAL ELLIPSIS}" not in text
        assert [figure for figure in figures if figure not in text] == []


def closed_pipe():
    reader, writer = os.pipe()
    os.close(reader)
    redirect(1, writer)


@pytest.mark.parametrize("n", [20, 20_000], ids=["less than a buffer", "more than a buffer"])
def test_a_reader_that_has_left_is_no_error_to_speak_of(tmp_path, n):
    X = np.random.default_rng(0).normal(size=(n, 2)).astype(np.float32)
    np.save(tmp_path / "x.npy", X)
    KMeans(2, n_init=1, random_state=0).fit(X[:20], run=tmp_path / "run")
    assert surrounded(tmp_path, closed_pipe, "predict", "run", "x.npy") == (1, "", "")


def full_disk():
    redirect(1, os.open("/dev/full", os.O_WRONLY))


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")
def test_labels_that_a_full_disk_does_not_take_are_missed(tmp_path):
    np.save(tmp_path / "x.npy", np.eye(20))
    KMeans(2, n_init=1, random_state=0).fit(np.eye(20), run=tmp_path / "run")
    code, _, said = surrounded(tmp_path, full_disk, "predict", "run", "x.npy")
    assert (code, said) == (1, "lsdc: disk: No space left on device\n")


def little_room():
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))


def test_a_file_that_a_disk_does_not_take_is_named(vectors):
    """Not the temporary file that is written first; and nothing of it is left."""
    KMeans(2, n_init=1, random_state=0).fit(np.load(vectors / "x.npy"), run=vectors / "run")
    code, _, said = surrounded(vectors, little_room, "report", "run")
    assert (code, said.splitlines()[-1]) == (1, "lsdc: run/report.html: File too large")
    code, _, said = surrounded(vectors, little_room, "export", "run", "--html", "r.html")
    assert (code, said) == (2, "lsdc: r.html: cannot be written (File too large)\n")
    assert not [file for file in vectors.rglob("*") if file.suffix in (".html", ".tmp")]


def another_world():
    os.environ["WORLD_SIZE"] = "large"


def test_what_others_call_the_size_of_the_world_is_not_torchruns(tmp_path):
    code, out, said = surrounded(tmp_path, another_world, "--version")
    assert (code, said) == (0, "")
    assert out.startswith("lsdc ")


class Closed:
    """Surroundings without some of the streams, as after ``>&-``: Python has None in their place."""

    def __init__(self, *numbers):
        self.numbers = numbers

    def __call__(self):
        for number in self.numbers:
            os.close(number)
            setattr(sys, ("stdin", "stdout", "stderr")[number], None)


@pytest.mark.parametrize("numbers", [(1,), (2,), (0, 1, 2)], ids=str)
def test_a_closed_stream_is_no_reason_to_stop(tmp_path, numbers):
    X = np.random.default_rng(0).normal(size=(40, 2))
    np.save(tmp_path / "x.npy", X)
    words = ("fit", "x.npy", "-k", 2, "--method", "kmeans", "--out", "run")
    assert surrounded(tmp_path, Closed(*numbers), *words)[0] == 0
    assert (tmp_path / "run" / "report.html").exists()
    assert (tmp_path / "run" / ".lock").read_bytes() == b""  # nothing was printed into what took a stream's number
    assert surrounded(tmp_path, Closed(*numbers), "fit", "none.npy")[0] == 2


def without_home():
    """As in a container whose user has a number and nothing else."""
    os.environ.pop("HOME", None)
    os.environ.pop("LSDC_DATA", None)
    pathlib.Path.home = classmethod(lambda cls: pathlib.Path(HOMELESS).expanduser())


HOMELESS = "~nobody-of-this-name"  # what Python says of a user that the system does not know is the same


def test_a_user_without_a_home_is_told_what_to_set(tmp_path):
    np.save(tmp_path / "x.npy", np.eye(20))
    code, _, said = surrounded(tmp_path, without_home, "fit", "x.npy", "-k", 2)
    assert (code, said) == (2, "lsdc: this user has no home folder; set HOME, or LSDC_DATA to a folder\n")


def little_memory():
    """As much as there is by now, and a little more."""
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + 2**27, used + 2**27))


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs Linux")
@pytest.mark.parametrize("n", [12_000, 1_500_000], ids=["for a step", "for the data"])
def test_too_little_memory_is_said_in_one_line(tmp_path, n):
    """A batch of 12,000 has matrices of 576 MB; 1,500,000 samples take 144 MB in double precision."""
    np.lib.format.open_memmap(tmp_path / "x.npy", "w+", np.float32, (n, 12))[::2] = 1
    words = ["fit", "x.npy", "-k", 2, "--out", "run", "--set", "batch_size=12000", "--set", "similarity=sne"]
    code, _, said = surrounded(tmp_path, little_memory, *words, "--set", "epochs=1", "--set", "width=0.02")
    assert code == 1
    assert said.splitlines()[-1] == "lsdc: not enough memory; try a smaller batch_size, width or pool (--set)"
    assert "Traceback" not in said


HIDE, SHOW = "\x1b[?25l", "\x1b[?25h"  # the cursor
QUICK = ["--set", "epochs=3", "--set", "width=0.05", "--set", "batch_size=32"]


class OnTerminal:
    """Standard error is a terminal, after what else is to be done."""

    def __init__(self, name, surround):
        self.name, self.surround = name, surround

    def __call__(self):
        os.environ["TERM"] = "xterm"
        redirect(2, os.open(self.name, os.O_RDWR | os.O_NOCTTY))
        self.surround()


def read_until_the_end_of(process, terminal):
    os.set_blocking(terminal, False)
    shown, was_alive = b"", True
    while was_alive:
        was_alive = process.is_alive()  # asked before reading: what it wrote until then is read below
        process.join(0.05)
        with suppress(BlockingIOError):
            while True:
                shown += os.read(terminal, 2**16)
    return shown.decode()


def on_terminal(folder, *words, surround=undisturbed):
    """The exit code of a command, and all that a terminal of 120 columns was sent."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (40, 120))
    process = started(folder, OnTerminal(os.ttyname(theirs), surround), *words)
    text = read_until_the_end_of(process, ours)
    os.close(ours)
    os.close(theirs)
    return process.exitcode, text


@pytest.fixture
def vectors(tmp_path):
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(90, 5)))
    return tmp_path


def test_a_terminal_shows_a_bar(vectors):
    code, text = on_terminal(vectors, "fit", "x.npy", "-k", 3, "--out", "run", *QUICK)
    assert code == 0, text
    first, rest = text.split("\r\n", 1)
    assert first == "x.npy: 90 samples, 3 clusters, run folder run"
    assert HIDE in rest
    assert SHOW in rest.rsplit("clusters alive", 1)[1]
    last = rest.rsplit("clustering", 1)[1]
    assert "━" in last
    assert "epoch 3/3" in last
    assert "clusters alive" in last


def test_ctrl_c_gives_the_cursor_back_and_says_how_to_resume(vectors):
    words = ["fit", "x.npy", "-k", 3, "--out", "run", "--set", "neighbours=batch", *QUICK, "--set", "batch_size=16"]
    code, text = on_terminal(vectors, *words, surround=Signals(signal.SIGINT))
    assert code == 130, text
    bars, after = text.rsplit(SHOW, 1)
    assert HIDE in bars
    assert re.fullmatch(r"\s*stopped; everything up to epoch 2, step \d+ is saved. Resume with:  .*--resume\s*", after)


def stdout_as_well():
    """Standard output is the same terminal as standard error."""
    redirect(1, os.dup(2))


def test_names_of_files_do_not_write_to_the_terminal(vectors):
    """Into a file or a pipe they are written as they are."""
    (vectors / "t.csv").write_text("id,a,b\nx\x1b[31m,1,2\n" + "".join(f"{i},{i},{i % 7}\n" for i in range(30)))
    words = ("fit", "t.csv", "-k", 2, "--method", "kmeans", "--out", "run")
    assert inside(*words, cwd=vectors).returncode == 0
    assert inside("predict", "run", "t.csv", cwd=vectors).stdout.splitlines()[1].startswith("x\x1b[31m,")
    code, text = on_terminal(vectors, "predict", "run", "t.csv", surround=stdout_as_well)
    assert code == 0, text
    assert "x\\x1b[31m," in text
    assert "x\x1b" not in text


class Screen:
    """A terminal in this process: a console that writes to it, and what arrives there, without colours."""

    def __init__(self):
        self.ours, theirs = pty.openpty()
        self.file = open(theirs, "w")  # noqa: SIM115 (closed with the screen)
        self.console = Console(file=self.file, _environ={"TERM": "xterm", "COLUMNS": "120", "LINES": "40"})
        self.sent, self.seen = b"", 0

    def sees(self, pattern):
        """Wait for a text, as a terminal passes on what is written when it likes; fails if nothing more comes."""
        while not (found := re.compile(pattern).search(self.text, self.seen)):
            assert select.select([self.ours], [], [], 600)[0], (pattern, self.text)
            self.sent += os.read(self.ours, 2**16)
        self.seen = found.end()

    @property
    def text(self):
        return re.sub(r"\x1b\[[\d;]*m", "", self.sent.decode(errors="ignore"))


@pytest.fixture
def screen():
    screen = Screen()
    yield screen
    screen.file.close()
    os.close(screen.ours)


def test_a_terminal_shows_the_jobs_of_a_table(screen):
    with Board(screen.console) as board:
        board.update(0, 3, {"dec, seed 0": None})
        board.bars.refresh()
        screen.sees(re.escape(HIDE))
        screen.sees(r"cells +━+ 0/3 *\r\n  dec, seed 0 ━+ 0/1 starts")
        record = {"loss": 0.25, "alive": 9, "shares": [0.1] * 10, "confident": 0.5}
        board.update(1, 3, {"vade, seed 0": Progress("clustering", 2, 5, 4, 4, record)})
        board.bars.refresh()
        figures = "clustering · loss 0.2500 · 9/10 clusters alive · 50% confident"
        screen.sees(rf"cells +━+╺━+ 1/3 *\r\n  vade, seed 0 ━+╸━+ 2/5 {figures}")  # dec has ended
    screen.sees(re.escape(SHOW))


def test_a_terminal_shows_how_files_are_read_and_forgets_it(screen):
    with ReadingBar(screen.console) as bar:
        bar("decoding", 0, 70)
        bar("decoding", 35, 70)
        bar.bars.refresh()
        screen.sees(re.escape(HIDE))
        screen.sees(r"decoding +━+╺━+ 35/70 .*\d/s")
        bar("decoding", 70, 70)
    screen.sees(re.escape(SHOW))
    screen.sees(r"\x1b\[2K$")  # the line of the bar is empty again


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_while_the_report_is_written_leaves_a_finished_run(tmp_path, monkeypatch, number, code):
    """It said "stopped", as if there were nothing to show for the fit."""
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(20, 3)))
    with monkeypatch.context() as patch:
        patch.setattr("lsdc.report.write.write_report", lambda *_, **__: signal.raise_signal(number))
        done = inside("fit", "x.npy", "-k", 2, "--method", "kmeans", "--out", "run", cwd=tmp_path)
    assert done.returncode == code, done.stderr
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("stopped; the run is finished and saved. Write its report with:  ")
    assert last.endswith("lsdc report run")
    assert inside("report", "run", cwd=tmp_path).returncode == 0


def test_a_download_of_unknown_length_never_exceeds_its_bar():
    bar = ReadingBar(Console(file=io.StringIO()))
    for done in range(3):
        bar("downloading a.gz, MB", done, done + 1)
    task = bar.bars.tasks[0]
    assert (task.completed, task.total) == (2, 3)


@pytest.mark.parametrize(("what", "saved"), [("decoding", True), ("downloading a.gz, MB", False)])
def test_ctrl_c_says_what_is_saved_of_what_was_read(what, saved):
    """Photos that were decoded are kept; half a download is not."""
    stream = io.StringIO()
    bar = ReadingBar(Console(file=stream))
    bar(what, 1, 2)
    with pytest.raises(KeyboardInterrupt), bar:
        raise KeyboardInterrupt
    assert ("what was read so far is saved" in stream.getvalue()) is saved
