"""A real browser and a small run of images with hostile names, made once for all tests that look at pages."""

import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

CHROMIUM = "/usr/bin/chromium"
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
EVIL = "<img src=x onerror=alert(1)>"
NAMES = [EVIL, "'\"><svg onload=alert(2)>", "{{ 7 * 7 }}", "&lt;b&gt;", "ünï cødé", "a" * 90]


@pytest.fixture(scope="session")
def chromium():
    """The installed Chromium; without it tests are skipped, but fail in continuous integration."""
    if not Path(CHROMIUM).exists():
        message = f"no browser at {CHROMIUM} (Debian: apt-get install chromium)"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


class Visit:
    """A page with all that went wrong on it: console messages, errors, dialogs, requests beside its own."""

    def __init__(self, browser, address, width=1280, scheme="light", **options):
        options = {"color_scheme": scheme, "reduced_motion": "reduce", **options}  # nothing to wait for
        self.page = browser.new_page(viewport={"width": width, "height": 900}, **options)
        self.said, self.asked = [], []
        self.page.on("console", lambda message: self.said.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.said.append(f"error: {error}"))
        self.page.on("dialog", lambda dialog: (self.said.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(address)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.page.close()

    def cut_off(self):
        """What reaches beyond the window, but for what scrolls by itself."""
        return self.page.evaluate("""() => [...document.querySelectorAll("body *")]
            .filter((e) => !e.closest(".scroll, .skip, .hidden, svg") && e.getClientRects().length)
            .filter((e) => e.getBoundingClientRect().right > innerWidth + 1 || e.getBoundingClientRect().left < -1)
            .map((e) => e.outerHTML.slice(0, 120))""")

    def reports_wide(self):
        return self.page.evaluate("document.documentElement.scrollWidth > innerWidth")


@pytest.fixture(scope="session")
def small_run(tmp_path_factory):
    """A run of K-means, which takes no time, on 60 images; the names of some would run if they were not text."""
    from test_cli import inside

    folder, rng = tmp_path_factory.mktemp("browser"), np.random.default_rng(0)
    (folder / "photos").mkdir()
    for i in range(60):
        pixels = rng.integers(0, 60, (8, 8, 3), dtype=np.uint8)
        pixels[(slice(2, 4) if i % 2 else slice(None)), (slice(None) if i % 2 else slice(2, 4))] += np.uint8(180)
        Image.fromarray(pixels).save(folder / "photos" / f"{NAMES[i] if i < len(NAMES) else i}.png")
    done = inside("fit", "photos", "-k", 3, "--method", "kmeans", "--image-size", 8, "--out", "run", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder / "run"
