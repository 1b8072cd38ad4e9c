"""Sequential models."""

import ctypes
import weakref

from .._binding.arrays import set_shape
from .._binding.described import Described, unique_name
from .._binding.library import lib, struct
from .._tensors.symbols import Tensor, input_config, set_extents
from .._own.changed import current
from ..layers import Layer, Weighted, by_address
from .models import Model


class Sequential(Model):
    """Layers in a row: Sequential([Input((28, 28)), Flatten(), Dense(10)]). Without an Input the
    first data build it."""

    _waiting = ()           # own layers, and those after them, until the data's shape is known
    _shaped = True          # whether it is
    _added = ()             # the objects of its layers
    _begun = None           # the Input

    def __init_subclass__(cls, **kwargs):
        if "call" in vars(cls) and not issubclass(cls, ExtendedSequential):
            cls.__bases__ = (ExtendedSequential, *cls.__bases__)
        super().__init_subclass__(**kwargs)

    def __init__(self, layers=None, name=None):
        self._pending, self._owned = name or unique_name("sequential"), None
        self._waiting, self._shaped, self._added = [], False, []
        self._reset()
        for layer in layers or []:
            self.add(layer)

    def _unknown(self):
        return bool(self._waiting)

    @property
    def name(self):
        return Model.name.fget(self) if self._owned else self._pending

    @property
    def layers(self):
        """The layers, also before the data's shape is known."""
        return [*(Model.layers.fget(self) if self._owned else []), *self._waiting]

    # Those of its first call, as in Keras; before it, its own.
    @property
    def input(self):
        return self._one(self.inputs) if self._first is None else Weighted.input.fget(self)

    @property
    def output(self):
        return self._one(self.outputs) if self._first is None else Weighted.output.fget(self)

    def _adopt(self, address, owner):
        super()._adopt(address, owner)
        self._waiting, self._shaped = [], True

    @Weighted.built.getter
    def built(self):
        return not self._waiting and Weighted.built.fget(self)

    def build(self, input_shape, dtype=None):
        """Makes the weights, for data of this shape; axis 0 is the batch."""
        waiting, self._waiting = self._waiting, []
        if dtype is not None and not waiting and not self.built:
            waiting, self._added = self._added, []      # begun for numbers, by default
        if waiting and not self._added:
            self._start((tuple(input_shape)[1:], None, dtype, None, None), keep=True)
        else:
            shape = lib.type("CornuShape")()
            set_shape(shape, tuple(input_shape)[1:])
            lib.cornu_model_build(self.pointer, shape)
        self._shaped = True
        for layer in waiting:
            self.add(layer)
        self._compile_known()

    def pop(self, rebuild=True):
        """Takes the last layer away, and returns it, before compile."""
        layers = self.layers
        if not layers:
            raise ValueError("%s: pop of a model without layers" % self._pending)
        if self._compiled is not None:
            raise ValueError("%s: pop after compile; expected before" % self.name)
        begun = self._begun
        self._owned, self._waiting, self._shaped, self._added = None, [], False, []
        self._reset()
        if begun is not None:
            self._start(begun)
        for layer in layers[:-1]:
            self.add(layer)
        return layers[-1]

    def _start(self, given=None, keep=False):
        self._begun = given
        config = struct("CornuSequentialConfig", name=self._pending)
        if given:
            self._shaped = True
            shape, batch_size, dtype, _, scale = given
            of = input_config(shape, batch_size, dtype, None, scale)
            config.batch_size, config.input_dtype = of.batch_size, of.dtype
            config.input_scale, config.input_scalar = of.scale, of.scalar
            set_extents(config.input_shape, shape)
        self._begin(lib.cornu_sequential_from(ctypes.byref(config)), keep)

    @property
    def pointer(self):
        if self._owned is None:
            self._start()
        return self._owned.address

    def add(self, layer):
        """Appends a layer, a model, or first the Input."""
        if isinstance(layer, Tensor):
            if self._owned is not None or not hasattr(layer, "_input"):
                raise ValueError("%s: a symbolic tensor is not a layer; an Input comes first"
                                 % self._pending)
            return self._start(layer._input)
        if isinstance(layer, type) and issubclass(layer, Described):
            raise TypeError("%s is a class; expected a layer, %s(…)" % (layer, layer.__name__))
        if not isinstance(layer, Weighted):
            raise TypeError("%r is not a layer of this package" % (layer,))
        layer = current(layer)
        own = layer._body if isinstance(layer, Model) else \
            layer if layer._is_traced or layer._waits else None
        late = isinstance(layer, Sequential) and layer._waiting     # it is built for the shape, too
        shape = vars(layer).get("_input_shape")
        if shape is not None and self._owned is None and not self._waiting:
            self._start((tuple(shape), None, None, None, None))     # Dense(10, input_shape=(8,))
        if self._waiting or ((own or late) and not self._shaped):
            self._waiting.append(layer)     # its call is traced once the shape is known
            return
        pointer = self.pointer
        if own or late:
            end = Tensor(lib.cornu_model_output(pointer, 0))
        if own:
            own._prepared([end], {})
        if late:
            layer.build(end.shape, None if "float" in end.dtype else end.dtype)
        address = layer._layer_pointer()
        if isinstance(layer, Layer):
            layer._calls += 1
        lib.cornu_model_add(pointer, address)
        self._added = [*self._added, layer]
        self._output_types = None
        by_address[address] = layer
        layer._model = layer._model or weakref.ref(self._owned.counted)
        if getattr(layer, "_after", None) is not None:
            self.add(layer._after)


class ExtendedSequential:
    """The base that a subclass of Sequential with a call of its own gets before it: a model of the
    program's own around a Sequential."""

    locals().update({name: getattr(Model, name) for name in vars(Sequential)
                     if hasattr(Model, name) and not name.startswith("__")})

    def __init__(self, layers=None, name=None, **kwargs):
        self._extend(Sequential(layers, name=name), name, **kwargs)

    def add(self, layer):
        self._base.add(layer)

    def pop(self, rebuild=True):
        return self._base.pop(rebuild)

    def build(self, input_shape):
        if not self._base.built:
            self._base.build(input_shape)
        Model.build(self, input_shape)

    layers = property(lambda self: self._base.layers)


__all__ = ["Sequential"]
