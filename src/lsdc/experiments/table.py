"""The rows of a table and how they are written: Markdown, LaTeX, JSON; the terminal shows the same columns."""

import json
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

from lsdc.errors import InputError
from lsdc.metrics import ari
from lsdc.runs.atomic import write_atomic

BASE = "kmeans"  # the baseline of every deep method
BELOW, BELOW_OWN = "below K-means", "below K-means on its own features"
Results = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Row:
    """The results of one method on one data set, a value for each seed; scores are fractions."""

    title: str  # of the data
    variant: str  # the method, or the paper's variant of it
    method: str  # as it is shown
    scores: Mapping[str, tuple[float, ...]]
    n: int  # of seeds
    alive: str
    seconds: tuple[float, ...]
    cpu_seconds: tuple[float, ...]  # of the seeds where they are known
    peak_mb: float | None
    deep: bool  # trained in epochs
    stability: float | None = None
    note: str = ""
    published: str = "-"
    points: tuple[tuple[float, float], ...] = ()  # seconds and what leads, of each seed that has it

    @property
    def leading(self) -> tuple[float, ...]:
        """What rows are ranked by: ACC, or without labels the silhouette on the inputs."""
        return tuple(value for _, value in self.points)

    @property
    def measured(self) -> str:
        """Mean ± standard deviation (n) of the accuracy, in per cent."""
        acc = [100 * value for value in self.scores.get("acc", ())]
        spread = f" ± {statistics.stdev(acc):.1f}" if len(acc) > 1 else ""
        return f"{statistics.fmean(acc):.1f}{spread} ({len(acc)})" if acc else "-"


def summarise(results: Results, variant: str, method: str = "", published: str = "-") -> Row:
    """The row of all seeds of one method on one data set."""
    results = sorted(results, key=lambda result: int(result["seed"]))
    names = dict.fromkeys(name for result in results for name in result["scores"])
    values = {name: tuple(r["scores"][name] for r in results if r["scores"].get(name) is not None) for name in names}
    leading = "acc" if "acc" in names else "silhouette_inputs"
    points = ((result["seconds"], result["scores"].get(leading)) for result in results)
    return Row(
        title=results[0].get("title", ""),
        variant=variant,
        method=method or variant,
        scores={name: found for name, found in values.items() if found},
        n=len(results),
        alive=f"{min(r['alive'] for r in results)}/{max(len(r['sizes']) for r in results)}",
        seconds=tuple(result["seconds"] for result in results),
        cpu_seconds=tuple(r["cpu_seconds"] for r in results if r.get("cpu_seconds") is not None),
        peak_mb=max((result["peak_mb"] for result in results if result.get("peak_mb")), default=None),
        deep=any(result["history"] for result in results),
        stability=stability([result["labels"].split() for result in results if result.get("labels")]),
        published=published,
        points=tuple((seconds, value) for seconds, value in points if value is not None),
    )


def stability(labels: Sequence[Sequence[str]]) -> float | None:
    """The mean ARI between the clusters of every two seeds; None for a single seed."""
    pairs = [ari(a, b) for a, b in combinations(labels, 2)]
    return statistics.fmean(pairs) if pairs else None


def noted(rows: Iterable[Row]) -> list[Row]:
    """The rows, with a note on deep methods that score below K-means on the inputs or on their own features."""
    rows = list(rows)
    bases = {row.title: statistics.fmean(row.leading) for row in rows if row.variant == BASE and row.leading}
    return [replace(row, note=_note(row, bases.get(row.title))) for row in rows]


def _note(row: Row, base: float | None) -> str:
    acc, own = row.scores.get("acc"), row.scores.get("kmeans_features_acc")
    if not row.deep or not acc:
        return ""
    if base is not None and statistics.fmean(acc) < base:
        return BELOW
    return BELOW_OWN if own and statistics.fmean(acc) < statistics.fmean(own) else ""


def below(rows: Sequence[Row]) -> list[str]:
    """The notes as separate lines, where a table has no room for them."""
    methods = {note: [row.method for row in rows if row.note == note] for note in (BELOW, BELOW_OWN)}
    return [f"{note}: {', '.join(found)}" for note, found in methods.items() if found]


def _mean(values: Sequence[float], digits: int = 2) -> str:
    return f"{statistics.fmean(values):.{digits}f}" if values else "-"


def _percent(shares: Sequence[float]) -> str:
    return _mean([100 * share for share in shares], digits=1)


