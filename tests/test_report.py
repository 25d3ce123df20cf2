"""The report is one page that shows a run and can do nothing else."""

from html.parser import HTMLParser

import numpy as np
import pytest

from lsdc.data.datasets import Dataset
from lsdc.metrics import score
from lsdc.report.html import page

LABELS = np.array([0, 0, 1, 1, 1, 3])
CONFIDENCE = np.array([0.99, 0.5, 0.95, 0.91, 0.2, 0.7])
CONFIG = {"method": "lsdc", "seed": 0, "params": {"n_clusters": 4}}
HISTORY = [
    {"stage": "pretext", "epoch": 1, "loss": 9.0},
    {"stage": "clustering", "epoch": 1, "loss": 0.5, "alive": 2, "confident": 0.0},
    {"stage": "clustering", "epoch": 2, "loss": 0.25, "alive": 3, "confident": 0.5},
]
EVIL = "<script>alert('x')</script>"


class Tags(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.text = [], [], ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attributes]

    def handle_data(self, data):
        self.text += data


def shown(dataset=None, title="digits", history=HISTORY, scores=None):
    return Tags(page(title, CONFIG, history, LABELS, CONFIDENCE, dataset, scores))


def test_figures_are_shown():
    text = shown(scores=score([0, 0, 1, 1, 1, 2], LABELS, CONFIDENCE)).text
    for part in ("6 samples", "4 clusters", "50% confident", "16.7%", "1.000", "0.5 → 0.25", "2 epochs", "of 4"):
        assert part in text


def test_images_are_inside_the_page():
    for X in (np.zeros((6, 8, 8), np.uint8), np.random.default_rng(0).random((6, 8, 9, 3)), np.ones((6, 3, 8, 8))):
        result = shown(Dataset("x", X))
        assert result.tags.count("img") == 6
        assert all(value.startswith("data:image/png;base64,") for name, value in result.attributes if name == "src")


def test_texts_and_names_are_escaped():
    texts = shown(Dataset("x", [EVIL] * 6), title=EVIL)
    names = shown(Dataset("x", np.zeros((6, 8, 8)), ids=[f"{EVIL}' onload='x.png"] * 6))
    vectors = shown(Dataset("x", np.zeros((6, 3)), ids=[EVIL] * 6))
    for result in (texts, names, vectors):
        assert "script" not in result.tags
        assert not any(name.startswith("on") for name, _ in result.attributes)
    assert EVIL in texts.text


def test_nothing_is_fetched():
    result = shown(Dataset("x", np.zeros((6, 8, 8))))
    assert not {"link", "script", "iframe"} & set(result.tags)
    assert not [value for name, value in result.attributes if name in ("src", "href") and not value.startswith("data:")]


@pytest.mark.parametrize("history", [[], HISTORY[:2]])
def test_methods_without_epochs_have_no_curves(history):
    assert "svg" not in shown(history=history).tags


def test_the_most_confident_come_first_and_empty_clusters_are_said():
    text = shown(Dataset("x", [f"text {i}" for i in range(6)])).text
    assert text.index("text 2") < text.index("text 3") < text.index("text 4")
    assert "empty" in text
