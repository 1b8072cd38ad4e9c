"""Keras' operations: cornu.ops.concatenate([a, b], axis=-1).

Arguments are those of Keras, by position or by name. On symbolic tensors they make others; on arrays
and numbers they compute at once; in a cornu.function they are recorded. An operation with several
results returns a list of them.
"""

import functools
import inspect

from ._tensors import control
from ._tensors.composed import COMPOSED
from ._tensors.creation import MADE
from ._binding.described import described
from ._surface.missing import Namespace, add_aliases, getter
from ._surface.names import NAMES
from ._tensors.symbols import operation as _operation
from ._tensors.values import convert_to_numpy, convert_to_tensor, is_tensor, shape


def _parameters(arguments):
    """Arguments after any number of operands have names alone."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    for argument in arguments:
        if argument.get("many"):
            kind = inspect.Parameter.KEYWORD_ONLY
            yield inspect.Parameter(argument["name"], inspect.Parameter.VAR_POSITIONAL)
        else:
            yield inspect.Parameter(argument["name"], kind,
                                    default=argument.get("default", inspect.Parameter.empty))


def _make(name, entry):
    signature = inspect.Signature(
        [*_parameters(entry["arguments"]),
         inspect.Parameter("name", inspect.Parameter.KEYWORD_ONLY, default=None)])

    def call(*values, **arguments):
        try:
            signature.bind(*values, **arguments)
        except TypeError as error:
            raise TypeError("%s: %s" % (name, error)) from None
        return _operation(name, *values, **arguments)
    call.__name__ = call.__qualname__ = name
    call.__doc__ = "keras.ops.%s; `name` is the layer's, of symbolic tensors." % name
    call.__signature__ = signature
    call.__module__ = __name__
    return call


def ndim(x):
    """keras.ops.ndim."""
    return len(shape(x))


def size(x):
    """keras.ops.size: the number of elements."""
    return functools.reduce(lambda a, b: a * b, shape(x), 1)


_OWN = {"convert_to_numpy": convert_to_numpy, "convert_to_tensor": convert_to_tensor,
        "is_tensor": is_tensor, "shape": shape, "ndim": ndim, "size": size,
        **{made.__name__: made for made in (*MADE, *COMPOSED)},
        **{name: getattr(control, name) for name in (
            "cond", "switch", "while_loop", "fori_loop", "scan", "associative_scan", "map",
            "vectorized_map")}}
globals().update(_OWN)
__all__ = list(_OWN)
_modules = {}
for _entry, _name in zip(described["operations"], described["names"]["operations"]):
    # Keras' name, and the one made from the class' where that differs. cornu.random has the draws.
    if _entry["module"] == "random":
        continue
    for _each in {_entry["name"], _name, *_entry.get("aliases", ())} - set(_OWN):
        globals()[_each] = _make(_each, _entry)
        _modules.setdefault(_entry["module"], {})[_each] = globals()[_each]
        __all__.append(_each)

__all__ += add_aliases("ops", globals())
# Keras' keras.ops.image and so on.
for _name, _functions in _modules.items():
    _known = {each.partition("=")[0] for each in NAMES.get("ops." + _name, "").split()}
    _functions.update({each: made for each, made in _OWN.items() if each in _known})
    add_aliases("ops." + _name, _functions)
    globals()[_name] = Namespace("ops." + _name, _functions)
__getattr__ = getter(__name__)
