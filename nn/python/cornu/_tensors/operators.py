"""Python's operators and indices, which are operations of keras.ops."""

import linecache
import os
import sys

import numpy as np

_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))    # the package


def users_line():
    """Where the program outside this package is, and its text: "step.py, line 7: if loss > 3:"."""
    frame = sys._getframe(1)
    while frame and frame.f_code.co_filename.startswith(_HERE):
        frame = frame.f_back
    if frame is None:
        return "an unknown line"
    name, line = frame.f_code.co_filename, frame.f_lineno
    text = linecache.getline(name, line).strip()
    return "%s, line %d%s" % (name, line, ": " + text if text else "")


class Operators:
    """What symbolic tensors, recorded values and variables have in common."""

    __array_priority__ = 100    # NumPy leaves operators to this class
    __hash__ = object.__hash__

    def __neg__(self):
        return operate("negative", self)

    def __abs__(self):
        return operate("absolute", self)

    def __invert__(self):
        return operate("logical_not", self)

    def __getitem__(self, key):
        return operate("get_item", self, key)

    def __tf_tensor__(self, dtype=None, name=None):
        """What TensorFlow asks of an argument that is none of its tensors."""
        from .._tensorflow import tensor_of
        return tensor_of(self, dtype)

    def __jax_array__(self):
        """What JAX asks of an argument that is none of its arrays."""
        import jax
        if not hasattr(self, "__array__"):
            raise TypeError("a symbolic tensor of cornu has no elements, which a function of JAX "
                            "needs: use those of cornu.ops; in %s" % users_line())
        return jax.numpy.asarray(np.asarray(self))


def operate(name, /, *values, **named):
    from .symbols import operation
    return operation(name, *values, **named)


def _operator(name, reflected):
    def call(self, other):
        return operate(name, other, self) if reflected else operate(name, self, other)
    call.__doc__ = "keras.ops.%s." % name
    return call


for _operators, _reflects in (
        ({"add": "add", "sub": "subtract", "mul": "multiply", "truediv": "true_divide",
          "floordiv": "floor_divide", "mod": "mod", "pow": "power", "matmul": "matmul",
          "and": "logical_and", "or": "logical_or", "xor": "logical_xor"}, True),
        ({"lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal"}, False)):
    for _name, _operation in _operators.items():
        setattr(Operators, "__%s__" % _name, _operator(_operation, False))
        if _reflects:
            setattr(Operators, "__r%s__" % _name, _operator(_operation, True))
