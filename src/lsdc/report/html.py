"""Pages from templates: everything from the data is escaped, and nothing is fetched."""

import base64
import hashlib
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

TEMPLATES = Path(__file__).with_name("templates")
GOLDEN = 137.508  # degrees between hues, so that no two are equal for any number of clusters
EVEN = 12  # clusters whose hues are spread evenly


def percent(share: float) -> str:
    """A share, formatted as in every command."""
    return f"{share:.0%}"


def portion(share: float) -> str:
    """A share of all samples; small ones do not round to 0 %."""
    return f"{share:.1%}" if 0 < share < 0.01 else percent(share)


def seconds(value: float) -> str:
    """A duration for people."""
    if value < 90:
        return f"{value:.0f} s"
    return f"{value / 60:.0f} min" if value < 5400 else f"{value / 3600:.1f} h"


def figure(value: float) -> str:
    """Three decimals, or a dash if undefined."""
    return "-" if np.isnan(value) else f"{value:.3f}"


def amount(value: float) -> str:
    """Three digits that count, without powers of ten as long as a person can read it."""
    if not 1000 <= abs(value) < 1e7:
        return f"{value:.3g}"
    return f"{float(f'{value:.3g}'):,.0f}"


def breakable(name: str) -> Markup:
    """A name of a column that may be broken at its joints, instead of anywhere."""
    return Markup("<wbr>").join(re.split("(?<=[_/.-])", name))


def colour(cluster: int, n_clusters: int) -> str:
    """The custom properties from which the style mixes a cluster's colour."""
    hue, shade = colours(n_clusters)[cluster] if n_clusters <= EVEN else _golden(cluster)
    return f"--hue:{hue:g};--shade:{shade}"


def colours(n_clusters: int) -> list[tuple[float, int]]:
    """Hue and shade (-1, 0, 1) of every cluster."""
    if n_clusters > EVEN:
        return [_golden(k) for k in range(n_clusters)]
    return [(round((25 + 360 * k / n_clusters) % 360, 1), (-1, 1)[k % 2]) for k in range(n_clusters)]


def _golden(cluster: int) -> tuple[float, int]:
    return round((25 + GOLDEN * cluster) % 360, 1), cluster % 3 - 1


@cache
def _environment() -> Environment:
    result = Environment(
        loader=PackageLoader("lsdc.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    result.filters |= {
        "percent": percent,
        "portion": portion,
        "seconds": seconds,
        "figure": figure,
        "amount": amount,
        "breakable": breakable,
    }
    result.globals["colour"] = colour
    return result


def rendered(template: str, **content: Any) -> bytes:
    """A page; its security policy forbids all scripts but its own, and all network access."""
    style, script = ((TEMPLATES / name).read_text(encoding="utf-8") for name in ("style.css", "script.js"))
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    text = _environment().get_template(template).render(style=style, script=script, digest=digest, **content)
    return text.encode(errors="backslashreplace")  # file names need not be UTF-8
