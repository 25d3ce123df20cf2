"""A GPU that is not there: tensors that would lie on it are marked, and what would halt it is counted."""

import traceback

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten

HALTING = {"_local_scalar_dense", "is_nonzero", "nonzero", "bincount", "equal", "masked_select", "_unique2"}
HALTING |= {"unique_dim", "unique_consecutive", "repeat_interleave", "_linalg_check_errors", "multinomial"}
READING = (torch.Tensor.cpu, torch.Tensor.numpy, torch.Tensor.tolist)


def mark(tensor):
    tensor.on_device = True
    return tensor


def is_marked(tensor):
    return getattr(tensor, "on_device", False)


def tensors_of(tree):
    return [x for x in tree_flatten(tree)[0] if isinstance(x, torch.Tensor)]


class Operations(TorchDispatchMode):
    """Marks what is computed from marked tensors, and counts operations on them whose result the program waits for."""

    def __init__(self, halts):
        super().__init__()
        self.halts = halts

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        result = operation(*args, **(kwargs or {}))
        if any(map(is_marked, tensors_of((args, kwargs)))):
            name = operation._schema.name.removeprefix("aten::")
            indices = tensors_of(args[1]) if name in ("index", "index_put", "index_put_") else []
            if name in HALTING or any(i.dtype == torch.bool and is_marked(i) for i in indices):
                self.halts.append((name, where()))
            for tensor in tensors_of(result):
                mark(tensor)
        return result


class Copies(TorchFunctionMode):
    """Copies to and from the device, which are none on a CPU; those that wait are counted."""

    def __init__(self, halts):
        super().__init__()
        self.halts = halts

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        result = function(*args, **kwargs)
        if function in READING and is_marked(args[0]):
            self.halts.append((function.__name__, where()))
        if function is torch.Tensor.cpu:
            return result.clone() if is_marked(args[0]) else result
        if function is torch.Tensor.to and not is_marked(args[0]) and any(map(is_place, (*args[1:], *kwargs.values()))):
            if not kwargs.get("non_blocking"):
                self.halts.append(("to", where()))
            return mark(result.view_as(result))
        return result


def is_place(word):
    return isinstance(word, torch.device) or is_marked(word)


def where():
    """The lines of the package that led here."""
    lines = [f"{frame.filename.rpartition('/lsdc/')[2]}:{frame.lineno}" for frame in traceback.extract_stack()]
    return [line for line in lines if not line.startswith("/")][-3:]
