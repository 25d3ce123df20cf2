"""Downloads from a real server: whole and checked, or not at all and one line that says why."""

import gzip
import hashlib
import io
import os
import resource
import signal
import socket
import tarfile
import threading
import time
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from lsdc.data import budget
from lsdc.data.benchmarks import mnist
from lsdc.data.download import CHUNK, OfficialFiles, fetch, watched
from lsdc.errors import InputError

A, B = b"first file" * 5000, bytes(range(256)) * 400


class Handler(BaseHTTPRequestHandler):
    """Serves ``server.pages``: bytes, or a function that answers itself."""

    def do_GET(self):
        self.server.asked.append(self.path)
        page = self.server.pages.get(self.path)
        if callable(page):
            return page(self)
        self.send_response(404 if page is None else 200)
        self.send_header("Content-Length", str(len(page or b"")))
        self.end_headers()
        self.wfile.write(page or b"")

    def log_message(self, *_):
        pass


@pytest.fixture
def server(monkeypatch):
    monkeypatch.delenv("LSDC_OFFLINE", raising=False)
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as httpd:
        httpd.pages, httpd.asked = {}, []
        httpd.url = f"http://127.0.0.1:{httpd.server_port}/"
        thread = threading.Thread(target=httpd.serve_forever, args=(0.01,))
        thread.start()
        yield httpd
        httpd.shutdown()
        thread.join()


def begin(handler, announced, sent):
    """An answer that ends before all that it announces was sent."""
    handler.send_response(200)
    handler.send_header("Content-Length", str(announced))
    handler.end_headers()
    handler.wfile.write(b"x" * sent)


def md5(content):
    return hashlib.md5(content).hexdigest()


