"""The pictures of how-it-works.md: python docs/pictures.py (needs matplotlib)."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.datasets import load_digits, make_moons
from torch import Tensor

from lsdc.experiments.figures import BLUE, GREY, ORANGE, RED, STYLE, as_bytes, moons_edges, pyplot
from lsdc.functional import mix_targets, nearest, ricap, walk

HERE = Path(__file__).parent / "pictures"
N, BATCH, K = 160, 24, 5
ARROW = {
    "arrowstyle": "-|>",
    "mutation_scale": 7,
    "lw": 0.9,
    "shrinkA": 0,
    "shrinkB": 0,
    "connectionstyle": "arc3,rad=.3",
}
SIDE = 32  # pixels of a digit that is composed
SHOWN = (0, 1, 2, 0, 1, 2)  # their classes
TINTS = ((0.45, 0.7, 1.0), (1.0, 0.7, 0.35), (0.5, 0.9, 0.55))
SEED = 78  # of a split that cuts near the middle: most cut near an edge


def save(figure: Any, name: str) -> None:
    """A figure that is the same file every time."""
    (HERE / name).write_bytes(as_bytes(figure, "svg", {"Date": None}))


def dots(axis: Any, f: Tensor, y: Tensor, title: str, size: int = 9) -> None:
    """Samples in the colours of their classes, which no method sees."""
    axis.scatter(*f.T.numpy(), s=size, c=[BLUE if one else ORANGE for one in y.tolist()], linewidths=0, zorder=3)
    axis.set_title(title)
    axis.set_axis_off()
    axis.set_aspect("equal")


def edges(axis: Any, f: Tensor, y: Tensor, pairs: Tensor, width: float = 0.6) -> int:
    """Links between samples, those between classes in red; how many those are."""
    right = y[pairs[:, 0]] == y[pairs[:, 1]]
    for chosen, colour, broad in ((right, GREY, width), (~right, RED, 1.8 * width)):
        ends = f[pairs[chosen]]  # (edges, 2, 2)
        gaps = torch.full_like(ends[:, :1], torch.nan)
        x, z = torch.cat([ends, gaps], 1).reshape(-1, 2).T  # one path a colour: from, to, gap, from, to, gap
        axis.plot(x.numpy(), z.numpy(), color=colour, linewidth=broad, zorder=1)
    return int((~right).sum())


def neighbour_pairs(f: Tensor) -> Tensor:
    """Each sample and each of its neighbours."""
    neighbours = nearest(f, K).indices
    return torch.stack([torch.arange(len(f))[:, None].expand_as(neighbours), neighbours], 2).reshape(-1, 2)


def labelings(plt: Any) -> None:
    """What the four labelings of the paper connect when each may connect 650 pairs."""
    f, y, found = moons_edges()
    figure, axes = plt.subplots(1, 4, figsize=(11, 2.5), layout="constrained")
    for axis, (name, pairs) in zip(axes, found.items(), strict=True):
        wrong = edges(axis, f, torch.from_numpy(y), pairs, 0.45)
        dots(axis, f, torch.from_numpy(y), f"{name}: {wrong} of {len(pairs)} wrong", 6)
    save(figure, "labelings.svg")


def graph(plt: Any) -> None:
    """Neighbours in a batch, among all samples, and pairs that walks find."""
    X, labels = make_moons(N, noise=0.11, random_state=3)
    f, y = torch.from_numpy(X).float(), torch.from_numpy(labels)
    rng = torch.Generator().manual_seed(1)
    figure, axes = plt.subplots(1, 3, figsize=(9.6, 2.6), layout="constrained")
    some = torch.randperm(N, generator=rng)[:BATCH]
    dots(axes[0], f[some], y[some], f"neighbours in a batch of {BATCH}")
    edges(axes[0], f[some], y[some], neighbour_pairs(f[some]))
    dots(axes[1], f, y, f"neighbours among all {N}")
    edges(axes[1], f, y, neighbour_pairs(f))
    dots(axes[2], f, y, "walks of one to three steps: pairs")
    edges(axes[2], f, y, neighbour_pairs(f), 0.25)
    start = torch.randperm(N, generator=rng)[:16]
    end = walk(nearest(f, K).indices, start, torch.rand(len(start), 4, generator=rng))
    for i, j in zip(start.tolist(), end.tolist(), strict=True):
        axes[2].annotate("", f[j].tolist(), f[i].tolist(), arrowprops=ARROW, zorder=4)
    save(figure, "graph.svg")


def tinted_digits() -> tuple[Tensor, Tensor]:
    """A few digits, larger, each class in a colour of its own so that parts of them are known again."""
    digits = load_digits()
    rows = [np.flatnonzero(digits.target == c)[3 + i] for i, c in enumerate(SHOWN)]
    x = torch.from_numpy(digits.images[rows] / 16).float()[:, None]
    x = torch.nn.functional.interpolate(x, (SIDE, SIDE), mode="bilinear")
    y = torch.tensor(SHOWN)
    return x * torch.tensor(TINTS)[y][:, :, None, None], y


def matrix(figure: Any, place: Any, values: Tensor, rows: Tensor, columns: Tensor, title: str) -> None:
    """Labels of pairs, with the images they are about beside and above."""
    n = len(rows)
    grid = place.subgridspec(n + 1, n + 1, wspace=0.06, hspace=0.06)
    for i in range(n):
        for cell, image in ((grid[0, i + 1], columns[i]), (grid[i + 1, 0], rows[i])):
            axis = figure.add_subplot(cell)
            axis.imshow(image.permute(1, 2, 0).clamp(0, 1).numpy())
            axis.set_axis_off()
    axis = figure.add_subplot(grid[1:, 1:])
    axis.imshow(values.numpy(), cmap="Blues", vmin=0, vmax=1.3, aspect="auto")
    for (i, j), value in np.ndenumerate(values.numpy()):
        if value:
            said, ink = f"{value:.2f}".rstrip("0").rstrip("."), "w" if value > 0.6 else "k"
            axis.text(j, i, said, ha="center", va="center", fontsize=8, color=ink)
    axis.set_xticks([])
    axis.set_yticks([])
    axis.set_xlabel(title)


def composition(plt: Any) -> None:
    """Labels of plain pairs, and those of pairs of a plain and a composed sample."""
    x, y = tinted_digits()
    A = (y[:, None] == y).float()
    (composed,), sigma, w = ricap((x,), torch.Generator().manual_seed(SEED))
    figure = plt.figure(figsize=(9.6, 4.4))
    columns = figure.add_gridspec(1, 2, wspace=0.12)
    matrix(figure, columns[0], A, x, x, "A: which samples belong together")
    shares = ", ".join(f"{share:.2f}" for share in w.tolist())
    matrix(figure, columns[1], mix_targets(A, sigma, w), x, composed, f"Y: targets with RICAP, shares {shares}")
    save(figure, "ricap.svg")


def main() -> None:
    """Draw them."""
    plt = pyplot()
    with plt.rc_context(STYLE):
        for draw in (labelings, composition, graph):
            draw(plt)


if __name__ == "__main__":
    main()
