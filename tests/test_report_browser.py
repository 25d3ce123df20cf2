"""The report in a real browser, opened from the file system."""

import json
import re

import pytest

from browser import EVIL, NAMES, Visit
from test_cli import inside

HISTORY = [
    {"stage": stage, "epoch": i, "loss": 1 / i, "alive": min(i, 3), "confident": i / 9, "shares": [1 / 3] * 3}
    for stage in ("pretext", EVIL)
    for i in range(1, 8)
]


@pytest.fixture(scope="module")
def address(small_run):
    names = [f"{EVIL} </script><script>alert(3)</script>", "Stripes", None]
    (small_run / "names.json").write_text(json.dumps({"names": names, "terms": [[EVIL], ["b"], []]}))
    verdict = {"agreement": 0.5, "information": {"lsdc": 1.25, "kmeans": 1.0}, "verdict": f"Keep it. {EVIL}"}
    (small_run / "comparison.json").write_text(json.dumps(verdict))
    (small_run / "metrics.jsonl").write_text("".join(json.dumps(record) + "\n" for record in HISTORY))
    assert inside("report", "run", cwd=small_run.parent).returncode == 0
    return (small_run / "report.html").as_uri()


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_nothing_is_cut_off_fetched_or_complained_of(chromium, address, width, scheme):
    with Visit(chromium, address, width, scheme) as visit:
        assert not visit.cut_off()
        assert not visit.reports_wide()
        visit.page.locator("summary").first.click()
        visit.page.locator("button.image").first.click()
        assert not visit.cut_off()
        assert visit.said == []
        assert {url for url in visit.asked if not url.startswith("data:")} == {address}


def test_dark_and_light_are_told_apart(chromium, address):
    colours = []
    for scheme in ("light", "dark"):
        with Visit(chromium, address, scheme=scheme) as visit:
            colours.append(visit.page.evaluate("getComputedStyle(document.body).backgroundColor"))
    brightness = [sum(map(int, re.findall(r"\d+", colour))) for colour in colours]
    assert brightness[0] > 600 > 200 > brightness[1]


def test_names_from_the_data_are_text(chromium, address):
    with Visit(chromium, address) as visit:
        text = visit.page.locator("body").inner_text()
        assert EVIL in text
        assert "49" not in visit.page.locator("#title-0").inner_text()
        assert visit.page.locator("img[src=x], svg[onload], script:not(:last-of-type):not([type])").count() == 0
        titles = visit.page.eval_on_selector_all("button.image", "all => all.map((b) => b.title)")
        assert {f"{name}.png" for name in NAMES} & set(titles)
        assert visit.said == []


def test_an_image_grows_and_the_keyboard_closes_it(chromium, address):
    with Visit(chromium, address) as visit:
        first = visit.page.locator("button.image").first
        first.focus()
        visit.page.keyboard.press("Enter")
        assert visit.page.locator("#large-image").bounding_box()["width"] > 300
        assert visit.page.locator("#large-text").inner_text() == first.locator("img").get_attribute("alt")
        visit.page.keyboard.press("Escape")
        assert not visit.page.locator("#large").is_visible()
        assert all(visit.page.eval_on_selector_all("img:not([hidden]):not(dialog *)", "all => all.map((i) => i.alt)"))


def test_the_map_shows_samples_and_leads_to_their_card(chromium, address):
    with Visit(chromium, address) as visit:
        page = visit.page
        plane = page.locator("#plane")
        plane.scroll_into_view_if_needed()
        points = json.loads(page.locator("#points").text_content())
        box = plane.bounding_box()
        at = (box["x"] + points["x"][0] / 1000 * box["width"], box["y"] + points["y"][0] / 1000 * box["height"])
        page.mouse.move(*at)
        assert page.locator("#tip").is_visible()
        shown = page.locator("#tip-name").inner_text()
        page.mouse.click(*at)
        assert page.evaluate("document.activeElement.querySelector('h3').innerText") == shown
        plane.focus()
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowLeft")
        assert page.locator("#tip").is_visible()
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.className").startswith("card")
        page.locator("[data-cluster='1']").click()
        assert page.locator("[aria-pressed=true]").count() == 1
        assert visit.said == []


def test_a_finger_looks_before_it_leaps(chromium, address):
    with Visit(chromium, address, 390, has_touch=True) as visit:
        plane = visit.page.locator("#plane")
        plane.scroll_into_view_if_needed()
        points = json.loads(visit.page.locator("#points").text_content())
        box = plane.bounding_box()
        at = (box["x"] + points["x"][0] / 1000 * box["width"], box["y"] + points["y"][0] / 1000 * box["height"])
        visit.page.touchscreen.tap(*at)
        assert visit.page.locator("#tip").is_visible()
        assert visit.page.locator(".here").count() == 0
        visit.page.touchscreen.tap(*at)
        assert visit.page.locator(".here").count() == 1


def test_it_prints_in_light_colours(chromium, address):
    with Visit(chromium, address, scheme="dark") as visit:
        visit.page.emulate_media(media="print", color_scheme="dark")
        assert visit.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert visit.page.locator("nav").is_hidden()
        assert len(visit.page.pdf()) > 10_000


def test_runs_compared(chromium, small_run, address):
    done = inside("report", "run", "run", "run", cwd=small_run.parent)
    assert done.returncode == 0, done.stderr
    for width in (1280, 390):
        with Visit(chromium, (small_run / "comparison.html").as_uri(), width) as visit:
            assert not visit.cut_off()
            assert visit.said == []
            assert "ARI 1.000, NMI 1.000" in visit.page.locator("body").inner_text()
