"""Curves and bars as coordinates in a drawing of 320 x 150, ready for a template."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

WIDTH, HEIGHT = 320.0, 150.0


@dataclass(frozen=True)
class Curve:
    """A line and what its axes say."""

    title: str
    points: str
    bottom: str
    top: str
    first: str
    last: str
    alt: str


def curve(
    title: str, x: ArrayLike, y: ArrayLike, ends: tuple[str, str], span: tuple[float, float] | None = None
) -> Curve:
    """A line through (x, y); ``span`` is the range of y if y are shares, otherwise it follows from y."""
    x, y = np.asarray(x, float), np.asarray(y, float)
    low, high = span or (float(y.min()), float(y.max()))
    across = (x - x.min()) / ((x.max() - x.min()) or 1) * WIDTH
    up = HEIGHT - np.clip((y - low) / ((high - low) or 1), 0, 1) * HEIGHT
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(across, up, strict=True))
    bottom, top = (f"{v:.0%}" if span else f"{v:.3g}" for v in (low, high))
    values = [f"{v:.0%}" if span else f"{v:.3g}" for v in (y[0], y[-1])]
    alt = f"{title}: from {values[0]} to {values[1]}"
    return Curve(title, points, bottom, top, *ends, alt)


@dataclass(frozen=True)
class Histogram:
    """Bars of counts over the confidences from 0 to 1."""

    heights: tuple[float, ...]
    alt: str


BINS = 20


def histogram(confidence: Sequence[float] | np.ndarray) -> Histogram:
    """The distribution of confidences; the tallest bar has height 1."""
    values = np.asarray(confidence, float)
    counts = np.histogram(values, BINS, (0, 1))[0]
    alt = f"Confidence from {values.min():.2f} to {values.max():.2f}, half above {np.median(values):.2f}"
    return Histogram(tuple((counts / max(counts.max(), 1)).round(3).tolist()), alt)
