"""The paper's figures: labelings of two moons, confusion matrices, learning curves. Needs matplotlib."""

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.datasets import make_moons
from torch import Tensor

from lsdc.errors import InputError
from lsdc.functional import SCORES, closest
from lsdc.functional.similarity import l2_scores
from lsdc.runs.atomic import write_atomic

EDGES = 650
STYLE = {
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.hashsalt": "lsdc",  # so that the same figure gives the same file
    "svg.fonttype": "none",
    "figure.dpi": 120,
}
BLUE, ORANGE, RED, GREY = "#3b6ea5", "#e08b3c", "#c23b3b", "#9aa3ad"


def pyplot() -> Any:
    """The plotting library; if missing, an error says how to install it."""
    try:
        import matplotlib
    except ImportError:
        raise InputError("figures need matplotlib: pip install 'lsd-clusters[report]'") from None
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    return plt


def _save(figure: Any, out: Path, name: str) -> list[Path]:
    """Save a figure for web pages and for papers."""
    files = []
    for suffix, metadata in ((".svg", {"Date": None}), (".pdf", {"CreationDate": None})):
        (out / "figures").mkdir(parents=True, exist_ok=True)
        files.append(out / "figures" / f"{name}{suffix}")
        write_atomic(files[-1], as_bytes(figure, suffix[1:], metadata))
    return files


def as_bytes(figure: Any, kind: str, metadata: dict[str, None]) -> bytes:
    """The content of a figure's file."""
    content = io.BytesIO()
    figure.savefig(content, format=kind, bbox_inches="tight", metadata=metadata)
    return content.getvalue()


def rank_scores(f: Tensor) -> Tensor:
    """How early one of two samples comes among the neighbours of the other (kNN as scores), ties by distance."""
    near = l2_scores(f).fill_diagonal_(-torch.inf)
    ranks = near.argsort(1, descending=True).argsort(1).to(f.dtype)
    near = near.fill_diagonal_(0)
    return -torch.minimum(ranks, ranks.T) + near / (1 - 2 * near.min())  # the tie-breaker stays below 1/2


def moons_edges(n: int = 150, noise: float = 0.1, edges: int = EDGES) -> tuple[Tensor, np.ndarray, dict[str, Tensor]]:
    """Two moons, and the pairs that each labeling connects when it may connect ``edges`` of them."""
    X, y = make_moons(n, noise=noise, random_state=0)
    f = torch.from_numpy(X)
    scores = {"L2": SCORES["l2"](f), "cosine": SCORES["cosine"](f), "kNN": rank_scores(f), "SNE": SCORES["sne"](f, 0.3)}
    return f, y, {name: closest(s, edges).triu(1).nonzero() for name, s in scores.items()}


def two_moons(out: Path) -> list[Path]:
    """What each labeling connects on two moons; edges between the moons are red."""
    plt = pyplot()
    f, y, labelings = moons_edges()
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(1, 5, figsize=(12.5, 2.6), sharex=True, sharey=True)
        for axis, name in zip(axes, ["raw data", *labelings], strict=True):
            pairs = labelings.get(name, torch.empty(0, 2, dtype=torch.long)).numpy()
            wrong = y[pairs[:, 0]] != y[pairs[:, 1]]
            for lines, colour in ((pairs[~wrong], GREY), (pairs[wrong], RED)):
                axis.plot(f[lines.T, 0].numpy(), f[lines.T, 1].numpy(), color=colour, linewidth=0.5, zorder=1)
            axis.scatter(f[:, 0], f[:, 1], c=np.where(y == 0, BLUE, ORANGE), s=5, zorder=2)
            axis.set_title(name if name == "raw data" else f"{name}: {wrong.sum()} of {len(pairs)} wrong")
            axis.set_axis_off()
        files = _save(figure, out, "two-moons")
        plt.close(figure)
    return files


def confusions(cell: Mapping[str, Any], out: Path, name: str) -> list[Path]:
    """The confusion matrices of all samples and of the confident ones, in per cent of each class."""
    plt = pyplot()
    names, scores = cell["class_names"], cell["scores"]
    sure = scores["confident_acc"]
    parts = (
        (f"all samples: ACC {scores['acc']:.1%}", np.array(cell["confusion"])),
        (
            f"above 0.9 ({scores['confident_share']:.0%}): ACC {'-' if sure is None else f'{sure:.1%}'}",
            np.array(cell["confusion_confident"]),
        ),
    )
    side = max(3.2, 0.36 * len(names))
    with plt.rc_context({**STYLE, "axes.spines.top": True, "axes.spines.right": True}):
        figure, axes = plt.subplots(1, 2, figsize=(2 * side + 1.2, side), sharey=True, layout="constrained")
        for axis, (title, counts) in zip(axes, parts, strict=True):
            shares = 100 * counts / np.maximum(counts.sum(1, keepdims=True), 1)
            axis.imshow(shares, cmap="Blues", vmin=0, vmax=100)
            for (i, j), share in np.ndenumerate(shares):
                if share >= 0.5:
                    axis.text(
                        j, i, f"{share:.0f}", ha="center", va="center", fontsize=7, color="w" if share > 60 else "k"
                    )
            axis.set_title(title)
            axis.set_xlabel("cluster, matched with its class")
            axis.set_xticks(range(counts.shape[1]), range(counts.shape[1]))
            axis.set_yticks(range(len(names)), names)
        axes[0].set_ylabel("class (rows in %)")
        figure.suptitle(
            f"{cell['title']}, {cell['variant']}, scale {cell['scale']}, seed {cell['seed']}",
            fontsize=10,
            parse_math=False,
        )
        files = _save(figure, out, f"confusion-{name}")
        plt.close(figure)
    return files


PANELS = {
    "pair": "pair loss",
    "alive": "clusters alive",
    "confident": "share above 0.9",
    "density": "density of A",
}


def curves(cells: Sequence[Mapping[str, Any]], out: Path, name: str) -> list[Path]:
    """What training looks like without labels: one line per seed."""
    plt = pyplot()
    first = cells[0]
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(1, len(PANELS), figsize=(12.5, 2.5), layout="constrained")
        for axis, (key, title) in zip(axes, PANELS.items(), strict=True):
            for cell in cells:
                records = [r for r in cell["history"] if r.get("stage") == "clustering" and key in r]
                epochs, values = [r["epoch"] for r in records], [r[key] for r in records]
                axis.plot(epochs, values, color=BLUE, alpha=0.6, linewidth=1.2, marker="." if len(epochs) < 20 else "")
            axis.set_title(title)
            axis.set_xlabel("epoch")
            axis.xaxis.get_major_locator().set_params(integer=True)
            if key == "alive":
                axis.set_ylim(0, len(first["sizes"]) + 0.5)
            if key == "confident":
                axis.set_ylim(0, 1)
        figure.suptitle(
            f"{first['title']}, LSD-C, scale {first['scale']}, {len(cells)} seeds", fontsize=10, parse_math=False
        )
        files = _save(figure, out, f"curves-{name}")
        plt.close(figure)
    return files


def draw(results: Mapping[str, Sequence[Mapping[str, Any]]], out: Path) -> list[Path]:
    """Draw all figures from LSD-C's results, by data set and seed; confusion matrices show the first seed."""
    files = two_moons(out)
    for name, found in results.items():
        files += confusions(found[0], out, name) + curves(found, out, name)
    return files
