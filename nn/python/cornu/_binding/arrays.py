"""NumPy arrays as the library's, which share their memory."""

import ctypes
import functools
import math

import numpy as np

from .library import lib
from .._tensors.operators import operate, users_line

_NAMES = {"f32": "float32", "f64": "float64", "f16": "float16", "i64": "int64", "i32": "int32",
          "u32": "uint32", "u8": "uint8", "bool": "bool", "bf16": "bfloat16"}
KERAS_NAMES = [_NAMES[name] for name in lib.dtypes] + ["string"]
_NUMBERS = {name: number for number, name in enumerate(KERAS_NAMES)}
# What the library does not have is copied to a type that holds it.
_WIDER = {"int8": "int32", "int16": "int32", "uint16": "int32", "uint64": "int64"}
_STRING = lib.constants["CORNU_STRING"]
_MAX_RANK = lib.constants["CORNU_MAX_RANK"]
_NONE = lib.constants["CORNU_NONE"]


# The dtypes that need no conversion, in native byte order.
_EXACT = {np.dtype(name): number for name, number in _NUMBERS.items()
          if name not in ("bfloat16", "string")}
_Array = lib.type("CornuArray")
_BYTE = ctypes.c_char


def shape_of(shape):
    """A CornuShape as a tuple; an unknown extent is None."""
    return tuple(None if e == lib.constants["CORNU_NONE"] else e
                 for e in shape.extent[:shape.rank])


def set_shape(shape, extents):
    """Sets a CornuShape, of which None is an extent that is not known."""
    shape.rank = len(extents)
    for i, extent in enumerate(extents):
        shape.extent[i] = _NONE if extent is None else extent


def row_bytes(array):
    """Bytes of a row of a CornuArray; of strings, of their pointers."""
    name = KERAS_NAMES[array.type.dtype]
    size = {"string": ctypes.sizeof(ctypes.c_void_p), "bfloat16": 2}.get(name)
    shape = array.type.shape
    return (size or np.dtype(name).itemsize) * math.prod(shape.extent[1:shape.rank])


@functools.lru_cache(maxsize=1024)
def _typed(dtype, shape):
    """The bytes of a CornuArray without data: filling in its fields takes longer than a small
    prediction."""
    if len(shape) > _MAX_RANK:
        raise ValueError("an array has %d axes, expected at most %d" % (len(shape), _MAX_RANK))
    made = _Array()
    made.type.dtype, made.type.shape.rank = dtype, len(shape)
    made.type.shape.extent[:len(shape)] = shape
    return bytes(made)


def _address(values):
    """Of an array's elements: by its buffer, the shortest way, if it has one that can be written
    to, which those of no elements and of types that Python does not know have not."""
    if values.flags.carray and values.size and values.dtype.kind in "fiub":
        return ctypes.addressof(_BYTE.from_buffer(values))
    return values.__array_interface__["data"][0]


class Borrowed:
    """Arrays lent to a call; keeps alive what they point to, as does each of them."""

    def __init__(self):
        self._kept = []

    def array(self, values):
        """A CornuArray of `values`, of any shape: without a copy if these are a NumPy array of a
        type that the library has, contiguous in C's order, aligned and in native byte order."""
        values = np.asarray(values)
        number = _EXACT.get(values.dtype)
        if number is None:
            if values.dtype.kind in "USO":
                return self._strings(values)
            values, number = self._converted(values)
        if not (values.flags.c_contiguous and values.flags.aligned):
            values = np.require(values, requirements=["C", "A"])
        self._kept.append(values)
        return self._made(number, values.shape, _address(values), values)

    @staticmethod
    def _converted(values):
        name = values.dtype.name
        if name not in _NUMBERS and name not in _WIDER:
            raise TypeError("arrays of %s are not supported, expected one of %s"
                            % (name, ", ".join(list(_NUMBERS)[:-1] + list(_WIDER))))
        wanted = _WIDER.get(name, name)
        if wanted != name:
            return values.astype(wanted), _NUMBERS[wanted]
        return values.astype(values.dtype.newbyteorder("="), copy=False), _NUMBERS[name]

    def _strings(self, values):
        for value in values.flat if values.dtype.kind == "O" else ():
            if not isinstance(value, (str, bytes)):
                raise TypeError("data are %s, expected arrays of numbers or strings; "
                                "train_on_batch takes the batches of an iterator"
                                % type(value).__name__)
        encoded = [t if isinstance(t, bytes) else str(t).encode("utf-8") for t in values.flat]
        pointers = (ctypes.c_char_p * max(len(encoded), 1))(*encoded)
        self._kept.append(pointers)
        return self._made(_STRING, values.shape, ctypes.addressof(pointers), pointers)

    @staticmethod
    def _made(dtype, shape, address, memory):
        made = _Array.from_buffer_copy(_typed(dtype, shape))
        made.data, made.memory = address, memory
        return made

    def arrays(self, values):
        """Several of them, one after the other in memory; and the address of the first."""
        made = self.array(values[0]) if len(values) == 1 else \
            (_Array * len(values))(*[self.array(v) for v in values])
        self._kept.append(made)
        return ctypes.addressof(made)


