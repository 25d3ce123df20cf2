"""What was read: shown at the start of a command, and stored as read.json in the run folder."""

import re
from dataclasses import asdict
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from lsdc.data.images import NO_IMAGE
from lsdc.data.reading import Dataset, listed, of_texts
from lsdc.data.sources import row_chunks, sample_shape

TAG = re.compile(r"</[a-z][a-z0-9]*>", re.IGNORECASE)
ROLES = ("features", "id", "label", "unused")


def about_reading(dataset: Dataset) -> list[str]:
    """How the columns of a file are used, what else was decided, and what was left out."""
    roles, notes = dataset.columns, list(dataset.notes)
    if roles:
        kind = "texts" if of_texts(dataset) else "features"
        named = [("id", roles.id), ("label", roles.label), ("not used", listed(roles.unused) or None)]
        others = "".join(f"; {role} {listed([name])}" for role, name in named if name is not None)
        notes.insert(0, f"columns: {kind} {listed(roles.features)}{others}")
    if of_texts(dataset) and _are_markup(dataset.X if isinstance(dataset.X, list) else dataset.samples):
        notes.append("most texts contain HTML tags, which are read as words; remove them first")
    if dataset.skipped:
        other = [name for name, why in dataset.skipped if why == NO_IMAGE]
        broken = [name for name, why in dataset.skipped if why != NO_IMAGE]
        if other:
            notes.append(f"left out, not named like images: {_counted(other, 'file')} ({listed(other, most=4)})")
        if broken:
            notes.append(f"left out, cannot be read: {_counted(broken, 'image')} ({listed(broken, most=4)})")
    return notes


def _counted(names: list[str], noun: str) -> str:
    return f"{len(names):,} {noun}{'s' * (len(names) > 1)}"


def _are_markup(texts: list[str]) -> bool:
    return 2 * sum(TAG.search(text) is not None for text in texts) > len(texts)


def summary(dataset: Dataset) -> dict[str, Any]:
    """The content of read.json: what was read, how, and what is odd about it."""
    X = dataset.X
    figures = _of_texts(X) if isinstance(X, list) else _of_sparse(X) if sp.issparse(X) else _of_array(X)
    roles = asdict(dataset.columns) if dataset.columns else None
    columns = {role: roles[role] for role in ROLES} if roles else None
    skipped = [{"file": name, "why": why} for name, why in dataset.skipped]
    return {**figures, "columns": columns, "notes": list(dataset.notes), "skipped": skipped}


def in_one_line(content: dict[str, Any]) -> str:
    """A summary in one line."""
    if content["kind"] == "texts":
        what = f"{content['n']:,} texts of {content['range'][0]:,} to {content['range'][1]:,} characters"
        zeros = f"{content['zeros']:.0%} of them empty"
    else:
        size = " x ".join(f"{length:,}" for length in content["shape"])
        low, high = content["range"]
        what = f"{content['n']:,} {content['kind']} of {size}, values from {low:g} to {high:g}"
        zeros = f"{content['zeros']:.0%} zeros"
    return f"read: {what}; {zeros}; exact duplicates: {content['duplicates']:,}"


def _of_texts(X: list[str]) -> dict[str, Any]:
    lengths = [len(text) for text in X]
    return {
        "kind": "texts",
        "n": len(X),
        "shape": [],
        "range": [min(lengths), max(lengths)],
        "zeros": sum(not text.strip() for text in X) / len(X),
        "duplicates": len(X) - len(set(X)),
    }


def _of_sparse(X: Any) -> dict[str, Any]:
    X = sp.csr_matrix(X).sorted_indices()
    ends, full = X.indptr, X.nnz == np.prod(X.shape)
    rows = {hash((X.indices[a:b].tobytes(), X.data[a:b].tobytes())) for a, b in pairwise(ends)}
    values = X.data if full else np.append(X.data, 0)
    return {
        "kind": "sparse vectors",
        "n": int(X.shape[0]),
        "shape": [int(X.shape[1])],
        "range": [float(values.min()), float(values.max())],
        "zeros": float(1 - np.count_nonzero(X.data) / np.prod(X.shape)),
        "duplicates": int(X.shape[0]) - len(rows),
    }


def _of_array(X: Any) -> dict[str, Any]:
    """Computed part by part, as the array may be larger than memory."""
    low, high, zeros, rows = np.inf, -np.inf, 0, set[int]()
    for part in (np.ascontiguousarray(X[chunk]) for chunk in row_chunks(X)):
        low, high = min(low, float(part.min())), max(high, float(part.max()))
        zeros += part.size - int(np.count_nonzero(part))
        rows.update(hash(row.tobytes()) for row in part)
    return {
        "kind": "images" if X.ndim > 2 else "dense vectors",
        "n": int(X.shape[0]),
        "shape": list(sample_shape(X)),
        "range": [low, high],
        "zeros": zeros / int(np.prod(X.shape)),
        "duplicates": int(X.shape[0]) - len(rows),
    }
