"""Keras' losses, by the library's tables. Where an argument is one, its name will do.

Objects are called on labels and predictions, and so are functions of the same names, which return
the values that an object reduces: cornu.losses.mean_squared_error(y_true, y_pred). Both compute on
arrays at once, and are recorded in a cornu.function.
"""

import json

from ._calls import call_loss
from ._described import Described, described, make_classes
from ._library import Owned, lib


class Loss(Described):
    """The base of all losses."""

    name = property(Described._name)
    _made = None

    def _owned_loss(self):
        if self._made is None:
            self._made = Owned(lib.cornu_loss_from_json(json.dumps(self.to_dict())),
                               lib.cornu_loss_free)
        return self._made

    def __getstate__(self):
        return {key: value for key, value in vars(self).items() if key != "_made"}

    def __call__(self, y_true, y_pred, sample_weight=None):
        """The loss of a batch, reduced as the loss says."""
        return call_loss(self, y_true, y_pred, sample_weight)


class _Named(Loss):
    """A loss by its name alone."""

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
