"""Subclasses of the library's layers that override what these compute: class Twice(layers.Dense)
with a call of its own.

Such a class is one of the program's own, which is traced, around a layer of the library: `super()`
is that layer, which has the weights and the arguments.
"""

from .._tensors.calls import leaves
from .._binding.nested import filled
from .._tensors.symbols import operation
from .traced import Layer, Traces
from .._tensors.traces import Trace

# What layers of Keras call of themselves beside their public methods.
_HOOKS = {"convolution_op", "_compute_attention", "_compute_attention_mask", "_masked_softmax",
          "_calculate_scores", "_apply_scores"}
_OF_LAYER = {name: member for kind in (Traces, Layer) for name, member in vars(kind).items()
             if name != "description" and
             (not name.startswith("__") or name in ("__call__", "__reduce__", "__repr__"))}


def overrides(kind, base):
    """The methods of a layer of the library that a subclass has of its own."""
    return {name for name in vars(kind)
            if not name.startswith("__") and (name in _HOOKS or hasattr(base, name))}


class Extended:
    """The base that such a class gets before the library's: what layers of the program's own do,
    and the methods that `super()` finds."""

    locals().update(_OF_LAYER)
    class_name = None
    _base = None               # the library's layer

    def __init__(self, *args, name=None, trainable=True, dtype=None, **kwargs):
        Layer.__init__(self, name=name, trainable=trainable, dtype=dtype)
        if dtype is not None:
            kwargs["dtype"] = dtype
        self._base = library_class(type(self))(*args, name=self.name, **kwargs)
        self._input_shape = self._base._input_shape
        if not trainable:
            self._base.trainable = False

    def __getattr__(self, name):
        inner = self.__dict__.get("_base")
        if inner is None or name.startswith("__"):
            raise AttributeError("%s has no attribute %r" % (type(self).__name__, name))
        return getattr(inner, name)

    def build(self, *shapes, **named):
        shapes = [shape for shape in (*shapes, *named.values()) if shape is not None]
        if not self._base.built and not self._base._waits:
            self._base.build(shapes[0] if len(shapes) == 1 else shapes)

    def call(self, *args, **kwargs):
        return self._base(*args, **kwargs)

    def get_config(self):
        """The library's arguments, or, of a class without a get_config, those of its __init__."""
        own = Layer.get_config(self)
        if type(self).get_config is Extended.get_config and \
                type(self).__init__ is not Extended.__init__:
            return {**own, **(self._arguments or {})}
        return {**self._base.get_config(), **own}

    def compute_output_shape(self, *shapes, **named):
        if type(self).call is Extended.call:
            return self._base.compute_output_shape(*shapes, **named)
        return Layer.compute_output_shape(self, *shapes, **named)

    @property
    def weights(self):
        """Those of the library's layer come first among the trainable ones, and among others."""
        inner = {w._address: w for w in self._base.weights} if self._base is not None else {}
        found = {**inner, **{w._address: w for w in Layer.weights.fget(self)}}
        return sorted(found.values(), key=lambda w: not w.trainable)

    # ---- Masks: those of the library's layer ----

    @property
    def supports_masking(self):
        config = getattr(self._base, "_config", None) or {}
        return config.get("return_sequences", "return_sequences" not in self.field_names)

    def compute_mask(self, inputs, previous_mask=None):
        made = self._base(inputs)
        return operation("mask_of", made) if self._base._makes_mask() else previous_mask

    def _makes_mask(self):
        return type(self).compute_mask is not Extended.compute_mask or self._base._makes_mask()

    # ---- Tracing ----

    def _build_once(self, args, kwargs):
        if type(self).build is not Extended.build:
            return Layer._build_once(self, args, kwargs)
        if not self._is_built:
            own = self._base.description.get("call_arguments", "").split()
            self._base._configure({key: kwargs[key] for key in own if key in kwargs})
            operands = [args, {key: v for key, v in kwargs.items() if "mask" not in key}]
            self.build(*[leaf.shape for leaf in leaves(operands) if hasattr(leaf, "shape")])
            self._is_built = True

    def _hold_parts(self, runs, args, kwargs, types):
        """Makes the library's layer a part of this one where a call reads its weights and does not
        call it: by a graph that is never run."""
        if not self._base.built:
            return
        mark = "%d " % self._base._layer_pointer()
        if any(what.startswith(mark) for run in runs for what, _ in run[0].calls):
            return
        trace = Trace(self, self._reader)
        with trace:
            inputs = self._placeholders(trace, types)
            made = self._base(*filled(args, inputs), **filled(kwargs, inputs))
            self._add(trace, inputs, leaves(made)[:1], training_only=True, inference_only=True)


def extended_base(kind, base):
    """The base that a subclass of a class of the library gets before this: `base`, with what the
    library's layer has beside what all layers have."""
    library = library_class(kind)
    if library not in _bases:
        more = library.__mro__[:library.__mro__.index(Layer)]
        names = {name for each in more for name in vars(each) if not name.startswith("_")}
        _bases[library] = type("Extended" + library.__name__, (base,), {
            name: property(lambda self, name=name: getattr(self._base, name))
            for name in names - set(dir(base)) - {"description", "field_names"}})
    return _bases[library]


_bases = {}


def library_class(kind):
    """The class of the library that a class of the program's extends."""
    return next(base for base in kind.__mro__ if "description" in vars(base))
