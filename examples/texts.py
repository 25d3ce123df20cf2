"""Sort texts by what they are about, and name the groups.

python examples/texts.py                 # descriptions of scikit-learn's own functions
python examples/texts.py FILE            # your texts, one a line
python examples/texts.py FILE wordllama  # the same, with word vectors (pip install 'lsd-clusters[text]')
"""

import inspect
import sys
from pathlib import Path

import sklearn
from sklearn import cluster, datasets, linear_model, metrics

import lsdc
from lsdc.data.names import name_clusters


def descriptions() -> list[str]:
    """The first paragraph of what scikit-learn says of each of its functions."""
    found = []
    for module in (cluster, datasets, linear_model, metrics):
        for name in module.__all__:
            about = inspect.getdoc(getattr(module, name)) or ""
            found.append(about.split("\n\n")[0].replace("\n", " "))
    return [text for text in found if text]


def main(file: str | None = None, encoder: str | None = None) -> None:
    """Cluster the texts, and show each cluster's name, size and an example."""
    texts = Path(file).read_text(encoding="utf-8").splitlines() if file else descriptions()
    X = lsdc.encode(texts, encoder) if encoder else texts
    model = lsdc.LSDC(n_clusters=4, random_state=0).fit(X)
    names = name_clusters(texts, model.labels_, 4).names if encoder else model.cluster_names_
    print(f"{len(texts)} texts (scikit-learn {sklearn.__version__})" if not file else f"{len(texts)} texts")
    for number, name in enumerate(names):
        mine = [text for text, label in zip(texts, model.labels_, strict=True) if label == number]
        print(f"{len(mine):4} {name:40} {mine[0][:60] if mine else ''}")


if __name__ == "__main__":
    main(*sys.argv[1:3])
