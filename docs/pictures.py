"""The pictures of how-it-works.md: python docs/pictures.py (needs matplotlib)."""

from pathlib import Path
from typing import Any

import torch
from sklearn.datasets import make_moons
from torch import Tensor

from lsdc.experiments.figures import BLUE, GREY, ORANGE, RED, STYLE, as_bytes, pyplot
from lsdc.functional import nearest, walk

N, BATCH, K = 160, 24, 5


def dots(axis: Any, f: Tensor, y: Tensor, title: str) -> None:
    """Samples in the colours of their classes, which no method sees."""
    axis.scatter(*f.T, s=9, c=[BLUE if one else ORANGE for one in y.tolist()], linewidths=0, zorder=3)
    axis.set_title(title)
    axis.set_axis_off()
    axis.set_aspect("equal")


def edges(axis: Any, f: Tensor, y: Tensor, neighbours: Tensor) -> None:
    """Links to neighbours; those between classes are red."""
    start = torch.arange(len(f))[:, None].expand_as(neighbours)
    right = y[start] == y[neighbours]
    lines = torch.stack([f[start], f[neighbours]], 2)
    for chosen, colour, width in ((right, GREY, 0.6), (~right, RED, 1.1)):
        x, z = lines[chosen].permute(2, 1, 0)  # a path a colour: from, to, from, to ...
        axis.plot(x, z, color=colour, linewidth=width, zorder=1)


def main() -> None:
    """Draw them."""
    plt = pyplot()
    X, labels = make_moons(N, noise=0.11, random_state=3)
    f, y = torch.from_numpy(X).float(), torch.from_numpy(labels)
    rng = torch.Generator().manual_seed(1)
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(1, 3, figsize=(9.6, 2.6), layout="constrained")
        some = torch.randperm(N, generator=rng)[:BATCH]
        dots(axes[0], f[some], y[some], f"neighbours in a batch of {BATCH}")
        edges(axes[0], f[some], y[some], nearest(f[some], K).indices)
        neighbours = nearest(f, K).indices
        dots(axes[1], f, y, f"neighbours among all {N}")
        edges(axes[1], f, y, neighbours)
        dots(axes[2], f, y, "walks of one to three steps: pairs")
        start = torch.randperm(N, generator=rng)[:14]
        end = walk(neighbours, start, torch.rand(len(start), 4, generator=rng))
        for i, j in zip(start.tolist(), end.tolist(), strict=True):
            axes[2].annotate("", f[j].tolist(), f[i].tolist(), arrowprops={"arrowstyle": "-|>", "mutation_scale": 7})
        target = Path(__file__).parent / "pictures" / "graph.svg"
        target.write_bytes(as_bytes(figure, "svg", {"Date": None}))


if __name__ == "__main__":
    main()
