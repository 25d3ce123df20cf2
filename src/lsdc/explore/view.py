"""A session as the page sees it: plain values for JSON and bytes."""

import struct
from pathlib import Path
from typing import Any

import numpy as np

from lsdc.explore.edits import OUTLIER, State
from lsdc.explore.session import Session

TYPICAL = 8  # samples shown per cluster


def state_of(session: Session) -> dict[str, Any]:
    """The clusters with their typical samples, what can be undone, and what is still being computed."""
    version, history = session.now
    state = history.state
    return {
        "version": version,
        "title": Path(session.config["data"].get("source") or session.run.path).name,
        "run": str(session.run.path),
        "n": len(state.labels),
        "kind": session.samples.kind,
        "clusters": _clusters(session, state),
        "outliers": int((state.labels == OUTLIER).sum()),
        "undo": history.done[-1].in_words if history.done else None,
        "redo": history.undone[-1].in_words if history.undone else None,
        "data": {"is": session.data.phase, "why": session.data.why},
        "map": {"is": session.map.phase, "why": session.map.why},
    }


def _clusters(session: Session, state: State) -> list[dict[str, Any]]:
    """Every cluster: its name, size, mean confidence and most typical samples."""
    ordered = session.typical[np.argsort(state.labels[session.typical], kind="stable")]
    starts = np.searchsorted(state.labels[ordered], state.clusters)
    stops = np.searchsorted(state.labels[ordered], state.clusters, side="right")
    result = []
    for cluster, start, stop in zip(state.clusters, starts, stops, strict=True):
        rows = ordered[start:stop]
        typical = [
            {"i": i, "id": session.samples.ids[i], "text": session.samples.text(i, 120)}
            for i in rows[:TYPICAL].tolist()
        ]
        result.append(
            {
                "cluster": cluster,
                "name": state.names.get(cluster, ""),
                "size": len(rows),
                "confidence": float(session.confidence[rows].mean()) if len(rows) else None,
                "typical": typical,
            }
        )
    return result


def tile(session: Session, i: int) -> dict[str, Any]:
    """One sample, as the grid shows it."""
    return {
        "i": i,
        "id": session.samples.ids[i],
        "cluster": int(session.state.labels[i]),
        "confidence": round(float(session.confidence[i]), 4),
        "text": session.samples.text(i),
    }


def packed_labels(session: Session) -> bytes:
    """The version (32 bits), then cluster (32 bits) and confidence (8 bits) of all samples; little-endian."""
    version, history = session.now
    confidence = np.round(session.confidence * 255).astype("u1").tobytes()
    return struct.pack("<i", version) + history.state.labels.astype("<i4").tobytes() + confidence


def packed_places(places: np.ndarray) -> bytes:
    """Positions on the map: x and y from 0 to 65,535, as little-endian 16-bit integers."""
    return (places * 65535).astype("<u2").tobytes()
