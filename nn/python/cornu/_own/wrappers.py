"""Layers of the library that wrap others: TimeDistributed, Bidirectional, RNN and its cells.

The library's layer has the wrapped ones themselves, not copies of them. One of the program's own,
or a wrapper of such, is traced for the operands of a call, and so the library's layer of its
wrapper is made when it is first called.
"""

import ctypes

from .._binding.arrays import dtype_number, set_shape
from .._binding.described import Described
from .._binding.library import lib
from .._tensors.operators import users_line
from .._tensors.symbols import Tensor
from .forms import type_of
from .traced import made_of_config
from .._models.weighted import Weighted, by_address

# Keras' attributes for the wrapped layers, in their order, where these are not the arguments.
_ATTRIBUTES = {"Bidirectional": ("forward_layer", "backward_layer")}


def _listed(value):
    return list(value) if isinstance(value, (list, tuple)) else [value]


def layer_fields(description):
    """The names of arguments that are layers."""
    return [field["name"] for field in description["fields"]
            if field["type"] in ("layer", "layers")]


def is_late(layer):
    """Whether the library's layer is made for the operands of a call."""
    return layer._is_traced or layer._waits or \
        (hasattr(layer, "compile") and not layer.built)


def like(tensor, *shape):
    """A tensor of another shape and the same dtype."""
    kind = type_of(tensor)
    set_shape(kind.shape, shape)
    return Tensor(lib.cornu_placeholder(kind, "x"))


def trace(layer, x):
    """Makes a layer ready for calls on tensors such as x."""
    if not hasattr(layer, "compile"):
        if is_late(layer):
            layer._prepared([x], {})
    elif layer._body:       # of a model of the program's own
        layer._body._prepared([x], {})
    elif not layer.built:
        layer.build(x.shape)


def copy_of(layer):
    """A layer of the same arguments."""
    if layer._is_traced:
        return made_of_config(type(layer), layer.get_config())
    config = {name: copy_of(value) if isinstance(value, Weighted) else
              [copy_of(each) for each in value] if name == "cells" else value
              for name, value in layer._config.items()}
    return type(layer)(**config)


def _trace_cell(cell, x):
    """Likewise a cell for steps such as x."""
    if cell._is_traced:
        states = cell._first_states(like_shape((None, 1))) or \
            [like_shape((None, *_listed(size))) for size in _listed(cell.state_size)]
        return cell._prepared([x, states], {})
    for each in getattr(cell, "_wrapped", ()):      # one after another
        _trace_cell(each, x)
        made = getattr(each, "output_size", None) or _listed(getattr(
            each, "state_size", None) or each.units)[0]
        x = like(x, None, *_listed(made))
    if cell._waits:
        cell._make_late()


