"""Keras' losses, by the library's tables. Where an argument is one, its name will do.

Objects are called on labels and predictions, and so are functions of the same names, which return
the values that an object reduces: cornu.losses.mean_squared_error(y_true, y_pred). Both compute on
arrays at once, and are recorded in a cornu.function.
"""

import json

import numpy as np

from . import _losses
from ._calls import call_loss
from ._described import Described, described, make_classes, snake_case
from ._library import Owned, lib
from ._operators import operate
from ._surface.missing import add_aliases, getter
from ._surface.registry import add_registry
from ._symbols import Tensor, find_tensor
from ._traces import tracing
from ._values import Readable, convert_to_tensor


class Loss(Described):
    """The base of all losses. Your own define call(y_true, y_pred): a value for each row, or
    more."""

    _made = None

    def __init__(self, *args, **kwargs):
        if self.class_name is None:
            self._begin_own(*args, **kwargs)
        else:
            super().__init__(*args, **kwargs)

    def _begin_own(self, name=None, reduction="sum_over_batch_size", dtype=None):
        self._config = {"name": name or snake_case(type(self).__name__), "reduction": reduction}

    @property
    def is_own(self):
        return hasattr(type(self), "call")

    @property
    def name(self):
        return self._config["name"] if self.class_name is None else self._name()

    @property
    def reduction(self):
        return self._config.get("reduction", "sum_over_batch_size")

    def _owned_loss(self):
        if self._made is None:
            self._made = Owned(lib.cornu_loss_from_json(json.dumps(self.to_dict())),
                               lib.cornu_loss_free)
        return self._made

    def __getstate__(self):
        return {key: value for key, value in vars(self).items() if key != "_made"}

    def _given(self):
        """The arguments that are the loss's own."""
        return {key: value for key, value in self._config.items()
                if key not in ("reduction", "name", "dtype")}

    def __call__(self, y_true, y_pred, sample_weight=None):
        """The loss of a batch, reduced as the loss says."""
        if _symbolic(y_true, y_pred, sample_weight):
            values = self.call(y_true, y_pred) if self.is_own else _losses.values_of(
                snake_case(self.class_name), self._given(), y_true, y_pred)
            return _losses.reduced(values, self.reduction, y_pred, sample_weight)
        if self.is_own:
            return _reduced(self, y_true, y_pred, sample_weight)
        return call_loss(self, y_true, y_pred, sample_weight)


def _symbolic(*given):
    """Whether there is a symbolic tensor among them, or a weight that a layer's call reads."""
    found = find_tensor(given)
    return isinstance(found, Tensor) or tracing() is not None and isinstance(found, Readable)


def _reduced(loss, y_true, y_pred, sample_weight):
    """A loss of the program's own. Source: keras/src/losses/loss.py."""
    y_pred, y_true = convert_to_tensor(y_pred), operate("cast", y_true, "float32")
    values = operate("cast", loss.call(y_true, y_pred), "float32")
    weight = None
    if sample_weight is not None:
        weight = operate("cast", sample_weight, "float32")
        while weight.ndim < values.ndim:
            weight = operate("expand_dims", weight, -1)
        weight = operate("broadcast_to", weight, values.shape)
        values = values * weight
    if loss.reduction in (None, "none") or values.ndim == 0:
        return values
    total = operate("sum", values)
    if loss.reduction == "sum":
        return total
    if loss.reduction == "mean_with_sample_weight" and weight is not None:
        return operate("divide_no_nan", total, operate("sum", weight))
    return total / float(np.prod(values.shape))


class _Named(Loss):
    """A loss by its name alone."""

    is_own = False

    def __init__(self, name):
        self._label = name

    def to_dict(self):
        return self._label


def _function(name, of):
    own = [field for field in of.field_names if field not in ("reduction", "name", "dtype")] \
        if of else []

    def call(y_true, y_pred, *args, **kwargs):
        if len(args) > len(own):
            raise TypeError("%s takes %d positional arguments, %d are given"
                            % (name, 2 + len(own), 2 + len(args)))
        given = {**dict(zip(own, args)), **kwargs}
        if _symbolic(y_true, y_pred):
            return _losses.values_of(name, given, y_true, y_pred)
        key = json.dumps([name, given], default=str)
        if key not in _usual:
            _usual[key] = of(**given) if given and of else _Named(name)
            if given and not of:
                raise TypeError("%s: arguments are those of the function of the full name" % name)
        return call_loss(_usual[key], y_true, y_pred, values=True)
    call.__name__ = call.__qualname__ = name
    call.__doc__ = "The values of the loss %s for each row." % name
    call._cornu_name = name
    return call


_usual = {}
_classes = make_classes("losses", Loss, globals())
_of = {entry["name"]: globals()[entry["class_name"]] for entry in described["losses"]}
_functions = [name for name in described["names"]["losses"] if name not in globals()]
for _each in _functions:
    globals()[_each] = _function(_each, _of.get(_each))

__all__ = ["Loss"] + _classes + _functions
__all__ += add_registry("losses", Loss, globals(), _functions) + add_aliases("losses", globals())
__getattr__ = getter(__name__)
