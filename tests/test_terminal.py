"""Where the output goes and what there is room for: terminals, readers that have left, memory that is too small."""

import os
import pty
import resource
import termios
from contextlib import suppress

import numpy as np
import pytest

from lsdc import KMeans
from victims import redirect, started, surrounded


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


class OnTerminal:
    """Standard error is a terminal."""

    def __init__(self, name):
        self.name = name

    def __call__(self):
        os.environ["TERM"] = "xterm"
        redirect(2, os.open(self.name, os.O_RDWR | os.O_NOCTTY))


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


def test_a_terminal_shows_a_bar(tmp_path):
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(90, 5)))
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (40, 120))
    quick = ["--set", "epochs=3", "--set", "width=0.05", "--set", "batch_size=32"]
    process = started(tmp_path, OnTerminal(os.ttyname(theirs)), "fit", "x.npy", "-k", 3, "--out", "run", *quick)
    text = read_until_the_end_of(process, ours)
    assert process.exitcode == 0, text
    first, rest = text.split("\r\n", 1)
    assert first == "x.npy: 90 samples, 3 clusters, run folder run"
    assert "\x1b[?25l" in rest  # the cursor is hidden meanwhile
    assert "\x1b[?25h" in rest.rsplit("clusters alive", 1)[1]  # and shown again at the end
    last = rest.rsplit("clustering", 1)[1]
    assert "━" in last
    assert "epoch 3/3" in last
    assert "clusters alive" in last
    os.close(ours)
    os.close(theirs)
