"""make bench: where the time goes, as ratios, each measured in one run. Under 20 minutes on two cores.

    python benchmarks/bench.py [--only start-up step ...] [--small] [--peers-python PYTHON] [--minutes 19]

Results of a day are one file; a part that is run again replaces what it said before. Parts that would begin after
``--minutes`` are left out, and said. ``--small`` tries every part with tiny sizes, to see that it runs.
"""

import argparse
import json
import os
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

HERE = str(Path(__file__).resolve().parent)


def parts(options):
    """By name: functions that give rows; the imports are theirs, so that start-up is measured alone."""
    import gloo
    import growth
    import peers
    import steps
    import time_to_quality
    import whole

    small = options.small
    return {
        "start-up": lambda: whole.startup(small),
        "step": lambda: steps.rows(small),
        "pairs": lambda: growth.pairs(HERE, small),
        "processes": lambda: gloo.rows(HERE, small),
        "fit": lambda: whole.fits(small),
        "predict": lambda: whole.prediction(small),
        "peers": lambda: peers.rows(options.peers_python, small),
        "quality": lambda: time_to_quality.rows(small),
        "growth": lambda: growth.rows(small),
    }


PARTS = ("start-up", "step", "pairs", "processes", "fit", "predict", "peers", "quality", "growth")


def table(rows):
    lines = ["| part | what | measured | against | ratio |", "|---|---|---|---|---|"]
    for row in rows:
        ratio = "-" if row["ratio"] is None else f"{row['ratio']:.3f}"
        lines.append(f"| {row['part']} | {row['what']} | {row['value']} | {row['against']} | {ratio} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--minutes", type=float, default=19)
    parser.add_argument("--peers-python", default=sys.executable)
    parser.add_argument("--out", type=Path, default=Path(HERE) / "results")
    options = parser.parse_args()
    date = datetime.now(UTC).strftime("%Y-%m-%d")
    file = options.out / f"{date}-bench{'-small' if options.small else ''}.json"
    content = json.loads(file.read_text()) if file.exists() else {"date": date, "parts": {}}
    known, started = parts(options), time.perf_counter()
    from measuring import hardware

    for name in options.only:
        if time.perf_counter() - started > 60 * options.minutes:
            print(f"{name}: left out, {options.minutes:g} minutes are over", file=sys.stderr)
            continue
        print(f"{name} ...", file=sys.stderr, flush=True)
        machine, began = hardware(), time.perf_counter()
        rows = [row._asdict() for row in known[name]()]
        machine["seconds"] = round(time.perf_counter() - began)
        machine["load at the end"] = ", ".join(f"{x:.1f}" for x in os.getloadavg())
        content["parts"][name] = {"machine": machine, "rows": rows}
        text = write(file, content)  # after each part: what was measured is not lost
    print(text)


def write(file, content):
    """The table so far, as Markdown and as JSON."""
    measured = {name: content["parts"][name] for name in PARTS if name in content["parts"]}
    lines = [f"# Benchmark of {content['date']}", ""]
    for name, part in measured.items():
        lines.append(f"- {name}: " + ", ".join(f"{key} {value}" for key, value in part["machine"].items()))
    text = "\n".join([*lines, "", table([row for part in measured.values() for row in part["rows"]]), ""])
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({**content, "parts": measured}, indent=1) + "\n")
    file.with_suffix(".md").write_text(text)
    return text


if __name__ == "__main__":
    main()