def tar(members):
    """A tar.gz of names and their bytes; a text instead of bytes is the target of a symbolic link."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, content in members:
            member = tarfile.TarInfo(name)
            if isinstance(content, str):
                member.type, member.linkname = tarfile.SYMTYPE, content
                archive.addfile(member)
            else:
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


def archived(server, members, **changes):
    """A source whose archive the server has."""
    content = tar(members)
    server.pages["/set.tar.gz"] = content
    source = OfficialFiles("set", {"a": md5(A), "b": md5(B)}, (server.url,), "set.tar.gz", md5(content))
    return replace(source, **changes)


def single(server, *mirrors):
    """A source whose files the server has one by one."""
    server.pages |= {"/a.gz": gzip.compress(A), "/b.gz": gzip.compress(B)}
    return OfficialFiles("set", {"a": md5(A), "b": md5(B)}, (*mirrors, server.url))


def refused(source, root, *parts):
    """One line that names file, URL and place, and nothing left behind."""
    before = sorted(root.rglob("*")) if root.exists() else None
    with pytest.raises(InputError) as caught:
        fetch(source, root)
    line = str(caught.value)
    assert "\n" not in line
    for part in (root / "set", f"get {source.urls[0]}{source.archive or ''}", f"into {root / 'set'}", *parts):
        assert str(part) in line, line
    assert (sorted(root.rglob("*")) if root.exists() else None) == before


def test_an_archive_is_unpacked_checked_and_asked_for_once(tmp_path, server, capsys, caplog):
    caplog.set_level("INFO", logger="lsdc")
    source = archived(server, [("set/readme.html", b"x"), ("set/a", A), ("./set/b", B), ("set/more", b"m")])
    root = tmp_path / "new" / "root"
    assert fetch(replace(source, extra=("more",)), root) == root / "set"
    assert {file.name: file.read_bytes() for file in (root / "set").iterdir()} == {"a": A, "b": B, "more": b"m"}
    assert list(root.iterdir()) == [root / "set"]
    assert (root / "set" / "a").stat().st_mode & 0o444 == 0o444 & ~umask()
    assert capsys.readouterr().err == ""
    assert caplog.messages == [f"downloading {server.url}set.tar.gz into {root / 'set'}"]
    assert fetch(source, root) == root / "set"
    assert server.asked == ["/set.tar.gz"]


def test_a_download_is_shown_in_megabytes_and_never_beyond_its_end(tmp_path, server):
    big = os.urandom(2_500_000)
    source = OfficialFiles("set", {"big": md5(big)}, (server.url,))
    server.pages["/big.gz"] = packed = gzip.compress(big, 1)
    shown = []
    with watched(lambda *what: shown.append(what)):
        fetch(source, tmp_path)
    names, done, totals = zip(*shown, strict=True)
    assert set(names) == {"downloading big.gz, MB"}
    assert set(totals) == {-(-len(packed) // 10**6)} == {3}
    assert list(done) == sorted(done)
    assert (done[0], done[-1], done.count(3)) == (0, 3, 1)


def test_without_a_length_a_download_is_shown_without_an_end(tmp_path, server):
    def answer(handler):
        handler.send_response(200)
        handler.end_headers()
        handler.wfile.write(gzip.compress(A))

    server.pages["/a.gz"] = answer
    shown = []
    with watched(lambda *what: shown.append(what)):
        fetch(OfficialFiles("set", {"a": md5(A)}, (server.url,)), tmp_path)
    assert set(shown) == {("downloading a.gz, MB", 0, 1)}


def umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_single_files_stay_gzipped_and_only_missing_ones_are_got(tmp_path, server):
    source = single(server)
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "a").write_bytes(A)
    fetch(source, tmp_path)
    assert server.asked == ["/b.gz"]
    assert gzip.decompress((tmp_path / "set" / "b.gz").read_bytes()) == B
    assert sorted(file.name for file in (tmp_path / "set").iterdir()) == ["a", "b.gz"]


def test_the_second_mirror_is_asked_when_the_first_fails(tmp_path, server):
    source = single(server, f"{server.url}gone/", f"{server.url}other/")
    server.pages["/other/a.gz"] = gzip.compress(B)  # another file than it should be
    fetch(source, tmp_path)
    assert server.asked[:3] == ["/gone/a.gz", "/other/a.gz", "/a.gz"]
    assert gzip.decompress((tmp_path / "set" / "a.gz").read_bytes()) == A


def test_a_data_set_downloads_itself(tmp_path, server):
    files = {
        "x-idx3-ubyte": bytes([0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 2, 1, 2, 3, 4]),
        "y-idx1-ubyte": bytes([0, 0, 8, 1, 0, 0, 0, 1, 9]),
    }
    server.pages |= {f"/{name}.gz": gzip.compress(content) for name, content in files.items()}
    source = OfficialFiles("mnist", {name: md5(content) for name, content in files.items()}, (server.url,))
    data = mnist(tmp_path, source)
    assert data.X.tolist() == [[[1, 2], [3, 4]]]
    assert data.y.tolist() == [9]


@pytest.mark.parametrize("exists", [True, False])
def test_a_missing_page_leaves_nothing(tmp_path, server, exists):
    root = tmp_path if exists else tmp_path / "new"
    source = archived(server, [])
    server.pages.clear()
    refused(source, root, "set/a: missing, and cannot be downloaded (HTTP Error 404: Not Found)")


def test_a_wrong_checksum_leaves_nothing(tmp_path, server):
    source = archived(server, [("set/a", A), ("set/b", B)])
    other = replace(source, archive_md5="0" * 32)
    refused(other, tmp_path, f"not the official archive (md5 {source.archive_md5} instead of {'0' * 32})")
    other = replace(source, files={"a": md5(A), "b": "0" * 32})
    refused(other, tmp_path, f"not the official file (md5 {md5(B)} instead of {'0' * 32}, {len(B):,} bytes)")
    files = single(server)
    server.pages["/b.gz"] = gzip.compress(A)
    refused(files, tmp_path, "set/b: ", f"md5 {md5(A)} instead of {md5(B)}", f"{server.url}b.gz")


def test_a_cut_connection_leaves_nothing(tmp_path, server):
    source = archived(server, [])
    server.pages["/set.tar.gz"] = lambda handler: begin(handler, 100_000, 1234)
    refused(source, tmp_path, "the connection was cut after 1,234 of 100,000 bytes")


def test_a_cut_file_of_the_right_length_leaves_nothing(tmp_path, server):
    source = single(server)
    server.pages["/a.gz"] = gzip.compress(A)[:-20]
    refused(source, tmp_path, "set/a: ", "ended before")
    whole = archived(server, [("set/a", A), ("set/b", B)])
    server.pages["/set.tar.gz"] = server.pages["/set.tar.gz"][:200]
    refused(replace(whole, archive_md5=md5(server.pages["/set.tar.gz"])), tmp_path, "cannot be downloaded (")


def test_a_silent_server_is_not_waited_for(tmp_path, server):
    done = threading.Event()
    source = archived(server, [], timeout=0.2)
    server.pages["/set.tar.gz"] = lambda handler: done.wait(30)
    try:
        refused(source, tmp_path, "timed out")
    finally:
        done.set()


def test_no_server_leaves_nothing(tmp_path, server):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/"
    refused(archived(server, [], urls=(url,)), tmp_path, "Connection refused")


@pytest.mark.parametrize("name", ["../evil", "/tmp/lsdc-evil", "set/../../evil", "set/evil"])
def test_only_the_expected_members_are_written(tmp_path, server, name):
    root = tmp_path / "inner" / "root"
    source = archived(server, [(name, b"evil"), ("set/a", A), ("set/b", B)])
    fetch(source, root)
    found = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert found == {"inner/root/set/a", "inner/root/set/b"}
    assert not Path("/tmp/lsdc-evil").exists()


def test_links_and_missing_members_are_refused(tmp_path, server):
    secret = tmp_path / "secret"
    secret.write_bytes(B)
    root = tmp_path / "root"
    root.mkdir()
    for members in ([("set/a", A), ("set/b", str(secret))], [("set/a", A)]):
        refused(archived(server, members), root, "the archive has no file set/b")


def interrupted(server, moment):
    """A server that sends a third of a file, and Ctrl-C to the client when ``moment`` is over."""

    def answer(handler):
        begin(handler, 1_000_000, 300_000)
        moment()
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        done.wait(30)

    done = threading.Event()
    server.pages["/set.tar.gz"] = answer
    return done


def received(root):
    """Wait until the client has written what it was sent: it then waits for more."""
    for _ in range(30_000):
        if sum(file.stat().st_size for file in root.glob(".set.*/set.tar.gz")) >= CHUNK:
            return
        time.sleep(0.001)


def test_an_interrupt_leaves_nothing(tmp_path, server):

    source = archived(server, [])
    done = interrupted(server, lambda: received(tmp_path / "new"))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            fetch(source, tmp_path / "new")
    finally:
        signal.signal(signal.SIGINT, before)
        done.set()
    assert list(tmp_path.iterdir()) == []


def test_an_interrupt_while_the_file_is_opened_leaves_nothing(tmp_path, server, monkeypatch):
    opened = []

    def interrupt(path, mode):
        opened.append(open(path, mode))  # noqa: SIM115
        signal.raise_signal(signal.SIGINT)  # before anybody has the file
        return opened[0]

    source = archived(server, [("set/a", A), ("set/b", B)])
    monkeypatch.setattr(Path, "open", interrupt)
    with pytest.raises(KeyboardInterrupt):
        fetch(source, tmp_path / "new")
    assert opened[0].closed
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_takes_no_more_leaves_nothing(tmp_path, server):
    source = archived(server, [("set/a", A), ("set/b", B)])
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, limits[1]))  # of B, 102,400 bytes
    try:
        refused(source, tmp_path, "File too large")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_a_root_that_is_no_folder_is_refused(tmp_path, server):
    root = tmp_path / "file"
    root.touch()
    refused(archived(server, []), root, "File exists")
    (tmp_path / "set").touch()
    refused(archived(server, [("set/a", A), ("set/b", B)]), tmp_path, "Not a directory")


def test_a_root_that_cannot_be_written_is_refused(tmp_path, server):
    refused(archived(server, []), Path("/proc/lsdc"), "cannot be downloaded (")
    assert server.asked == []


def test_offline_means_offline(tmp_path, server, monkeypatch):
    monkeypatch.setenv("LSDC_OFFLINE", "yes")
    source = archived(server, [("set/a", A), ("set/b", B)])
    refused(source, tmp_path / "new", "set/a: missing, and cannot be downloaded (LSDC_OFFLINE is set)")
    assert server.asked == []
    monkeypatch.setenv("LSDC_OFFLINE", "")
    fetch(source, tmp_path)


def test_downloads_without_end(server, tmp_path, monkeypatch):
    """Nothing says how long the answer is, and it goes on: it is cut off at the limit, and nothing stays."""
    monkeypatch.setattr(budget, "DOWNLOAD", 2_000_000)
    sent = []

    def forever(handler):
        handler.send_response(200)
        handler.end_headers()
        for _ in range(1000):
            handler.wfile.write(bytes(100_000))
            sent.append(100_000)

    source = single(server)
    server.pages = {"/a.gz": forever, "/b.gz": forever}
    refused(source, tmp_path / "root", "more than the limit of 2,000,000 bytes")
    assert sum(sent) < 50_000_000
    assert not (tmp_path / "root").exists()
