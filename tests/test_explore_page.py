"""The explorer in a real browser: what a stranger does with it, and what it makes of hostile names."""

import csv
import shutil
import threading
from contextlib import contextmanager

import pytest

from exploring import EVIL, NAMES, fitted, photos, session_of
from lsdc.explore.serve import listening, server_on

WIDTHS = (1280, 390)
PATIENCE = 120  # seconds that a busy machine may take
DRAWN = (
    "[document.querySelector('.map canvas')].some((c) => c?.width === Math.round(c?.clientWidth * devicePixelRatio))"
)
LISTED = "[document.querySelector('.more')?.textContent].some((text) => text !== undefined && text !== '…')"


@pytest.fixture
def browser(chromium):
    return chromium


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    run = fitted(photos(folder / "photos"), folder / "run")
    session_of(run)
    return run


@pytest.fixture
def run(made, tmp_path):
    return shutil.copytree(made, tmp_path / "run")


@contextmanager
def served(session):
    """The explorer at work, as a thread of the test."""
    bound = listening("127.0.0.1", 0)
    server, address = server_on(bound, "127.0.0.1", session)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
    thread.start()
    try:
        yield address
    finally:
        server.should_exit = True
        thread.join(20)
        bound.close()


@contextmanager
def opened(browser, address, width=1280, scheme="light"):
    """A page at an address; errors on its console, and requests to anywhere else, fail the test."""
    context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
    context.set_default_timeout(PATIENCE * 1000)
    page, wrong = context.new_page(), []
    page.on("console", lambda message: wrong.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("dialog", lambda dialog: (wrong.append(f"alert: {dialog.message}"), dialog.dismiss()))
    page.on(
        "request", lambda request: None if request.url.startswith(address.split("?")[0]) else wrong.append(request.url)
    )
    page.goto(address)
    page.wait_for_selector(".card")
    yield page
    context.close()
    assert wrong == []


def settled(page, condition):
    """Wait until it holds; the page's own policy forbids playwright's way of asking it to tell."""
    for _ in range(10 * PATIENCE):
        if page.evaluate(condition):
            return
        page.wait_for_timeout(100)
    raise AssertionError(f"never came true: {condition}")


def test_a_stranger_names_merges_splits_moves_undoes_and_exports(browser, run, tmp_path):
    with served(session_of(run)) as address, opened(browser, address) as page:
        assert "token" not in page.url
        assert page.locator("#facts").inner_text() == "30 samples · 3 clusters"
        page.locator(".montage img").first.wait_for()

        page.get_by_label("Name of cluster 0").fill("<b>reds</b>")
        page.get_by_label("Name of cluster 0").press("Enter")
        settled(page, "document.querySelector('#facts').textContent.includes('1 named')")

        page.locator(".card[data-cluster='1']").get_by_role("button", name="Merge…").click()
        page.locator("dialog .choice[data-cluster='2']").click()
        settled(page, "document.querySelectorAll('.card[data-cluster]').length === 2")
        page.locator(".card[data-cluster='2']").get_by_role("button", name="Split").click()
        settled(page, "document.querySelectorAll('.card[data-cluster]').length === 3")
        page.locator("#undo").click()
        settled(page, "document.querySelectorAll('.card[data-cluster]').length === 2")
        page.locator("#redo").click()
        settled(page, "document.querySelectorAll('.card[data-cluster]').length === 3")
        page.keyboard.press("Control+z")
        settled(page, "document.querySelectorAll('.card[data-cluster]').length === 2")

        page.locator(".card[data-cluster='0']").get_by_role("link", name="Open", exact=True).click()
        page.locator(".grid .tile").first.click()
        page.keyboard.press("ArrowRight")
        page.keyboard.press("Space")
        assert page.locator("#selection b").inner_text() == "2 selected"
        size = page.locator(".grid .tile").count()
        page.get_by_role("button", name="Move to…").click()
        page.locator("dialog .choice[data-cluster='2']").click()
        settled(page, f"document.querySelectorAll('.grid .tile').length === {size - 2}")
        page.locator(".grid .tile").first.click()
        page.get_by_role("button", name="Mark as outliers").click()
        settled(page, f"document.querySelectorAll('.grid .tile').length === {size - 3}")

        with page.expect_download() as download:
            page.get_by_role("button", name="Export labels").click()
        download.value.save_as(tmp_path / "got.csv")
        page.reload()
        page.wait_for_selector(".grid .tile")
        assert page.get_by_label("Name of cluster 0").input_value() == "<b>reds</b>"
        page.get_by_role("link", name="← All clusters").click()
        page.get_by_text("1 sample in no cluster").wait_for()
    assert (tmp_path / "got.csv").read_bytes() == (run / "labels-edited.csv").read_bytes()
    with (run / "labels-edited.csv").open(newline="") as file:
        table = list(csv.DictReader(file))
    sizes = {cluster: sum(row["cluster"] == cluster for row in table) for cluster in ("-1", "0", "1", "2")}
    assert sizes == {"-1": 1, "0": size - 3, "1": 0, "2": len(NAMES) - size + 2}
    assert {row["name"] for row in table if row["cluster"] == "0"} == {"<b>reds</b>"}


def test_hostile_names_are_text_and_search_and_details_work(browser, run):
    with served(session_of(run)) as address, opened(browser, address) as page:
        page.keyboard.press("/")
        page.keyboard.type("onerror")
        page.keyboard.press("Enter")
        settled(page, "document.querySelectorAll('.grid .tile').length === 1")
        page.locator(".grid .tile").focus()
        page.keyboard.press("Enter")
        assert page.locator("dialog h2").inner_text() == EVIL
        assert page.locator("dialog .grid .tile").count() == 18
        assert page.locator("img[src='x']").count() == 0
        page.keyboard.press("Escape")
        page.locator("#search input").fill("nowhere at all")
        page.locator("#search input").press("Enter")
        page.get_by_text("Nothing found.").wait_for()


def test_names_typed_faster_than_they_are_saved_are_all_kept(browser, run):
    """The second was refused as one of another tab, and what had been typed was gone."""
    with served(session_of(run)) as address, opened(browser, address) as page:
        page.evaluate(
            """() => document.querySelectorAll(".card input").forEach((field, i) => {
                field.value = `name ${i}`;
                field.dispatchEvent(new Event("change"));
            })"""
        )
        settled(page, "document.querySelector('#facts').textContent.includes('3 named')")
        assert [page.get_by_label(f"Name of cluster {i}").input_value() for i in range(3)] == [
            "name 0",
            "name 1",
            "name 2",
        ]


def test_two_tabs_cannot_overwrite_each_other(browser, run):
    with served(session_of(run)) as address, opened(browser, address) as one:
        other = one.context.new_page()
        other.goto(address.split("?")[0])
        other.wait_for_selector(".card")
        for page, name in ((one, "first"), (other, "second")):
            field = page.get_by_label("Name of cluster 0")
            field.fill(name)
            field.press("Enter")
            if page is one:
                settled(one, "!document.querySelector('#undo').disabled")  # the explorer has the change
        other.locator("#toasts .wrong").wait_for()
        assert "another tab" in other.locator("#toasts .wrong").inner_text()
        settled(other, "document.querySelector('.card input').value === 'first'")
        other.close()


def test_a_line_drawn_on_the_map_selects(browser, run):
    with served(session_of(run)) as address, opened(browser, address) as page:
        page.locator("#to-map").click()
        page.locator(".legend a").first.wait_for()
        box = page.locator(".map").bounding_box()
        left, top, right, bottom = (
            box["x"] + 4,
            box["y"] + 60,
            box["x"] + box["width"] - 4,
            box["y"] + box["height"] - 4,
        )
        settled(page, DRAWN)
        page.mouse.move(left, top)
        page.mouse.down()
        for x, y in ((right, box["y"] + 50), (right, bottom), (left, bottom), (left, top)):
            page.mouse.move(x, y, steps=3)
        page.mouse.up()
        settled(page, "document.querySelector('#selection b')?.textContent.includes('selected')")
        chosen = int(page.locator("#selection b").inner_text().split()[0])
        assert chosen > len(NAMES) // 2  # all but what lies behind the buttons
        page.keyboard.press("Escape")
        assert page.locator("#selection").is_hidden()


@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_is_cut_off(browser, run, width):
    with served(session_of(run)) as address, opened(browser, address, width, "dark") as page:
        there = {"#/": "document.querySelector('.card') !== null", "#/cluster/0": LISTED, "#/map": DRAWN}
        for place, condition in {**there, "#/search/photo": LISTED}.items():
            page.evaluate("place => { location.hash = place }", place)
            settled(page, condition)
            assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.goto(address.split("?")[0] + "docs")
        page.get_by_text("/api/edits").wait_for()
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_run_whose_data_has_gone(browser, run, tmp_path):
    def gone():
        from lsdc.errors import InputError

        raise InputError("photos/: no such folder")

    with served(session_of(run, gone)) as address, opened(browser, address) as page:
        notice = page.locator("#notice").inner_text()
        assert "photos/: no such folder" in notice
        assert "Pictures and texts are left out" in notice
        assert page.locator(".card img").count() == 0
