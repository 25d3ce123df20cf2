"""Every method on the same data, and other packages that do the same, each in a process of its own.

The packages may be installed elsewhere than this one: ``--peers-python`` is a Python that has them.
"""

import os
import tempfile
from pathlib import Path

import numpy as np
from measuring import Row, child

from lsdc import METHODS, datasets

HEAD = """
import sys, time
import numpy as np
def peak():
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 2**20
"""
TIMED = """
X = np.load(sys.argv[1])
started = time.process_time()
{work}
print(time.process_time() - started, peak())
"""
# name to show, how it is imported and called
PEERS = {
    "kmeans": [
        (
            "scikit-learn",
            "from sklearn.cluster import KMeans",
            "KMeans(20, n_init=10, random_state=0).fit(X)",
        ),
        ("faiss", "import faiss", "faiss.Kmeans(X.shape[1], 20, niter=100, nredo=10, seed=0).train(X)"),
    ],
    "finch": [("finch-clust", "from finch import FINCH", "FINCH(X, distance='cosine', verbose=False)")],
    "dec": [("ClustPy", "from clustpy.deep import DEC", CLUSTPY := "{0}(10, {1}).fit(X)")],
    "idec": [("ClustPy", "from clustpy.deep import IDEC", CLUSTPY)],
}
EPOCHS = {
    "dec": "epochs=5, pretext_plan={'epochs': 5}, batch_size=256",
    "idec": "epochs=5, pretext_plan={'epochs': 5}, batch_size=256",
}
THEIR_EPOCHS = "pretrain_epochs=5, clustering_epochs=5, batch_size=256"
OURS = {"kmeans": "lsdc.KMeans(20, n_init=10, random_state=0).fit(X)", "finch": "lsdc.FINCH().fit(X)"}
OURS |= {name: f"lsdc.METHODS[{name!r}](10, random_state=0, {epochs}).fit(X)" for name, epochs in EPOCHS.items()}
LOADED = "import lsdc, torch; lsdc.METHODS"  # before the clock starts: it imports what it needs late
ONE_EPOCH = """
model = lsdc.METHODS[{name!r}]
known = model().get_params()
short = {{"epochs": 1, "pretext_plan": {{"epochs": 1}}}}
model(10, random_state=0, **{{key: value for key, value in short.items() if key in known}}).fit(X)
"""


def measured(imported, work, file, python=None):
    """Processor seconds and peak memory; None if it is not there or takes too long."""
    words = child(HEAD + imported + TIMED.format(work=work), 1, [file], **({"python": python} if python else {}))
    return tuple(map(float, words[-2:])) if words else None


def is_there(imported, python):
    """Whether a package can be imported; ClustPy, for one, needs a torchvision that fits the torch that is there."""
    code = f"try:\n {imported}\n print(True)\nexcept ImportError:\n print(False)"
    return (child(code, python=python) or ["False"])[-1] == "True"


def data(folder, small):
    """20 groups of embeddings, digits as vectors, and RCV1-10K if it is there."""
    rng, n = np.random.default_rng(0), 500 if small else 10_000
    X = rng.normal(size=(20, 384))[rng.integers(20, size=n)] + rng.normal(size=(n, 384))
    np.save(folder / "embeddings.npy", X.astype(np.float32))
    np.save(
        folder / "digits.npy", datasets.load("digits").X.reshape(1797, -1)[: 300 if small else None].astype(np.float32)
    )
    files = dict.fromkeys(("kmeans", "finch"), "embeddings") | dict.fromkeys(("dec", "idec"), "digits")
    root = os.environ.get("LSDC_DATA", "")
    if root and (Path(root) / "reuters10k").exists() and not small:
        np.save(folder / "rcv1-10k.npy", datasets.load("reuters10k", root).X.toarray().astype(np.float32))
        files["finch"] = "rcv1-10k"
    return files


def rows(python, small=False):
    result = []
    with tempfile.TemporaryDirectory() as folder:
        files = data(Path(folder), small)
        for method, others in PEERS.items():
            file = Path(folder) / f"{files[method]}.npy"
            mine = measured(LOADED, OURS[method], file)
            for title, imported, work in others:
                what = f"{method} on {files[method]}"
                if not is_there(imported, python):
                    result.append(
                        Row("peers", what, f"{mine[0]:.2f} s" if mine else "-", f"{title}: not installed", None)
                    )
                    continue
                theirs = measured(imported, work.format(method.upper(), THEIR_EPOCHS), file, python)
                if not (mine and theirs):
                    result.append(Row("peers", what, "-", f"{title}: took too long", None))
                    continue
                value, against = (f"{s:.2f} s, {gb:.2f} GB" for s, gb in (mine, theirs))
                result.append(Row("peers", what, value, f"{title}, {against}", mine[0] / theirs[0]))
        return result + every_method(Path(folder), small)


def every_method(folder, small):
    """Each method on digits, for one epoch of each stage where it has any."""
    X = datasets.load("digits").X
    file = folder / "images.npy"
    np.save(file, X[:300] if small else X)
    names = [name for name in METHODS if name != "umap"] if small else list(METHODS)  # umap compiles for a minute
    taken = {name: measured(LOADED, ONE_EPOCH.format(name=name), file) for name in names}
    least, result = taken["kmeans"], []
    for name, found in taken.items():
        what, against = f"{name}, digits, one epoch a stage", f"kmeans, {least[0]:.2f} s" if least else "kmeans"
        value = f"{found[0]:.2f} s, {found[1]:.2f} GB" if found else "took too long"
        result.append(Row("methods", what, value, against, found[0] / least[0] if found and least else None))
    return result
