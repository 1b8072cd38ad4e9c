"""Keras' losses, by the library's tables. Where an argument is one, its name will do.

Objects are called on labels and predictions, and so are functions of the same names, which return
the values that an object reduces: cornu.losses.mean_squared_error(y_true, y_pred). Both compute on
arrays at once, and are recorded in a cornu.function.
"""

import json

from ._tensors.calls import call_loss, is_of_arrays, same_rank
from ._binding.described import Described, described, make_classes, snake_case, unique_name
from ._binding.library import Owned, arguments, lib
from ._binding.nested import mapped
from ._tensors.operators import operate, users_line
from ._surface.missing import add_aliases, getter
from ._surface.registry import add_registry
from ._tensors.symbols import Tensor, find_tensor
from ._tensors.traces import tracing
from ._tensors.values import Readable, convert_to_tensor


class Loss(Described):
    """The base of all losses. Your own define call(y_true, y_pred): a value for each row, or
    more; or __call__, which reduces them, too."""

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
        """Of a class of the program's, or of the library's with a call of the program's."""
        return self.class_name is None or bool(self.overridden("call", "__call__"))

    @property
    def reduces(self):
        """Whether it is one of the program's own that overrides __call__."""
        return type(self).__call__ is not Loss.__call__

    @property
    def name(self):
        return self._config["name"] if self.class_name is None else self._name()

    @property
    def reduction(self):
        return self._config.get("reduction", "sum_over_batch_size")

    def call(self, y_true, y_pred):
        """The values that it reduces."""
        if self.class_name is None:
            raise NotImplementedError("%s has no method call" % type(self).__name__)
        if _symbolic(y_true, y_pred):
            return _symbol_of(self, (y_true, y_pred), True)
        return call_loss(self, y_true, y_pred, values=True)

    def _owned_loss(self):
        if self._made is None:
            self._made = Owned(self._pointer(), lib.cornu_loss_free)
        return self._made

    def _pointer(self):
        """The library's loss, which always reduces."""
        record = self.to_dict()
        if isinstance(record, dict) and self._unreduced:
            record["config"].pop("reduction", None)
        return lib.cornu_loss_from_json(json.dumps(record))

    @property
    def _unreduced(self):
        return self.reduction in (None, "none")

    def __getstate__(self):
        return {key: value for key, value in vars(self).items() if key != "_made"}

    def __call__(self, y_true, y_pred, sample_weight=None):
        """The loss of a batch, reduced as the loss says."""
        if self.is_own:
            return _reduced(self, y_true, y_pred, sample_weight)
        if _symbolic(y_true, y_pred, sample_weight):
            return _symbol_of(self, (y_true, y_pred, sample_weight), self._unreduced)
        if self._unreduced:
            return _weighted(call_loss(self, y_true, y_pred, values=True), sample_weight)[0]
        return call_loss(self, y_true, y_pred, sample_weight)


def _symbolic(*given):
    """Whether there is a symbolic tensor among them, or a weight that a layer's call reads."""
    found = find_tensor(given)
    return isinstance(found, Tensor) or tracing() is not None and isinstance(found, Readable)


def _symbol_of(loss, given, values):
    """The loss as a layer of a graph (model/traced/loss_layer.h), or the values that it reduces."""
    trace, given = tracing(), [x for x in given if x is not None]
    if trace is not None:
        given = [trace.tensor(x) for x in given]
    elif not all(isinstance(x, Tensor) for x in given):
        raise TypeError("%s: some of its tensors are symbolic, expected all; in %s"
                        % (loss.name, users_line()))
    name = (trace.unique_name if trace else unique_name)("loss")
    layer = lib.cornu_loss_layer(loss._pointer(), values, name)
    made = Tensor(lib.cornu_call_from(layer, *arguments(*[x.pointer for x in given])))
    if trace is not None:
        trace.note(json.dumps([loss.to_dict(), values]), given, made)
    return made


def _weighted(values, weight):
    """The values of a loss by their weights, which may have fewer axes; and the weights."""
    if weight is None:
        return values, None
    weight = operate("cast", weight, "float32")
    if weight.ndim == values.ndim + 1 and weight.shape[-1] == 1:
        weight = operate("squeeze", weight, -1)
    while weight.ndim < values.ndim:
        weight = operate("expand_dims", weight, -1)
    weight = weight * operate("ones_like", values)
    return values * weight, weight


def _converted(y, convert):
    """convert(y), or, of tensors in lists and dictionaries, of each: they may differ in shape."""
    return mapped(y, convert) if isinstance(y, (list, tuple, dict)) and is_of_arrays(y) else \
        convert(y)


def _reduced(loss, y_true, y_pred, sample_weight):
    """A loss of the program's own. Source: keras/src/losses/loss.py."""
    y_pred, y_true = _converted(y_pred, convert_to_tensor), \
        _converted(y_true, lambda y: operate("cast", y, "float32"))
    values, weight = _weighted(operate("cast", loss.call(y_true, y_pred), "float32"), sample_weight)
    if loss._unreduced or values.ndim == 0:
        return values
    if loss.reduction == "sum":
        return operate("sum", values)
    if loss.reduction == "mean_with_sample_weight" and weight is not None:
        return operate("divide_no_nan", operate("sum", values), operate("sum", weight))
    return operate("mean", values)


class LossFunctionWrapper(Loss):
    """A function of (y_true, y_pred) as a loss: LossFunctionWrapper(fn, name="a")."""

    def __init__(self, fn, reduction="sum_over_batch_size", name=None, dtype=None, **kwargs):
        super().__init__(name=name or getattr(fn, "__name__", None), reduction=reduction)
        self.fn, self._fn_kwargs = fn, kwargs

    def call(self, y_true, y_pred):
        return self.fn(*same_rank(y_true, y_pred), **self._fn_kwargs)

    def get_config(self):
        from .saving import serialize_keras_object
        return {**super().get_config(), "fn": serialize_keras_object(self.fn), **self._fn_kwargs}

    @classmethod
    def from_config(cls, config):
        from .saving import deserialize_keras_object
        return cls(**{**config, "fn": deserialize_keras_object(config["fn"])})


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
        key = json.dumps([name, given], default=str)
        if key not in _usual:
            _usual[key] = of(**given) if given and of else _Named(name)
            if given and not of:
                raise TypeError("%s: arguments are those of the function of the full name" % name)
        if _symbolic(y_true, y_pred):
            return _symbol_of(_usual[key], (y_true, y_pred), True)
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

__all__ = ["Loss", "LossFunctionWrapper"] + _classes + _functions
__all__ += add_registry("losses", Loss, globals(), _functions) + add_aliases("losses", globals())
__getattr__ = getter(__name__)
