"""Keras' operations on symbolic tensors: cornu.ops.concatenate([a, b], axis=-1).

Tensors and numbers beside them are positional; other arguments have their Keras keywords. An
operation with several results returns the first.
"""

from ._described import described
from ._symbols import operation as _operation


def _make(name):
    def call(*tensors, **arguments):
        return _operation(name, *tensors, **arguments)
    call.__name__ = call.__qualname__ = name
    call.__doc__ = "keras.ops.%s of symbolic tensors." % name
    return call


for _name in described["names"]["operations"]:
    globals()[_name] = _make(_name)

__all__ = list(described["names"]["operations"])
