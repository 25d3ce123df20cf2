"""Large data through the command line: a million vectors in a memmap, thousands of photos, photos without an encoder.

``python benchmarks/scale.py [vectors] [decoding] [photos] [--out results/scale.json]``. Everything is made in a
temporary folder (``--n`` rows of 384 floats, 1.5 GB for a million; 5,000 JPEGs of 1 MP) and removed at the end. Memory
is what a process holds beyond mapped files (RssAnon of Linux, looked at ten times a second).
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from PIL import Image

from lsdc.runs.environment import environment

WIDTH, CLUSTERS, CHUNK = 384, 20, 50_000
SIDE = (1152, 896)  # 1.03 MP


def held(pid):
    """Megabytes that a process and its children hold beyond mapped files, and with them."""
    total = mapped = 0
    for one in [pid, *children(pid)]:
        try:
            lines = Path(f"/proc/{one}/status").read_text().splitlines()
        except OSError:
            continue
        sizes = {line.split(":")[0]: int(line.split()[1]) for line in lines if line.startswith("Rss")}
        total += sizes.get("RssAnon", 0) + sizes.get("RssShmem", 0)
        mapped += sizes.get("RssFile", 0)
    return total / 2**10, mapped / 2**10


def children(pid):
    try:
        found = [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []
    return [*found, *(one for child in found for one in children(child))]


def run(words, place):
    """Seconds and peak memory of a command, whose output is shown."""
    started, most = time.time(), (0.0, 0.0)
    env = {**os.environ, "LSDC_CACHE": str(place / "cache"), "LSDC_OFFLINE": "1"}
    process = subprocess.Popen([sys.executable, "-m", "lsdc", *map(str, words)], cwd=place, env=env)
    while process.poll() is None:
        most = tuple(map(max, most, held(process.pid)))
        time.sleep(0.1)
    if process.returncode:
        sys.exit(f"lsdc {words[0]} ended with {process.returncode}")
    return {"seconds": round(time.time() - started, 1), "mb": round(most[0]), "mapped_mb": round(most[1])}


def vectors(place, n):
    """A memmap of n x 384: fit, and predict all of it again."""
    centres = np.random.default_rng(0).normal(size=(CLUSTERS, WIDTH)).astype(np.float32)
    X = np.lib.format.open_memmap(place / "x.npy", "w+", np.float32, (n, WIDTH))
    y = np.empty(n, np.int64)
    for start in range(0, n, CHUNK):
        rng = np.random.default_rng(start + 1)
        stop = min(start + CHUNK, n)
        y[start:stop] = rng.integers(CLUSTERS, size=stop - start)
        X[start:stop] = centres[y[start:stop]] + rng.normal(0, 2, (stop - start, WIDTH))
    X.flush()
    del X
    np.save(place / "y.npy", y)
    fit = run(["fit", "x.npy", "-k", CLUSTERS, "--out", "run"], place)
    score = subprocess.run(
        [sys.executable, "-m", "lsdc", "evaluate", "run", "--labels", "y.npy", "--json"],
        capture_output=True,
        check=True,
        cwd=place,
    )
    acc = json.loads(score.stdout)["lsdc"]["acc"]
    predict = run(["predict", "run", "x.npy", "--out", "new.csv"], place)
    return {"n": n, "d": WIDTH, "fit": fit, "acc": acc, "predict": predict, "rate": round(n / predict["seconds"])}


def picture(i, side=SIDE):
    """A photo-like image: a gradient with a few soft discs, of its own colours."""
    rng = np.random.default_rng(i)
    y, x = np.mgrid[: side[1], : side[0]].astype(np.float32)
    values = np.outer(y[:, 0] / side[1], np.ones(side[0]))[:, :, None] * rng.uniform(0, 120, 3) + rng.uniform(0, 80, 3)
    for _ in range(4):
        far = np.hypot(x - rng.uniform(0, side[0]), y - rng.uniform(0, side[1]))
        values += 90 * np.exp(-far / rng.uniform(30, 200))[:, :, None] * rng.uniform(0, 1, 3)
    return Image.fromarray(values.clip(0, 255).astype(np.uint8))


def decoding(place, n):
    """n photos of 1 MP decoded into the array that is kept; every file differs, though few were drawn."""
    from lsdc.data.files import open_data

    folder = place / "photos"
    folder.mkdir()
    drawn = [picture(i) for i in range(20)]
    for i in range(n):
        drawn[i % 20].save(folder / f"{i:05d}.jpg", quality=90 - i // 20 % 8, comment=str(i))
    os.environ["LSDC_CACHE"] = str(place / "cache")
    started = time.time()
    data = open_data(str(folder))
    first = time.time() - started
    started = time.time()
    open_data(str(folder))
    again = time.time() - started
    return {"n": len(data.X), "seconds": round(first, 1), "rate": round(n / first), "again_seconds": round(again, 1)}


def photos(place, n):
    """n photos without an encoder, from the command to the report."""
    folder = place / "small"
    folder.mkdir()
    for i in range(n):
        picture(i, (320, 240)).save(folder / f"{i:04d}.jpg", quality=90)
    return {"n": n, "fit": run(["fit", "small", "-k", 6, "--out", "photos-run"], place)}


PARTS = {"vectors": (vectors, 1_000_000), "decoding": (decoding, 5_000), "photos": (photos, 600)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", help=f"some of {', '.join(PARTS)} (default: all)")
    parser.add_argument("--n", type=int, help="another number of samples")
    parser.add_argument("--out", type=Path)
    words = parser.parse_args()
    result = {"command": "python benchmarks/scale.py", "environment": environment()}
    with tempfile.TemporaryDirectory() as folder:
        for name in words.parts or PARTS:
            part, n = PARTS[name]
            result[name] = part(Path(folder), words.n or n)
            print(name, json.dumps(result[name], indent=1), flush=True)
    if words.out:
        words.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