def _time(seconds: Sequence[float]) -> str:
    return _mean(seconds, digits=1 if seconds and statistics.fmean(seconds) < 10 else 0)


COLUMNS: dict[str, Callable[[Row], str]] = {
    "data": lambda row: row.title,
    "method": lambda row: row.method,
    "ACC % (n)": lambda row: row.measured,
    "worst": lambda row: f"{100 * min(row.scores['acc']):.1f}",
    "NMI": lambda row: _percent(row.scores["nmi"]),
    "ARI": lambda row: _percent(row.scores["ari"]),
    "silhouette, own (n)": lambda row: f"{_mean(row.scores.get('silhouette', ()))} ({row.n})",
    "on inputs": lambda row: _mean(row.scores.get("silhouette_inputs", ())),
    "stability": lambda row: "-" if row.stability is None else f"{row.stability:.2f}",
    "alive": lambda row: row.alive,
    "s": lambda row: _time(row.seconds),
    "CPU s": lambda row: _time(row.cpu_seconds),
    "MB": lambda row: "-" if row.peak_mb is None else f"{row.peak_mb:.0f}",
    "published": lambda row: row.published,
    "note": lambda row: row.note,
}
COST = ("alive", "s", "CPU s", "MB")
SCORED = ("method", "ACC % (n)", "worst", "NMI", "ARI", *COST)
UNLABELLED = ("method", "silhouette, own (n)", "on inputs", "stability", *COST)
LEGENDS = {
    "ACC % (n)": "ACC, worst seed, NMI and ARI in per cent, mean ± standard deviation over n seeds",
    "stability": "no labels: mean silhouette of the clusters on the method's own features and on the inputs (-1 to 1), "
    "and the mean ARI between seeds (1: the same clusters)",
    "alive": "alive: clusters in the worst seed; s and CPU s: seconds a seed, one thread; MB: peak memory of its "
    "process; -: not measured",
}


def cells(rows: Iterable[Row], columns: Sequence[str]) -> list[list[str]]:
    """The texts of the cells, row by row."""
    return [[COLUMNS[name](row) for name in columns] for row in rows]


def markdown(title: str, columns: Sequence[str], rows: Sequence[Row], notes: Iterable[str] = ()) -> str:
    """The table in Markdown."""
    lines = [columns, ["---"] * len(columns), *cells(rows, columns)]
    legend = "; ".join(text for name, text in LEGENDS.items() if name in columns)
    body = (f"| {' | '.join(line)} |" for line in lines)
    return "\n".join([f"**{title}**", "", *body, "", f"{legend}.", *notes]) + "\n"


def latex(title: str, columns: Sequence[str], rows: Sequence[Row], notes: Iterable[str] = ()) -> str:
    """The table in LaTeX (booktabs)."""
    head, *body = (" & ".join(map(_tex, line)) + r" \\" for line in [columns, *cells(rows, columns)])
    words = "".join("l" if name in ("data", "method") else "r" for name in columns)
    return "\n".join(
        [
            f"% {title}; needs \\usepackage{{booktabs}}",
            *(f"% {note}" for note in notes),
            rf"\begin{{tabular}}{{{words}}}",
            r"  \toprule",
            f"  {head}",
            r"  \midrule",
            *(f"  {line}" for line in body),
            r"  \bottomrule",
            r"\end{tabular}",
            "",
        ]
    )


def _tex(text: str) -> str:
    return text.replace("%", r"\%").replace("_", r"\_").replace("&", r"\&").replace("±", r"$\pm$")


def as_json(row: Row) -> dict[str, Any]:
    """A row as JSON holds it."""
    known = {name: value for name, value in vars(row).items() if name != "points"}  # which are in scores and seconds
    return {**known, "scores": dict(row.scores), "measured": row.measured}


def write(
    place: Path, title: str, columns: Sequence[str], rows: Sequence[Row], notes: Iterable[str], facts: dict[str, Any]
) -> None:
    """Write the table as PLACE.md, .tex and .json, the latter with further facts."""
    notes = list(notes)
    content = {"title": title, "rows": [as_json(row) for row in rows], **facts}
    texts = {
        ".json": json.dumps(content, indent=1) + "\n",
        ".md": markdown(title, columns, rows, notes),
        ".tex": latex(title, columns, rows, notes),
    }
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        for suffix, text in texts.items():
            write_atomic(place.with_name(place.name + suffix), text.encode(errors="backslashreplace"))
    except OSError as error:
        raise InputError(f"{place.parent}: cannot be written to ({error.strerror})") from None
