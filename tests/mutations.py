"""Ways to damage a file: bytes flipped, cut, inserted or repeated, and values of JSON replaced by absurd ones."""

import copy
import json
import struct

from hypothesis import strategies as st

INTERESTING = [
    b"\x00" * 8,
    b"\xff" * 8,
    b"\x7f\xf0" + b"\x00" * 6,
    b"\x00\x00\xc0\x7f",
    b"../",
    b"=1+1",
    b"\n\n",
    b'"',
    b"[" * 9,
]
NESTED = [[]]
for _ in range(50):
    NESTED = [NESTED]
ABSURD = [
    *(None, True, -1, 0, 1, 0.5, 7, 10**6, 10**12, 2**63, 2**64, 10**30, 1e308, -1e308, 1e-300),
    *(float("nan"), float("inf"), "", "auto", "NaN", "1", "x" * 3000, "=1", "a\nb", "\ud800", "os:system", "../../x"),
    *([], {}, [0], [8, 8, 8], [3, 10**9, 10**9], [""] * 100, NESTED, {"a": {"b": 1}}, {"epochs": 10**9}),
]


@st.composite
def bytes_of(draw, whole, head=None):
    """The bytes of a file with one to four changes, half of them among the first ``head``."""
    data = bytearray(whole)
    for _ in range(draw(st.integers(1, 4))):
        near = head is not None and draw(st.booleans())
        place = draw(st.integers(0, max(0, min(head if near else len(data), len(data)) - 1)))
        length = draw(st.integers(1, 64))
        how = draw(st.sampled_from(("flip", "flip", "flip", "cut", "insert", "put", "repeat", "end")))
        if how == "flip" and data:
            data[place] ^= draw(st.integers(1, 255))
        elif how == "cut":
            del data[place : place + length]
        elif how in ("insert", "put"):
            new = draw(st.one_of(st.sampled_from(INTERESTING), st.binary(min_size=1, max_size=20)))
            data[place : place + (len(new) if how == "put" else 0)] = new
        elif how == "repeat":
            data[place:place] = data[place : place + length] * draw(st.integers(1, 3))
        elif how == "end":
            del data[place:]
    return bytes(data)


def _places(content, path=()):
    """All places of a JSON document."""
    if path:
        yield path
    for key, item in content.items() if isinstance(content, dict) else enumerate(content):
        if isinstance(item, (dict, list)):
            yield from _places(item, (*path, key))
        else:
            yield (*path, key)


@st.composite
def json_of(draw, content):
    """A JSON document with one to three values changed, removed or added."""
    content = copy.deepcopy(content)
    for _ in range(draw(st.integers(1, 3))):
        places = list(_places(content))
        if not places:
            return content
        *path, last = draw(st.sampled_from(places))
        holder = content
        for key in path:
            holder = holder[key]
        how = draw(st.sampled_from(("replace", "replace", "replace", "remove", "add")))
        value = copy.deepcopy(draw(st.sampled_from(ABSURD)))
        if how == "replace":
            holder[last] = value
        elif how == "remove":
            del holder[last]
        elif isinstance(holder, dict):
            holder[draw(st.sampled_from(("extra", "n_clusters", "state/x", "", "__class__")))] = value
        else:
            holder.append(value)
    return content


DESCRIPTIONS = [
    *("<f4", ">f8", "|O", "|V8", "<c8", "<M8[s]", "|S0", "<U0", "<U999999999", "|b1", "f4,f4", "a4", "L", "x" * 99),
    *([("a", "<f4")], [("a", "<f4", (9, 9))], [("a", "|O")], ("<f4", (2, 2)), 5, None, [], {}, "<f4\x00"),
]
SHAPES = [
    *((12, 3), (36,), (), (0, 3), (3, 0), (-1, 3), (10**12, 3), (2**62, 8), (10**30,), (1,) * 70, (12, 3, 1)),
    *((12.0, 3), (True, 3), "12", [12, 3], None, {}, (2**31, 2**31), (12, -3), (0, 10**18)),
]


@st.composite
def npy_of(draw, data):
    """A .npy file with absurd words in its header, of any version."""
    header = {
        "descr": draw(st.sampled_from(DESCRIPTIONS)),
        "fortran_order": draw(st.sampled_from((False, True, None, 7, "no"))),
        "shape": draw(st.sampled_from(SHAPES)),
    }
    if draw(st.integers(0, 9)) == 0:
        header[draw(st.sampled_from(("extra", 5, None)))] = 0
    text = (draw(st.sampled_from(("", "", "", "[" * 300, "-" * 200, "\n "))) + repr(header) + "\n").encode("latin-1")
    version = draw(st.sampled_from((1, 2, 3, 4)))
    return b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H" if version == 1 else "<I", len(text)) + text + data


def parts(model):
    """The header of a safetensors file, that of lsdc within it, and the bytes that follow."""
    (length,) = struct.unpack("<Q", model[:8])
    outer = json.loads(model[8 : 8 + length])
    inner = json.loads(outer.pop("__metadata__")["lsdc"])
    return outer, inner, model[8 + length :]


def joined(outer, inner, data):
    """The inverse of ``parts``."""
    text = json.dumps({"__metadata__": {"lsdc": json.dumps(inner)}, **outer}).encode()
    return struct.pack("<Q", len(text)) + text + data