class Wraps:
    """The part of layers that wrap others."""

    _wrapped = ()       # the layers, where this object made them the library's

    def _make(self):
        fields = layer_fields(self.description)
        for name in fields:
            self._config[name] = self._given(self._config.get(name))
        wrapped = [layer for name in fields for layer in _listed(self._config[name])
                   if isinstance(layer, Weighted)]
        self._waits = any(is_late(layer) for layer in wrapped)
        if self.class_name == "Bidirectional":      # which makes two of one
            wrapped = self._both(*wrapped) if self._waits else []
        self._wrapped = wrapped
        if not self._waits:
            super()._make()

    @staticmethod
    def _given(value):
        """Layers of the arguments, which Keras' configs have as dictionaries."""
        if isinstance(value, dict) and "class_name" in value:
            from ..saving import deserialize_keras_object
            return deserialize_keras_object(value)
        if isinstance(value, (list, tuple)):
            return [Wraps._given(each) for each in value]
        return value

    def _both(self, forward, backward=None):
        if backward is None:
            backward = copy_of(forward)
            backward._config["go_backwards"] = not forward._config.get("go_backwards")
            backward._config["name"] = "backward_" + forward.name
        self._config["layer"], self._config["backward_layer"] = forward, backward
        return [forward, backward]

    def _make_late(self):
        if self._owned is None:
            super()._make()

    def _passes_objects(self):
        return bool(self._wrapped) or super()._passes_objects()

    def _own_arguments(self, own):
        config = super()._own_arguments(own)
        for name in layer_fields(self.description) if self._wrapped else ():
            value = config.get(name)
            if isinstance(value, list):
                config[name] = [own.layer(layer) for layer in value]
            elif value is not None:
                config[name] = own.layer(value)
        return config

    # ---- Before the library's layer is made ----

    def _prepared(self, args, kwargs):
        """Makes the wrapped layers ready for a call on these, and the library's layer."""
        tensor = args[0] if args else next(iter(kwargs.values()))
        if not isinstance(tensor, Tensor):
            raise TypeError("%s: called on %s, expected a tensor; in %s"
                            % (self.name, type(tensor).__name__, users_line()))
        if self.class_name == "RNN":
            _trace_cell(self._wrapped[0], like(tensor, None, *tensor.shape[2:]))
        else:
            x = like(tensor, None, *tensor.shape[2:]) if self.class_name == "TimeDistributed" \
                else tensor
            for layer in self._wrapped:
                trace(layer, x)
        self._make_late()

    def _called(self, args, kwargs):
        if self._waits:
            self._prepared(args, kwargs)
        return super()._called(args, kwargs)

    def _has_layer(self):
        return self._owned is not None

    def _layer_pointer(self):
        if self._owned is None:
            raise ValueError("%s: wraps a layer of the program's own, which is traced by a call; "
                             "call it first; in %s" % (self.name, users_line()))
        return self._owned.address

    @property
    def name(self):
        return super().name if self._owned is not None else self._config["name"]

    @property
    def weights(self):
        return super().weights if self._owned is not None else []

    @Weighted.built.getter
    def built(self):
        return self._owned is not None and super().built

    def get_config(self):
        return super().get_config() if self._owned is not None else Described.get_config(self)

    def build(self, input_shape):
        if self._waits:
            shape = tuple(input_shape)
            self._prepared([like_shape(shape)], {})
        super().build(input_shape)

    # ---- The wrapped layers ----

    def _inner(self):
        """The objects for the wrapped layers of the library's layer, in their order."""
        if self._owned is None or self._wrapped:
            return list(self._wrapped)
        return self._views()

    def _views(self):
        layer = self._layer()
        addresses = (ctypes.c_void_p * layer.inner_count).from_address(layer.inner)
        return [self._layer_at(address) for address in addresses]

    def _layer_at(self, address):
        if lib.cornu_as_model(address) and address not in by_address:
            from .._models.models import Model
            return Model._layer_at(self, address)
        return type(self)._view(address, self._owned)

    def _adopt(self, address, owner):
        super()._adopt(address, owner)
        layer = self._layer()
        addresses = (ctypes.c_void_p * layer.inner_count).from_address(layer.inner)
        for wrapped, inner in zip(self._wrapped, addresses):
            wrapped._adopt(inner, owner)

    def _argument(self, name):
        words = _ATTRIBUTES.get(self.class_name, ())
        if name in words:
            return self._inner()[words.index(name)]
        if name in layer_fields(self.description):
            inner = self._inner()
            return inner if name == "cells" else inner[int(name == "backward_layer")]
        return super()._argument(name)

    def __getattr__(self, name):
        if name in _ATTRIBUTES.get(self.class_name, ()) or name in layer_fields(self.description):
            return self._argument(name)
        return super().__getattr__(name)


def like_shape(shape):
    kind = lib.type("CornuType")()
    kind.dtype = dtype_number("float32")
    set_shape(kind.shape, (None, *shape[1:]))
    return Tensor(lib.cornu_placeholder(kind, "x"))
