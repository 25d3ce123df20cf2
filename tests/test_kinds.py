"""Every deep method x kind of data x part: what ``fit`` does not refuse in one line can be built, shown and run."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from lsdc import METHODS, InputError
from lsdc.data.augment import AUGMENTATIONS
from lsdc.data.sampler import Batch
from lsdc.functional import COMPOSITIONS
from lsdc.methods.deep import DeepEstimator
from lsdc.methods.validation import check_kind
from lsdc.nn.heads import HEADS
from lsdc.nn.network import BACKBONES
from lsdc.pretext import PRETEXTS

rng = np.random.default_rng(0)
KINDS = {
    "images": rng.integers(0, 255, (12, 8, 8)).astype(np.uint8),
    "colour images": rng.random((12, 16, 9, 3)),
    "vectors": rng.normal(size=(12, 5)),
    "embeddings": rng.normal(size=(12, 40)),
    "sparse": sp.random(12, 40, 0.3, format="csr", random_state=0),
    "texts": [" ".join(rng.choice(["cat", "dog", "bond", "goal", "team"], 6)) for _ in range(12)],
}
PARTS = {
    "backbone": BACKBONES,
    "augment": AUGMENTATIONS,
    "pretext": PRETEXTS,
    "head": HEADS,
    "composition": COMPOSITIONS,
}
CASES = [
    (name, kind, changed)
    for name, method in METHODS.items()
    if issubclass(method, DeepEstimator)
    for kind in KINDS
    for changed in PARTS
    if changed in method().get_params()
]
CONVOLUTIONS = {"resnet18", "vgg4", "vgg6"}


def prepared(name, kind, **params):
    """What ``fit`` has built just before it would write anything, and the data, or the refusal."""
    model = METHODS[name](3, width=0.05, batch_size=4, random_state=0, **params)
    data = model._data(KINDS[kind], reset=True)
    check_kind(model, data)
    settings = model._resolve(data.spec.shape, len(data), sp.issparse(data.X))
    return model._prepare(settings, 0), data


def show(built, data):
    """One batch through the network, plainly and augmented, and through the beginning and the end of the pretext."""
    network, views, pretext = built
    rows, generator = torch.arange(4), torch.Generator().manual_seed(0)
    x = data.batch(rows)
    for shown in (views.plain(x), views.augment(x, generator)):
        assert network(shown).p.shape == (4, 3)
    for done in (0.0, 0.9) if pretext else ():
        assert torch.isfinite(pretext.losses(Batch(x, rows, generator, 0.0, done))["loss"])


@pytest.mark.parametrize(("name", "kind", "changed"), CASES)
def test_parts_suit_the_data_or_are_refused_in_one_line(name, kind, changed):
    refused = {}
    for value in PARTS[changed]:
        try:
            built, data = prepared(name, kind, **{changed: value})
        except InputError as error:
            refused[value] = str(error)
        else:
            show(built, data)
    assert not any("\n" in message for message in refused.values())
    taken = {"sparse": "sparse vectors", "embeddings": "dense vectors", "vectors": "dense vectors"}.get(kind, kind)
    if taken.removeprefix("colour ") not in METHODS[name].takes:
        assert refused.keys() == PARTS[changed].keys()
    elif changed == "backbone":
        assert bool(refused.keys() & CONVOLUTIONS) == ("images" not in kind)
        assert refused.keys() != BACKBONES.keys()


@pytest.mark.parametrize("backbone", sorted(CONVOLUTIONS))
@pytest.mark.parametrize("name", ["imsat", "dac", "iic", "jule", "deepcluster", "lsdc"])
def test_networks_for_images_are_named_when_they_meet_vectors(name, backbone):
    with pytest.raises(InputError, match=rf"backbone '{backbone}' needs images, got \(5,\)"):
        prepared(name, "vectors", backbone=backbone)
