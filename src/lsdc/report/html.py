"""A run as one HTML page without scripts or links: sizes, confidence, curves, and what is in each cluster."""

import base64
import io
from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np
from PIL import Image

from lsdc.data.datasets import Dataset
from lsdc.data.sources import raw
from lsdc.metrics import Scores, cluster_sizes

EXAMPLES = 12  # shown of each cluster, the most confident first
TITLES = {"acc": "ACC", "nmi": "NMI", "ari": "ARI", "confident_share": "confident", "confident_acc": "their ACC"}
STYLE = """
:root { color-scheme: light dark; --ink: light-dark(#1d2330, #e8eaf0); --soft: light-dark(#667085, #98a2b3);
  --line: light-dark(#e4e7ec, #344054); --bar: light-dark(#3b6fd4, #7aa2f0); --page: light-dark(#fff, #12161f); }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--page);
  max-width: 62rem; margin: 2rem auto; padding: 0 1.2rem; }
h1 { font-size: 1.6rem; margin: 0 } h2 { font-size: 1.1rem; margin: 2.2rem 0 .6rem }
.soft { color: var(--soft) } .num { text-align: right; font-variant-numeric: tabular-nums }
table { border-collapse: collapse } td, th { padding: .25rem .9rem .25rem 0; text-align: left; vertical-align: middle }
th { color: var(--soft); font-weight: 500; border-bottom: 1px solid var(--line) } th.num { text-align: right }
.bar { height: .8rem; background: var(--bar); border-radius: 2px; min-width: 1px }
.row { display: flex; gap: 1rem; padding: .5rem 0; border-top: 1px solid var(--line) }
.row > b { flex: 0 0 5.5rem } .row img { width: 48px; height: 48px; margin: 1px; image-rendering: pixelated }
.row ul { margin: 0; padding-left: 1.1rem } .curves { display: flex; flex-wrap: wrap; gap: 1.5rem }
figure { margin: 0 } figcaption { color: var(--soft); font-size: .85rem } svg { display: block; overflow: visible }
polyline { fill: none; stroke: var(--bar); stroke-width: 2; vector-effect: non-scaling-stroke }
rect { fill: none; stroke: var(--line) }
"""


def page(
    title: str,
    config: dict[str, Any],
    history: Sequence[dict[str, Any]],
    labels: np.ndarray,
    confidence: np.ndarray,
    dataset: Dataset | None,
    scores: Scores | None,
) -> str:
    """The whole page; names and texts are escaped."""
    n_clusters = max(config["params"]["n_clusters"] or 0, int(labels.max()) + 1)
    facts = f"{len(labels):,} samples · {n_clusters} clusters · {escape(str(config['method']))} · seed {config['seed']}"
    parts = [
        f"<h1>{escape(title)}</h1><p class=soft>{facts} · {(confidence > 0.9).mean():.0%} confident (above 0.9)</p>"
    ]
    if scores:
        parts.append(_scores(scores))
    parts.append("<h2>Clusters</h2>" + _sizes(labels, confidence, n_clusters))
    retries = [f"{r['stage']}: {why}" for r in _last_of_stages(history) for why in r.get("retries", ())]
    if retries:
        rows = "".join(f"<li>{escape(line)}</li>" for line in retries)
        note = "The training went back to the last sound epoch and on from there with smaller steps:"
        parts.append(f"<h2>What went wrong on the way</h2><p>{note}</p><ul>{rows}</ul>")
    clustering = [record for record in history if record.get("stage") == "clustering"]
    if len(clustering) > 1:
        parts.append("<h2>Training</h2><div class=curves>" + _curves(clustering, n_clusters) + "</div>")
    if dataset is not None:
        parts.append("<h2>Most confident samples</h2>" + _examples(dataset, labels, confidence, n_clusters))
    body = "\n".join(parts)
    head = f"<meta charset=utf-8><meta name=viewport content='width=device-width'><title>{escape(title)}</title>"
    return f"<!doctype html><html lang=en><head>{head}<style>{STYLE}</style></head><body>{body}</body></html>\n"


