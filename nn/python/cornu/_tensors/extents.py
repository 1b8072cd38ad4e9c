"""Extents of symbolic tensors that differ between batches, as numbers that models compute."""

import numbers

import numpy as np

from .operators import users_line

_WORDS = {"+": "add", "-": "subtract", "*": "multiply", "//": "floor_divide", "/": "divide"}


class Extent:
    """What ops.shape(x) has for the batch, or a length that is not known. It is added, subtracted,
    multiplied and divided, and stands wherever operations take whole numbers, or beside tensors."""

    __array_ufunc__ = None      # NumPy leaves operators to this class
    shape, ndim = (), 0

    def __init__(self, tensor=None, axis=None, word=None, operands=(), is_float=False):
        self.tensor, self.axis, self.word, self.operands = tensor, axis, word, operands
        self.is_float = is_float

    @property
    def dtype(self):
        return "float32" if self.is_float else "int32"

    def astype(self, dtype):
        return Extent(self.tensor, self.axis, self.word, self.operands, "float" in str(dtype))

    def form(self, number_of):
        """As JSON; number_of(tensor) is its place in the list of extents."""
        config = {"float": True} if self.is_float else {}
        if self.word is None:
            config.update(of=number_of(self.tensor), axis=self.axis)
        else:
            config.update(operation=self.word, operands=[
                v.form(number_of) if isinstance(v, Extent) else v for v in self.operands])
        return {"class_name": "__extent__", "config": config}

    def __repr__(self):
        if self.word is None:
            return "<extent of axis %d of %r>" % (self.axis, self.tensor)
        return "<extent: %s of %s>" % (self.word, ", ".join(repr(v) for v in self.operands))

    def __neg__(self):
        return 0 - self

    def __pos__(self):
        return self

    def _has_no_value(self, *_):
        raise TypeError(
            "%r is not known before the model runs, as it differs between batches: it is no number "
            "for range, if or int. Use it in the shapes that operations take, ops.arange in place "
            "of range, ops.cond in place of if, or give cornu.Input this extent; in %s"
            % (self, users_line()))

    __int__ = __index__ = __float__ = __bool__ = _has_no_value
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _has_no_value
    __hash__ = object.__hash__


def _plain_number(value):
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    if isinstance(value, numbers.Integral):
        return int(value)
    return float(value) if isinstance(value, numbers.Real) else None


def combine(word, a, b):
    """An extent of two extents or numbers; NotImplemented for others."""
    pair = [v if isinstance(v, Extent) else _plain_number(v) for v in (a, b)]
    if None in [v if not isinstance(v, Extent) else 0 for v in pair]:
        return NotImplemented
    is_float = word == "divide" or any(
        v.is_float if isinstance(v, Extent) else isinstance(v, float) for v in pair)
    return Extent(word=word, operands=pair, is_float=is_float)


def _operator(word, reflected):
    def call(self, other):
        return combine(word, other, self) if reflected else combine(word, self, other)
    return call


for _name, _word in (("add", "add"), ("sub", "subtract"), ("mul", "multiply"),
                     ("floordiv", "floor_divide"), ("truediv", "divide")):
    setattr(Extent, "__%s__" % _name, _operator(_word, False))
    setattr(Extent, "__r%s__" % _name, _operator(_word, True))


class Extents(list):
    """A vector of extents and numbers: ops.stack([batch, 1])."""

    @property
    def shape(self):
        return (len(self),)


class Shape(tuple):
    """The shape of a symbolic tensor. As a whole it may be given where a shape is expected."""

    def __new__(cls, extents, tensor):
        made = tuple.__new__(cls, extents)
        made.tensor = tensor
        return made

    def __reduce__(self):
        return tuple, (tuple(self),)


def extents_of(x):
    """The extents of a symbolic tensor, as ops.shape has them."""
    return tuple(Extent(x, axis) if extent is None else extent
                 for axis, extent in enumerate(x.shape))


def as_extents(shape):
    """Of a Shape what ops.shape has; any other value as it is."""
    return extents_of(shape.tensor) if isinstance(shape, Shape) and None in shape else shape


# ---- Operations on extents alone ----

def _elements(value):
    """The elements of a vector of extents and numbers; None of anything else."""
    if isinstance(value, (list, tuple)):
        flat = [v if isinstance(v, Extent) else _plain_number(v) for v in value]
        return None if any(v is None for v in flat) else flat
    value = np.asarray(value)
    return value.tolist() if value.ndim == 1 else None


def _joined(values):
    parts = [_elements(v) for v in values]
    return NotImplemented if any(p is None for p in parts) else Extents(sum(parts, []))


def compute(name, values, named):
    """keras.ops.NAME of extents and numbers alone, which is an extent, or a vector of them;
    NotImplemented for what is one of tensors."""
    first = values[0] if values else None
    if name in ("add", "subtract", "multiply", "floor_divide", "divide", "true_divide", "minimum",
                "maximum"):
        if len(values) == 2:
            return combine("divide" if name == "true_divide" else name, *values)
    elif isinstance(first, Extent):
        dtype = named.get("dtype", values[1] if len(values) > 1 else None)
        axis = named.get("axis", values[1] if len(values) > 1 else None)
        if name in ("cast", "convert_to_tensor", "array"):
            return first if dtype is None else first.astype(dtype)
        if name == "expand_dims" and axis in (0, -1):
            return Extents([first])
    elif isinstance(first, (list, tuple)) and named.get("axis", *values[1:2] or [0]) in (0, -1):
        if name in ("stack", "convert_to_tensor", "array"):
            made = _elements(first)
            return NotImplemented if made is None else Extents(made)
        if name == "concatenate":
            return _joined(first)
    return NotImplemented
