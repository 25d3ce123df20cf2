"""Sort photos by what they show: pieces of two photographs, with and without an encoder.

python examples/photos.py            # scikit-learn's photographs, cut into pieces
python examples/photos.py net.onnx   # the same, seen by a pretrained network
"""

import sys
import tempfile
from pathlib import Path

from PIL import Image
from sklearn.datasets import load_sample_images

import lsdc

SIDE = 107  # pixels of a piece


def cut(folder: Path) -> None:
    """Write the pieces of a temple and of a flower as photos, each kind in a folder of its own."""
    for name, pixels in zip(("temple", "flower"), load_sample_images().images, strict=True):
        (folder / name).mkdir()
        for top in range(0, pixels.shape[0] - SIDE, SIDE):
            for left in range(0, pixels.shape[1] - SIDE, SIDE):
                piece = Image.fromarray(pixels[top : top + SIDE, left : left + SIDE])
                piece.save(folder / name / f"{top:03}-{left:03}.jpg")


def main(encoder: str | None = None) -> None:
    """Cluster the pieces, and say how many of each photograph came into each cluster."""
    with tempfile.TemporaryDirectory() as place:
        cut(Path(place))
        data = lsdc.open_data(place, encoder=encoder)  # the folder, as ``lsdc fit`` reads it
        model = lsdc.LSDC(n_clusters=2, random_state=0).fit(data)
        for cluster in range(2):
            mine = [str(data.ids[i]).split("/")[0] for i in (model.labels_ == cluster).nonzero()[0]]
            print(
                f"cluster {cluster}: " + ", ".join(f"{mine.count(name)} of the {name}" for name in ("temple", "flower"))
            )


if __name__ == "__main__":
    main(*sys.argv[1:2])