def _last_of_stages(history: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return list({str(record.get("stage")): record for record in history}.values())


def _scores(scores: Scores) -> str:
    heads, cells = "", ""
    for name, value in scores._asdict().items():
        heads += f"<th class=num>{TITLES[name]}</th>"
        cells += f"<td class=num>{'-' if np.isnan(value) else f'{value:.3f}'}</td>"
    return f"<h2>Against the labels</h2><table><tr>{heads}</tr><tr>{cells}</tr></table>"


def _sizes(labels: np.ndarray, confidence: np.ndarray, n_clusters: int) -> str:
    sizes = cluster_sizes(labels, n_clusters)
    rows = ""
    for cluster, size in enumerate(sizes):
        mine = confidence[labels == cluster]
        mean = f"{mine.mean():.2f}" if size else "-"
        width = 16 * size / max(sizes.max(), 1)
        rows += f"<tr><td>{cluster}<td class=num>{size:,}<td><div class=bar style='width:{width:.2f}rem'></div>"
        rows += f"<td class=num>{size / len(labels):.1%}<td class=num>{mean}</tr>"
    heads = "<tr><th>cluster<th class=num>samples<th><th class=num>share<th class=num>mean confidence</tr>"
    return f"<table>{heads}{rows}</table>"


def _curves(history: Sequence[dict[str, Any]], n_clusters: int) -> str:
    wanted = {
        "loss": ("loss", 0),
        "alive": (f"clusters alive of {n_clusters}", n_clusters),
        "confident": ("confident", 1),
    }
    drawn = {key: [r[key] for r in history if isinstance(r.get(key), (int, float))] for key in wanted}
    return "".join(_curve(drawn[key], *about) for key, about in wanted.items() if len(drawn[key]) > 1)


def _curve(values: list[float], name: str, most: float) -> str:
    low, high = min(0.0, *values), max(most, *values)
    points = " ".join(
        f"{240 * i / (len(values) - 1):.1f},{80 - 80 * (v - low) / ((high - low) or 1):.1f}"
        for i, v in enumerate(values)
    )
    caption = f"{escape(name)}: {values[0]:.3g} → {values[-1]:.3g}"
    drawing = f"<svg width=240 height=80><rect width=240 height=80 /><polyline points='{points}' /></svg>"
    return f"<figure>{drawing}<figcaption>{caption}, {len(values)} epochs</figcaption></figure>"


def _examples(dataset: Dataset, labels: np.ndarray, confidence: np.ndarray, n_clusters: int) -> str:
    rows = ""
    for cluster in range(n_clusters):
        mine = np.flatnonzero(labels == cluster)
        best = mine[np.argsort(-confidence[mine], kind="stable")][:EXAMPLES]
        rows += f"<div class=row><b>{cluster}</b><div>{_samples(dataset, best) if len(best) else 'empty'}</div></div>"
    return rows


def _samples(dataset: Dataset, rows: np.ndarray) -> str:
    if isinstance(dataset.X, list):
        return "<ul>" + "".join(f"<li>{escape(dataset.X[i][:200])}</li>" for i in rows) + "</ul>"
    names = [str(dataset.ids[i] if dataset.ids is not None else i) for i in rows]
    if dataset.X.ndim <= 2:
        return escape(", ".join(names))
    pictures = raw(dataset.X, rows)
    return "".join(
        f"<img alt='' title='{escape(name)}' src='{_png(picture)}'>"
        for name, picture in zip(names, pictures, strict=True)
    )


def _png(picture: np.ndarray) -> str:
    """An image (c, h, w) of any range as a data address."""
    values = picture.transpose(1, 2, 0).astype(np.float64)
    if picture.dtype != np.uint8:
        values = (values - values.min()) / ((values.max() - values.min()) or 1) * 255
    image = Image.fromarray(np.squeeze(values.astype(np.uint8)))
    image.thumbnail((96, 96))
    stream = io.BytesIO()
    image.save(stream, "PNG")
    return f"data:image/png;base64,{base64.b64encode(stream.getvalue()).decode()}"
