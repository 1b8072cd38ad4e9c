"""The forms of the arguments and results of own layers' calls: nested lists and dictionaries of
tensors."""

from .._binding.arrays import dtype_number, set_shape
from .._binding.library import lib
from .._binding.nested import placed
from .._tensors.symbols import Tensor


def flat(value, tensors):
    """The same with places for the tensors, which are appended to a list."""
    return placed(value, tensors, lambda v: isinstance(v, Tensor))


def numbers(value, tensors):
    """Likewise, where strings stay, with which graphs do not compute."""
    return placed(value, tensors, lambda v: isinstance(v, Tensor) and v.dtype != "string")


def form_of(value):
    """The form of nested lists and dictionaries of tensors, whose keys ascend; None of a tensor, or
    a list of them."""
    if isinstance(value, dict):
        value = {key: value[key] for key in sorted(value)}
    elif not any(isinstance(v, (list, tuple, dict)) for v in _members_of(value)):
        return None
    return flat(value, [])


def _members_of(value):
    return value if isinstance(value, (list, tuple)) else ()


def shapes_of(value):
    """The shapes of tensors in the place of these."""
    if isinstance(value, dict):
        return {key: shapes_of(v) for key, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [shapes_of(v) for v in value]
    return tuple(value.shape) if hasattr(value, "shape") else value


def type_of(tensor):
    made = lib.type("CornuType")()
    made.dtype = dtype_number(tensor.dtype)
    set_shape(made.shape, tensor.shape)
    return made


class Shaped:
    """A shape in the place of a tensor."""

    def __init__(self, shape):
        self.shape = tuple(shape)


class Measured:
    """The form of a call after whose results its graph has what metrics are updated with."""

    def __init__(self, form, metrics):
        """metrics: each with the number of its tensors."""
        self.form, self.metrics = form, metrics

    def __repr__(self):
        return "%r %r" % (self.form, [(id(metric), count) for metric, count in self.metrics])

    def of(self, made):
        """The metrics with their tensors, which are the last of these."""
        at, pairs = len(made) - sum(count for _, count in self.metrics), []
        for metric, count in self.metrics:
            pairs.append((metric, made[at:at + count]))
            at += count
        return pairs


def measured_by(outputs):
    """The metrics, with their tensors, that the calls before these tensors update."""
    found, seen, left = {}, set(), list(outputs)
    while left:
        tensor = left.pop()
        if id(tensor) not in seen:
            seen.add(id(tensor))
            found.setdefault(id(tensor._measured), tensor._measured)
            left += tensor._from[1] if tensor._from else []
    return [pair for pairs in found.values() for pair in pairs]
