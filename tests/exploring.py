"""A small run to explore, made once, and a page of it without a browser."""

from pathlib import Path

import numpy as np
from PIL import Image
from starlette.testclient import TestClient

from lsdc.data.files import open_data
from lsdc.explore.api import build
from lsdc.explore.guard import Guard, hosts_of
from lsdc.explore.session import Session
from lsdc.methods import METHODS, read_config
from lsdc.runs.folder import Run

EVIL = "<img src=x onerror=alert(1)>.png"
NAMES = [EVIL, "=1+1.png", "red, green.png", *(f"photo {i:02d}.png" for i in range(27))]
PORT, TOKEN = 5555, "secret"


def photos(folder: Path) -> Path:
    """Thirty small pictures in three colours."""
    folder.mkdir()
    rng = np.random.default_rng(0)
    for i, name in enumerate(NAMES):
        pixels = rng.integers(0, 60, (12, 12, 3))
        pixels[..., i % 3] += 180
        Image.fromarray(pixels.astype(np.uint8)).save(folder / name)
    return folder


def fitted(data: Path, out: Path, n_clusters: int = 3, method: str = "kmeans", **params) -> Path:
    """A run of a quick method on whatever is there."""
    dataset = open_data(str(data))
    run = Run.create(out)
    run.source, run.ids = {"source": str(data), "image_size": 32}, dataset.ids
    METHODS[method](n_clusters, random_state=0, **params).fit(dataset, run=run)
    return out


def session_of(folder: Path, read=None) -> Session:
    """A run that is open, its data read and laid out."""
    run = Run.open(folder)
    config = read_config(run)
    session = Session(run, config, read or (lambda: open_data(config["data"]["source"])))
    session.work()
    return session


def client_of(session: Session, known: bool = True) -> TestClient:
    """Somebody who talks to the explorer, with the token or without."""
    app = Guard(build(session), hosts_of("127.0.0.1"), PORT, TOKEN)
    headers = {"Authorization": f"Bearer {TOKEN}"} if known else {}
    return TestClient(app, f"http://127.0.0.1:{PORT}", headers=headers, raise_server_exceptions=False)
