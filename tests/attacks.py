"""What the attacks are made of: edited headers, other tensors, files of 10 GB, and what good files look like."""

import os
import resource

import numpy as np
import pytest

from lsdc import InputError, load
from mutations import joined, parts

VECTORS = np.random.default_rng(0).normal(size=(40, 5)).astype(np.float32)
QUICK = {"epochs": 1, "width": 0.02, "pretext": "autoencoder", "pretext_plan": {"epochs": 1}, "random_state": 0}
HUGE = 10 * 2**30
F4 = np.float32
BIAS = "state/backbone.stages.0.0.bias"  # of ten values


def reject(content, path, match):
    """A model file that is refused by the loader, in one line that names it and says why."""
    path.write_bytes(content)
    with pytest.raises(InputError, match=match) as caught:
        load(path)
    assert str(caught.value).startswith(str(path))
    assert str(caught.value).isprintable()


def sparse_file(path, begins=b""):
    """A file of 10 GB that takes no room on the disk."""
    path.write_bytes(begins)
    os.truncate(path, HUGE)


def memory():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def edited(model, **changes):
    """The file with other words in its header; a dot reaches into a group."""
    outer, inner, data = parts(model)
    for place, value in changes.items():
        *groups, last = place.split("__")
        holder = inner
        for group in groups:
            holder = holder[group]
        holder[last] = value
    return joined(outer, inner, data)


def retyped(model, **changes):
    """The file with other tensors: each change is (name, dtype, values), or nothing to leave one out."""
    outer, inner, data = parts(model)
    tensors = {name: (about, data[slice(*about["data_offsets"])]) for name, about in outer.items()}
    for name, array in changes.items():
        if array is None:
            tensors.pop(name)
            continue
        kind = {"f4": "F32", "f8": "F64", "f2": "F16", "i8": "I64", "c8": "C64"}[array.dtype.str[1:]]
        tensors[name] = ({"dtype": kind, "shape": list(array.shape)}, array.tobytes())
    place, outer, data = 0, {}, b""
    for name, (about, content) in tensors.items():
        outer[name] = {**about, "data_offsets": [place, place + len(content)]}
        place, data = place + len(content), data + content
    return joined(outer, inner, data)