def array_of(array, owner):
    """A NumPy array of the library's memory; `owner` lives as long as it does."""
    name = KERAS_NAMES[array.type.dtype]
    shape = shape_of(array.type.shape)
    dtype = np.dtype(name)
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    memory = (ctypes.c_char * size).from_address(array.data)
    memory._owner = owner
    return np.frombuffer(memory, dtype).reshape(shape)


def dtype_number(name):
    """The library's number of a dtype's name."""
    name = getattr(name, "name", None) or (name if isinstance(name, str) else np.dtype(name).name)
    name = "int32" if name == "int" else _WIDER.get(name, name)     # Keras has "int", too
    if name not in _NUMBERS:
        raise ValueError("the dtype %r is not supported, expected one of %s"
                         % (name, ", ".join(_NUMBERS)))
    return _NUMBERS[name]


# ---- Operations' arrays ----

class Array(np.ndarray):
    """What operations on arrays return: a NumPy array, whose elements are ones of no axes, as
    those of Keras' tensors. Under a GradientTape its operators are recorded, as operations are."""

    _keras_mask = None      # Keras' name of the mask that a layer's result has

    def numpy(self):
        """NumPy's array; of one number, its scalar, as TensorFlow returns it."""
        return np.asarray(self)[()]

    def __iter__(self):
        if not self.ndim:
            raise TypeError("iteration over an array without axes")
        return (self[i] for i in range(len(self)))

    def __hash__(self):
        if self.ndim:
            raise TypeError("unhashable type: an array with axes")
        return hash(self.item())        # as that of NumPy's numbers

    def __float__(self):
        return float(self.item())       # of one element, whatever its axes

    def __int__(self):
        return int(self.item())

    def __repr__(self):
        return repr(np.asarray(self))


def _recorded(name, operation, reflected=False):
    usual = getattr(np.ndarray, name)

    def call(self, *others):
        if not is_taped():
            made = usual(self, *others)
            return np.asarray(made).view(Array) if isinstance(made, np.generic) else made
        return operate(operation, *others[::-1], self) if reflected else \
            operate(operation, self, *others)
    call.__name__ = name
    return call


def is_taped():
    """Whether a tape records what is done with arrays."""
    from .._tensors.values import current
    recording = current()
    return recording is not None and recording.values is not None


for _name, _operation in (("add", "add"), ("sub", "subtract"), ("mul", "multiply"),
                          ("truediv", "true_divide"), ("pow", "power"), ("matmul", "matmul")):
    setattr(Array, "__%s__" % _name, _recorded("__%s__" % _name, _operation))
    setattr(Array, "__r%s__" % _name, _recorded("__r%s__" % _name, _operation, True))
for _name, _operation in (("neg", "negative"), ("abs", "absolute"), ("getitem", "get_item")):
    setattr(Array, "__%s__" % _name, _recorded("__%s__" % _name, _operation))


# As Keras on JAX converts arrays.
NARROWER = {np.dtype("float64"): np.dtype("float32"), np.dtype("int64"): np.dtype("int32"),
             np.dtype("uint64"): np.dtype("uint32")}
NARROWER.update({np.dtype(a): np.dtype(b) for a, b in _WIDER.items() if a != "uint64"})


def to_array(value, dtype=None):
    """A NumPy array as keras.ops.convert_to_tensor makes it: 64-bit numbers become 32-bit ones."""
    array = np.asarray(value.numpy() if hasattr(value, "numpy") else value)
    if dtype is not None:
        return array.astype(KERAS_NAMES[dtype_number(dtype)], copy=False)
    if array.dtype in _EXACT and array.dtype not in NARROWER:
        return array
    if array.dtype not in NARROWER:
        raise TypeError("expected an array of numbers, %s came (%s)"
                        % (array.dtype, users_line()))
    return array.astype(NARROWER[array.dtype])


def borrowed(array, lent):
    """Lends an array to a CornuArray that has its type."""
    if not (array.flags.c_contiguous and array.flags.aligned and array.dtype.isnative):
        array = np.require(array, array.dtype.newbyteorder("="), ["C", "A"])
    lent.data = array.__array_interface__["data"][0]
    return array
