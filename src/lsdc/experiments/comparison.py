"""The table of a comparison: one row a method, with labels by their accuracy, without by what can be said then."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from lsdc.experiments.tables import md_line, mean, per_cent, tex
from lsdc.metrics import ari

BELOW, BELOW_OWN = "below K-means", "below K-means on its own features"


@dataclass(frozen=True)
class Row:
    """The results of one method, a value for each seed; ``deep`` is a method that was trained in epochs."""

    method: str
    scores: Mapping[str, tuple[float, ...]]
    alive: str
    seconds: tuple[float, ...]
    peak_mb: float | None
    deep: bool
    stability: float | None = None
    note: str = ""
    points: tuple[tuple[float, float], ...] = ()  # seconds and what leads, of each seed that has it

    @property
    def leading(self) -> tuple[float, ...]:
        """What rows are sorted by: ACC, or where there are no labels the silhouette that all can be compared by."""
        return tuple(value for _, value in self.points)


def summarise(results: Iterable[Mapping[str, Any]]) -> list[Row]:
    """The rows, the best first."""
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for result in results:
        groups.setdefault(result["method"], []).append(result)
    rows = [_row(method, group) for method, group in groups.items()]
    base = next((row for row in rows if row.method == "kmeans"), None)
    noted = [_noted(row, base) for row in rows]
    return sorted(noted, key=lambda row: -mean(row.leading) if row.leading else float("inf"))


def _row(method: str, results: Sequence[Mapping[str, Any]]) -> Row:
    names = dict.fromkeys(name for result in results for name in result["scores"])
    values = {name: tuple(r["scores"][name] for r in results if r["scores"].get(name) is not None) for name in names}
    peaks = [result["peak_mb"] for result in results if result.get("peak_mb")]
    leading = "acc" if "acc" in names else "silhouette_inputs"
    points = ((result["seconds"], result["scores"].get(leading)) for result in results)
    return Row(
        method,
        {name: found for name, found in values.items() if found},
        f"{min(result['alive'] for result in results)}/{max(len(result['sizes']) for result in results)}",
        tuple(result["seconds"] for result in results),
        max(peaks, default=None),
        any(result["history"] for result in results),
        stability([result["labels"].split() for result in results if "labels" in result]),
        points=tuple((seconds, value) for seconds, value in points if value is not None),
    )


def stability(labels: Sequence[Sequence[str]]) -> float | None:
    """The mean ARI between the clusters of every two seeds; none for a single one."""
    pairs = [ari(a, b) for a, b in combinations(labels, 2)]
    return sum(pairs) / len(pairs) if pairs else None


def _noted(row: Row, base: Row | None) -> Row:
    """Say of a deep method that it ends below K-means, on the inputs or on the features it learned."""
    acc, own = row.scores.get("acc"), row.scores.get("kmeans_features_acc")
    note = ""
    if row.deep and acc and base and base.leading and mean(acc) < mean(base.leading):
        note = BELOW
    elif row.deep and acc and own and mean(acc) < mean(own):
        note = BELOW_OWN
    return Row(**{**vars(row), "note": note})


def below(rows: Sequence[Row]) -> list[str]:
    """The notes as lines of their own, where a table has no room for them."""
    methods = {note: [row.method for row in rows if row.note == note] for note in (BELOW, BELOW_OWN)}
    return [f"{note}: {', '.join(found)}" for note, found in methods.items() if found]


def plain(row: Row) -> dict[str, Any]:
    """A row as JSON holds it."""
    known = {name: value for name, value in vars(row).items() if name != "points"}  # which are in scores and seconds
    return {**known, "scores": dict(row.scores)}


LABELLED = ("method", "ACC % (n)", "worst", "NMI", "ARI", "alive", "s", "MB", "note")
UNLABELLED = ("method", "silhouette, own (n)", "on inputs", "stability", "alive", "s", "MB")
LEGENDS = {
    True: "ACC, worst seed, NMI and ARI in per cent, mean ± standard deviation over n seeds",
    False: "no labels: mean silhouette of the clusters on the method's own features and on the inputs (-1 to 1), and "
    "the mean ARI between seeds (1: the same clusters)",
}
COMMON = "alive: clusters in the worst seed; s: seconds a seed, one thread; MB: peak memory of its process"


def heads(labelled: bool) -> tuple[str, ...]:
    """The names of the columns."""
    return LABELLED if labelled else UNLABELLED


def fields(row: Row, labelled: bool) -> tuple[str, ...]:
    """What stands under ``heads``."""
    seconds = sum(row.seconds) / len(row.seconds)
    memory = "-" if row.peak_mb is None else f"{row.peak_mb:.0f}"
    common = (row.alive, f"{seconds:.1f}" if seconds < 10 else f"{seconds:.0f}", memory)
    if labelled:
        acc = row.scores["acc"]
        others = (f"{mean(row.scores[name]):.1f}" for name in ("nmi", "ari"))
        return (row.method, per_cent(acc), f"{100 * min(acc):.1f}", *others, *common, row.note)
    own, inputs = (_fraction(row.scores.get(name, ())) for name in ("silhouette", "silhouette_inputs"))
    stable = "-" if row.stability is None else f"{row.stability:.2f}"
    return (row.method, f"{own} ({len(row.seconds)})", inputs, stable, *common)


def _fraction(values: Sequence[float]) -> str:
    return f"{sum(values) / len(values):.2f}" if values else "-"


def markdown(title: str, rows: Sequence[Row], labelled: bool, notes: Iterable[str]) -> str:
    """The table for people who read Markdown."""
    names = heads(labelled)
    lines = [f"**{title}**", "", md_line(names), md_line(["---"] * len(names))]
    legend = f"{LEGENDS[labelled]}; {COMMON}."
    return "\n".join([*lines, *(md_line(fields(row, labelled)) for row in rows), "", legend, *notes]) + "\n"


def latex(title: str, rows: Sequence[Row], labelled: bool, notes: Iterable[str]) -> str:
    """The table for a paper (booktabs)."""
    names = heads(labelled)
    body = [" & ".join(map(tex, fields(row, labelled))) + r" \\" for row in rows]
    return "\n".join(
        [
            f"% {title}; needs \\usepackage{{booktabs}}",
            *(f"% {note}" for note in notes),
            rf"\begin{{tabular}}{{l{'r' * (len(names) - 1)}}}",
            r"  \toprule",
            f"  {' & '.join(map(tex, names))} \\\\",
            r"  \midrule",
            *(f"  {line}" for line in body),
            r"  \bottomrule",
            r"\end{tabular}",
            "",
        ]
    )
