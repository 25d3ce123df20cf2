"""make bench: where the time goes, as ratios, each measured in one run. Under 20 minutes on two cores.

python benchmarks/bench.py [--only step pairs growth start-up processes fit peers] [--out benchmarks/results]
"""

import argparse
import json
import os
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

HERE = str(Path(__file__).resolve().parent)


def parts():
    """By name: functions that give rows; the imports are theirs, so that start-up is measured alone."""
    import growth
    import steps
    import whole

    return {
        "start-up": whole.startup,
        "step": steps.rows,
        "pairs": lambda: growth.pairs(HERE),
        "growth": lambda: growth.graph() + growth.clusters(),
        "processes": lambda: whole.processes(HERE),
        "fit": whole.fits,
        "peers": whole.peers,
    }


def table(rows):
    lines = ["| part | what | measured | against | ratio |", "|---|---|---|---|---|"]
    return "\n".join([*lines, *(f"| {r.part} | {r.what} | {r.value} | {r.against} | {r.ratio:.3f} |" for r in rows)])


def main():
    known = parts()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=known, default=list(known))
    parser.add_argument("--out", type=Path, default=Path(HERE) / "results")
    options = parser.parse_args()
    from measuring import hardware

    machine = hardware()
    rows, started = [], time.perf_counter()
    for name in options.only:
        print(f"{name} ...", file=sys.stderr, flush=True)
        rows += known[name]()
        machine["seconds of the benchmark"] = round(time.perf_counter() - started)
        machine["load at the end"] = ", ".join(f"{x:.1f}" for x in os.getloadavg())
        text = write(options.out, machine, rows)  # after each part: what was measured is not lost
    print(text)


def write(folder, machine, rows):
    """The table so far, as Markdown and as JSON."""
    date = datetime.now(UTC).strftime("%Y-%m-%d")
    text = "\n".join([f"# Benchmark of {date}", *(f"- {k}: {v}" for k, v in machine.items()), "", table(rows), ""])
    folder.mkdir(parents=True, exist_ok=True)
    content = {"date": date, "machine": machine, "rows": [r._asdict() for r in rows]}
    (folder / f"{date}-bench.json").write_text(json.dumps(content, indent=1) + "\n")
    (folder / f"{date}-bench.md").write_text(text)
    return text


if __name__ == "__main__":
    main()
