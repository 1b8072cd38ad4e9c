"""Layers of the program's own: subclasses of Layer, whose `call` is traced."""

import contextlib
import ctypes
import functools
import inspect
import json
import operator

import numpy as np

from .._binding.arrays import KERAS_NAMES, dtype_number
from .._models.assets import build_config_of
from .._models.configured import Configured, note_arguments
from .._binding.described import Described, plain, snake_case, unique_name
from .._tensors.extents import extents_of
from .._tensors.functions import Variable
from .input_spec import check_spec
from .._binding.library import Owned, arguments, lib, struct
from .._binding.nested import filled
from .._tensors.operators import users_line
from .callables import Objects, is_own
from .forms import Measured, Shaped, flat, numbers, shapes_of, type_of
from .._tensorflow import as_attribute
from .stored import note_change, stores_tensors
from .._tensors.symbols import Form, Tensor, find_tensor, made_by, operation, results
from .._tensors.traces import Trace, has_strings, in_trace_of, mark, tracing
from .._models.weighted import Weight, Weighted, attributes, by_address
from .._tensors.values import state

_MOST = lib.constants["CORNU_MAX_MODEL_TENSORS"]


def _kind(dtype):
    """The dtype of a weight in Python: one of whole numbers, or what floats are computed in."""
    name = "float32" if dtype is None else KERAS_NAMES[dtype_number(dtype)]
    return "float32" if "float" in name else name


class Traces:
    """What layers and models of the program's own have in common: a layer of the library that has
    their weights and the graphs of their calls."""

    _is_traced = True           # no class of the library's
    _traced = None              # the library's layer
    _building, _is_built = False, False
    _stores, _changes = False, 0        # attributes: see stored.py
    supports_masking = False
    _outside = None             # the trace of what the call that is prepared makes of strings
    _began = None               # the trace of get_initial_state, and whether it is to be added to
    _begins = False             # the library's layer

    def _start(self):
        self._own, self._signatures, self._symbols, self._variants = [], {}, {}, {}

    def _class(self):
        return type(self)

    def _ready(self):
        """The address of the library's layer, which is made if there is none."""
        if self._traced is None:
            kind = self._class()
            registered = getattr(kind, "_registered_name", None) or kind.__name__
            config = struct("CornuTracedConfig", class_name=kind.__name__, module=kind.__module__,
                            registered_name=registered, name=self.name,
                            supports_masking=bool(self.supports_masking),
                            frozen=not self._trains)
            if self._policy is not None:
                config.dtype = self._policy.encode("utf-8")
            made = lib.cornu_layer_take(lib.cornu_traced_from(ctypes.byref(config)))
            self._traced = Owned(made, lib.cornu_layer_free)
            by_address[self._traced.address] = self
        return self._traced.address

    # ---- Weights ----

    def add_weight(self, shape=None, initializer=None, dtype=None, trainable=True, autocast=True,
                   regularizer=None, constraint=None, aggregation="none", name=None):
        """A weight of the layer, in __init__ or build."""
        if isinstance(shape, str):          # Keras 2's order
            shape, name = initializer, shape
            initializer = None
        if tracing() is not None and tracing().layer is self and not self._building:
            raise ValueError("%s: a weight is added in call; add it in __init__ or build; in %s"
                             % (self.name, users_line()))
        shape = () if shape is None else tuple(shape) if np.iterable(shape) else (shape,)
        if any(extent is None for extent in shape):
            raise ValueError("%s: a weight of shape %s, expected known extents; in %s"
                             % (self.name, shape, users_line()))
        shape = tuple(operator.index(extent) for extent in shape)
        taken = {weight.name for weight in self._own}
        base = name or "variable"
        name, count = base, 0
        while name in taken:
            count += 1
            name = "%s_%d" % (base, count)
        made, values = self._initializer(initializer, shape, dtype)
        own, kind = Objects(), _kind(dtype)
        given = {"name": name, "shape": list(shape),
                 "trainable": bool(trainable) and kind == "float32", "initializer": made,
                 "regularizer": plain(own.walk(regularizer, own.regularizer)),
                 "constraint": plain(own.walk(constraint, own.constraint))}
        address = self._ready()
        if self._adopted:
            return self._known_weight(name, shape, kind)
        with own:
            symbol = Tensor(lib.cornu_traced_weight(address, json.dumps(given)), [self._traced])
        own.keep(address)
        weight = self._weight_at(len(self._own), kind)
        self._symbols[weight._address] = symbol
        self._own.append(weight)
        if values is not None:
            weight.assign(values)
        return weight

    def _weight_at(self, i, kind="float32"):
        layer = lib.type("CornuLayer").from_address(self._ready())
        return Weight((ctypes.c_void_p * layer.weight_count).from_address(layer.weights)[i], self,
                      kind)

    def __setattr__(self, name, value):
        old, own = vars(self).get(name), as_attribute(value)
        super().__setattr__(name, own)
        if isinstance(own, Variable) and self.class_name is None:
            own.belong_to(self)
            if own is not value:        # the layer's weight itself, as of add_weight
                super().__setattr__(name, own.of_layer)
        note_change(self, name, old, vars(self).get(name))

    @staticmethod
    def _initializer(given, shape, dtype):
        """As files have it, and the values where these are computed here."""
        if given is None:
            whole = dtype is not None and "float" not in str(dtype)
            return "zeros" if whole or str(dtype) == "bool" else "glorot_uniform", None
        if is_own(given):
            given = given(shape, dtype=dtype or "float32")
        elif isinstance(given, (str, Described)) or (isinstance(given, type)
                                                   and issubclass(given, Described)):
            return plain(given), None
        return "zeros", np.broadcast_to(np.asarray(given, np.float32), shape)

    def _sublayers(self):
        """The layers among the attributes, each once, by its path."""
        seen = set()
        return [(path, layer) for path, layer in attributes(self)
                if id(layer) not in seen and not seen.add(id(layer))]

    def add_loss(self, loss):
        """Adds a tensor to the model's loss; in call."""
        trace = tracing()
        if trace is None or trace.layer is not self:
            raise ValueError("%s: add_loss is called outside of call; in %s"
                             % (self.name, users_line()))
        for each in loss if isinstance(loss, (list, tuple)) else [loss]:
            trace.losses.append(trace.tensor(each))

    # ---- From files ----

    _adopted = False        # of a layer that the library has from a file

    def _adopt(self, address, owner):
        """Makes this new object the one of a layer from a file, with the layers in it."""
        self._forget(self._traced)
        self._traced, self._adopted = Owned(address, lambda _: None, owner), True
        by_address[address] = self
        before, self._own = self._own, []
        for weight in before:       # of __init__
            known = self._known_weight(weight.name, weight.shape)
            weight.__init__(known._address, self, weight.dtype)
        known = set()
        self._adopt_attributes(known, owner)
        config = build_config_of(self)
        if config is None:
            self._build_once(self._traced_shapes(), {})
        else:
            with _building(self):
                self.build_from_config(config)
            self._is_built = True
        self._adopt_attributes(known, owner)    # those made in build

    def _adopt_attributes(self, known, owner):
        for path, layer in self._sublayers():
            inner = None if id(layer) in known else lib.cornu_traced_layer(self._ready(), path)
            if inner:
                known.add(id(layer))
                layer._adopt(inner, owner)

    def _traced_shapes(self):
        """The operands of the first graph, as arguments of call."""
        text = lib.take_text(lib.cornu_layer_to_json(self._ready()))
        first = json.loads(text)["traced"]["graphs"][0]
        graph = first["graph"]["config"]
        ends = graph["input_layers"]
        names = [end[0] for end in (ends if isinstance(ends[0], list) else [ends])]
        shapes = {layer["name"]: layer["config"]["batch_shape"] for layer in graph["layers"]
                  if layer["class_name"] == "InputLayer"}
        given = [Shaped(shapes[name]) for name in names[:first["operands"]]]
        takes = [p.name for p in inspect.signature(self.call).parameters.values()
                 if p.name != "training" and p.kind is p.POSITIONAL_OR_KEYWORD]
        return [given] if len(given) > 1 and len(takes) == 1 else given

    def _known_weight(self, name, shape, kind="float32"):
        for i in range(lib.type("CornuLayer").from_address(self._ready()).own_count):
            weight = self._weight_at(i, kind)
            if weight.name == name and weight.shape == tuple(shape):
                self._own.append(weight)
                return weight
        raise ValueError("%s: the file has no weight %r of shape %s, which %s adds"
                         % (self.name, name, shape, type(self).__name__))

    # ---- Calls ----

    def build(self, *shapes, **named):
        """Override it to add weights that depend on the shapes of the call's tensors."""
        self._is_built = True

    def call(self, *args, **kwargs):
        raise NotImplementedError("%s has no method call" % type(self).__name__)

    def _check_cycles(self, around=()):
        for _, layer in self._sublayers():
            if layer is self or any(layer is outer for outer in around):
                raise ValueError("%s has an attribute that is %s, of which it is a part itself"
                                 % (self.name, layer.name))
            if layer._is_traced:
                layer._check_cycles((*around, self))

    def _number_names(self):
        """Gives layers of one name other ones, by which graphs and files tell them apart."""
        taken = set()
        for _, layer in self._sublayers():
            base, count = layer.name, 0
            while layer.name in taken and layer._rename("%s_%d" % (base, count + 1)):
                count += 1
            taken.add(layer.name)

    def _build_once(self, args, kwargs):
        if self._is_built:
            return
        self._check_cycles()
        self._number_names()
        names = [p.name for p in inspect.signature(self.build).parameters.values()
                 if p.kind is not p.VAR_POSITIONAL and p.kind is not p.VAR_KEYWORD]
        with _building(self):
            if len(names) > 1 or (names and names[0].endswith("_shape")
                                  and names[0] != "input_shape"):
                bound = inspect.signature(self.call).bind_partial(*args, **kwargs).arguments
                self.build(**{name + "_shape": shapes_of(value) for name, value in bound.items()
                              if name + "_shape" in names})
            else:
                self.build(shapes_of(args[0] if args else next(iter(kwargs.values()))))
        self._is_built = True

    def _reader(self, weight):
        known = self._symbols.get(weight._address)
        if known is None:
            address = lib.cornu_traced_read(self._ready(), weight._address)
            known = self._symbols[weight._address] = Tensor(address, [self._traced])
        return known

    def _run(self, args, kwargs, types, training):
        """A trace of the call on placeholders; and the form of what it returns."""
        if in_trace_of(self):
            raise ValueError("%s: its call calls it again, expected other layers; in %s"
                             % (self.name, users_line()))
        trace, tensors = Trace(self, self._reader, training), []
        with trace:
            inputs = self._placeholders(trace, types)
            if self._outside is not None:
                trace.replay(self._outside, inputs[self._outside.place:])
            if training is not None:
                kwargs = dict(kwargs, training=training)
            before = self._stored()
            made = self.call(*filled(args, inputs), **filled(kwargs, inputs))
            self._stores |= stores_tensors(self, before, trace)
            if made is None or inspect.isgenerator(made) or isinstance(made, (str, set)):
                raise ValueError("%s: call returns %.60r, expected tensors (%s.call)"
                                 % (self.name, made, type(self).__name__))
            if not isinstance(made, (list, tuple, dict)):
                made = trace.tensor(made)
            form = flat(made if isinstance(made, Tensor) else trace.symbols(made), tensors)
        if not tensors:
            raise ValueError("%s: call returns %.60r, which has no tensor (%s.call)"
                             % (self.name, made, type(self).__name__))
        if trace.measured:
            form = Measured(form, [(metric, len(of)) for metric, of in trace.measured])
            tensors += [tensor for _, of in trace.measured for tensor in of]
        for layer in trace.made:
            if layer.weights:
                raise ValueError("%s: %s is made in call, so that each call has weights of its "
                                 "own; make layers in __init__ or build"
                                 % (self.name, layer.name))
        return trace, inputs, tensors, form

    def _trace_outside(self, args, kwargs, tensors):
        """A trace that is dropped: of what the call makes of strings before it computes."""
        trace = Trace(self, self._reader)
        with trace:
            inputs = self._placeholders(trace, [(type_of(t), t._masked) for t in tensors])
            if self._training_matters():
                kwargs = dict(kwargs, training=False)
            self.call(*filled(args, inputs), **filled(kwargs, inputs))
        trace.place = len(tensors)
        if not tensors and not trace.brought:
            raise ValueError("%s: call makes no numbers of strings, as a StringLookup does "
                             "(%s.call)" % (self.name, type(self).__name__))
        return trace

    @staticmethod
    def placeholder(tensor):
        """The operand of a graph that such a tensor is."""
        return Tensor(lib.cornu_placeholder(type_of(tensor), "x"))

    def _placeholders(self, trace, types):
        made = []
        for i, (kind, masked) in enumerate(types):
            made.append(trace.begin(Tensor(lib.cornu_placeholder(kind, "x%d" % i))))
            made[-1]._masked = masked
        return made

    def _add_mask(self, args, kwargs, types):
        """The graph of an overridden compute_mask."""
        trace = Trace(self, self._reader)
        with trace:
            inputs = self._placeholders(trace, types)
            given = filled(args, inputs)[0] if args else next(iter(filled(kwargs, inputs).values()))
            of = given[0] if isinstance(given, (list, tuple)) else given
            mask = self.compute_mask(given, operation("mask_of", of) if of._masked else None)
            if mask is not None:
                masks = mask if isinstance(mask, (list, tuple)) else [mask]
                self._add(trace, inputs, [trace.tensor(each) for each in masks],
                          computes_mask=True)

    def _first_states(self, column):
        """Of a cell: tensors such as the states of get_initial_state, of which a graph is made;
        None where there are none."""
        if not hasattr(self, "get_initial_state"):
            return None
        if self._began is None:
            self._begins = True
            trace = Trace(self, self._reader)
            with trace:
                inputs = self._placeholders(trace, [(type_of(column), False)])
                made = self.get_initial_state(batch_size=extents_of(inputs[0])[0])
                made = [trace.tensor(each) for each in
                        (made if isinstance(made, (list, tuple)) else [made])]
            self._began = trace, inputs, made
        return self._began[2]

    def compute_mask(self, inputs, previous_mask=None):
        """The mask of the results: that of the operands if supports_masking is set."""
        return previous_mask

    def _makes_mask(self):
        return type(self).compute_mask is not Traces.compute_mask

    def _training_matters(self):
        parameters = inspect.signature(self.call).parameters
        return "training" in parameters

    def _usual_training(self, given):
        """What `training` is in a call on arrays or in a step that does not say it."""
        given = state.training if given is None else given
        if given is not None or not self._training_matters():
            return given
        usual = inspect.signature(self.call).parameters["training"].default
        return bool(usual) if isinstance(usual, (bool, int)) else None

    def _add(self, trace, inputs, tensors, **when):
        config = struct("CornuTracedGraphConfig", **when)
        values = list(trace.assigned.values())
        for name, given in (("inputs", inputs), ("outputs", tensors), ("losses", trace.losses),
                            ("values", [value for _, value in values])):
            if len(given) > _MOST:
                raise ValueError("%s: a call has %d %s, expected at most %d"
                                 % (self.name, len(given), name, _MOST))
            for i, tensor in enumerate(given):
                getattr(config, name)[i] = tensor.pointer
        own = [weight._address for weight in self._own]
        for i, (weight, _) in enumerate(values):
            if weight._address in own:
                config.assigned[i] = own.index(weight._address)
            else:
                config.assigned_of[i] = weight._address
        lib.cornu_traced_add_from(self._ready(), ctypes.byref(config))

    def _stored(self):
        """The attributes that a call may set."""
        return dict(vars(self))

    def _trace(self, args, kwargs, types):
        phases = [True, False] if self._training_matters() else [None]
        runs = [self._run(args, kwargs, types, phase) for phase in phases]
        ends = [(trace.calls, repr(form), trace.ends(tensors + trace.losses + [
            value for _, value in trace.assigned.values()]))
            for trace, _, tensors, form in runs]
        address = self._ready()
        for path, layer in self._sublayers():
            if layer._has_layer():
                lib.cornu_traced_attribute(address, layer._layer_pointer(), path)
        lib.cornu_traced_set_config(address, json.dumps(self._safe_config()))
        self._hold_parts(runs, args, kwargs, types)
        if len(runs) == 2 and ends[0] != ends[1]:
            if repr(runs[0][3]) != repr(runs[1][3]):
                raise ValueError("%s: call returns %s in training and %s otherwise, expected the "
                                 "same form" % (self.name, runs[0][3], runs[1][3]))
            self._add(*runs[0][:3], training_only=True)
            self._add(*runs[1][:3], inference_only=True)
        else:
            self._add(*runs[0][:3])
        if self._makes_mask():
            self._add_mask(args, kwargs, types)
        if self._begins:
            self._add(*self._began, computes_states=True)
            self._begins = False
        return runs[-1][3]

    def _hold_parts(self, runs, args, kwargs, types):
        """Before the graphs of these runs are added: makes layers parts that they do not call."""

    def _safe_config(self):
        try:
            return plain(self.get_config() or {})
        except (TypeError, ValueError, NotImplementedError):
            return {}       # files say that the class lacks get_config by what they lack

    def _prepared(self, args, kwargs):
        """The tensors of a call, for which the layer is built and traced, and the form of its
        result."""
        tensors = []
        kwargs = {key: value for key, value in kwargs.items() if key != "training"}
        first = next(iter([*args, *kwargs.values()]), None)
        if isinstance(first, Tensor) and first._masked and kwargs.get("mask") is None and \
                len(args) < 2 and "mask" in inspect.signature(self.call).parameters:
            kwargs["mask"] = operation("mask_of", first)    # what the tensor brings along
        args, kwargs = numbers(list(args), tensors), numbers(kwargs, tensors)
        self._outside = None
        if not tensors and not has_strings([args, kwargs]):
            raise TypeError("%s: called without a tensor; in %s" % (self.name, users_line()))
        self._build_once(filled(args, tensors), filled(kwargs, tensors))
        if has_strings([args, kwargs]):
            self._outside = self._trace_outside(args, kwargs, tensors)
            tensors += self._outside.brought
        static, address = repr((args, kwargs)), self._ready()
        if static in self._variants:
            tensors.append(mark(tensors[0], self._variants[static]))
        types = [(type_of(tensor), tensor._masked) for tensor in tensors]
        key = static, tuple((t.dtype, *t.shape) for t in tensors)
        if key not in self._signatures:
            check_spec(self, tensors)
            known = (lib.type("CornuType") * len(types))(*[kind for kind, _ in types])
            takes = lib.cornu_traced_takes(address, ctypes.addressof(known), len(types))
            same = next((form for (text, _), form in self._signatures.items() if text == static),
                        None) if takes else None
            if takes and self._adopted and (not self._signatures or static in self._variants):
                same = self._run(args, kwargs, types,
                                 False if self._training_matters() else None)[3]
            if takes and same is None:      # with other arguments than before, such as numbers
                self._variants[static] = len(self._variants) + 1
                return self._prepared(filled(args, tensors), filled(kwargs, tensors))
            self._signatures[key] = same if takes else self._trace(args, kwargs, types)
        return tensors, self._signatures[key]

    def _called(self, args, kwargs):
        """The result of a call on symbolic tensors, in the form that call returns it."""
        if self._changes:
            from .changed import current
            return current(self)._called(args, kwargs)
        tensors, form = self._prepared(args, kwargs)
        address, outer, training = self._ready(), tracing(), kwargs.get("training")
        if training is None or (outer is not None and outer.training == bool(training)):
            training = None     # that of the step
            made = lib.cornu_call_from(address, *arguments(*[t.pointer for t in tensors]))
        else:
            call = Form()
            text = json.dumps({"args": call(tensors), "kwargs": {"training": bool(training)}})
            made = lib.cornu_call_from_json(address, text, *call.pointers())
        if self._first is None:
            self._first = Tensor(made)
        made = made_by(self, tensors, results(made))
        if self._makes_mask() or (self.supports_masking and tensors[0]._masked):
            for tensor in made if isinstance(made, list) else [made]:
                tensor._masked = True
        if outer is not None:
            outer.note("%d %s" % (address, training), tensors, made)
            outer.called.update(self._addresses())
        made = made if isinstance(made, list) else [made]
        if isinstance(form, Measured):
            measured, form = form.of(made), form.form
            if outer is not None:
                outer.measured += measured
            for tensor in made:
                tensor._measured = measured
        return filled(form, made)


def made_of_config(kind, config):
    """An object of a class that a file names, of the arguments that its __init__ takes where
    get_config is Layer's."""
    if kind.from_config.__func__ in (Layer.from_config.__func__, Configured.from_config.__func__):
        takes = inspect.signature(kind.__init__).parameters.values()
        if not any(p.kind is p.VAR_KEYWORD for p in takes):
            known = {p.name for p in takes}
            config = {key: value for key, value in config.items()
                      if key in known or key not in ("name", "trainable", "dtype")}
    return kind.from_config(config)


def _noted(build):
    """A build after which the layer is built, also where a program calls it."""
    @functools.wraps(build)
    def call(self, *args, **kwargs):
        with _building(self):
            build(self, *args, **kwargs)
        self._is_built = True
    return call


@contextlib.contextmanager
def _building(layer):
    """While a layer is built. What it makes is not made in the call that is being traced."""
    before, layer._building = layer._building, True
    made = tracing().made if tracing() is not None else []
    count = len(made)
    weightless = layer._is_traced and not layer._own
    try:
        yield
    except BaseException:
        if weightless and not layer._adopted and not layer._signatures:
            layer._traced = None        # the next build would add its weights twice
            layer._start()
        raise
    finally:
        layer._building = before
        del made[count:]


class Layer(Traces, Weighted):
    """The base of all layers. A subclass has __init__, build, which adds weights, and call, which
    is run once for each kind of operands, on symbolic tensors."""

    description = {}

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if cls.class_name is None and "build" in vars(cls):
            cls.build = _noted(cls.build)

    def __new__(cls, *args, **kwargs):
        made = object.__new__(cls)
        made._calls, made._owned, made._wrappers, made._arguments = 0, None, {}, None
        if cls.class_name is None:
            made._start()
            made._own_name, made._trains, made._policy = None, True, None
            note_arguments(made, args, kwargs)
            outer = tracing()
            if outer is not None:
                outer.made.append(made)
        return made

    class_name = None       # of one of the library

    def __init__(self, *, activity_regularizer=None, trainable=True, dtype=None, autocast=True,
                 name=None, **kwargs):
        unknown = set(kwargs) - {"input_shape", "input_dim", "batch_size", "batch_input_shape"}
        if unknown:
            raise TypeError("%s: unexpected argument %s; expected name, dtype, trainable"
                            % (type(self).__name__, ", ".join(sorted(unknown))))
        if activity_regularizer is not None:
            raise NotImplementedError("%s: activity_regularizer of a class of your own; call "
                                      "self.add_loss in call" % type(self).__name__)
        self._own_name, self._trains = name, bool(trainable)
        self._policy = None if dtype is None else plain(dtype)
        if isinstance(self._policy, dict):
            self._policy = self._policy["config"]["name"]
        if self._traced is not None and not trainable:
            lib.cornu_layer_set_trainable(self._traced.address, False)

    @property
    def name(self):
        if self._own_name is None:
            self._own_name = unique_name(snake_case(type(self).__name__))
        return self._own_name

    def _rename(self, name):
        """Another name, of a layer that is not in use yet; whether it has it."""
        if self._traced is None:
            self._own_name = name
        return self._traced is None

    def _layer_pointer(self):
        return self._ready()

    def _has_layer(self):
        return self._traced is not None

    @property
    def built(self):
        return self._is_built

    @built.setter
    def built(self, value):
        self._is_built = bool(value)

    @property
    def weights(self):
        found, seen = [], set()
        own = sorted(self._own, key=lambda w: not w.trainable)
        for weight in own + [w for _, layer in self._sublayers() for w in layer.weights]:
            if weight._address not in seen:
                seen.add(weight._address)
                found.append(weight)
        return found

    @property
    def trainable(self):
        return self._trains

    @trainable.setter
    def trainable(self, value):
        self._trains = bool(value)
        if self._traced is not None:
            lib.cornu_layer_set_trainable(self._traced.address, bool(value))
        for _, layer in self._sublayers():
            layer.trainable = value

    @property
    def trainable_weights(self):
        if not self._trains:
            return []
        return [w for w in self.weights if w.trainable]

    def get_config(self):
        """The arguments of __init__; override it if they are not values that a file holds."""
        config = {"name": self.name, "trainable": self._trains, "dtype": self._policy}
        if type(self).get_config is Layer.get_config:
            config.update(self._arguments or {})
        return {key: value for key, value in config.items() if value is not None}

    @classmethod
    def from_config(cls, config):
        return cls(**config)

    def to_dict(self):
        kind = type(self)
        return {"module": kind.__module__, "class_name": kind.__name__,
                "config": plain(self.get_config() or {}),     # one without return
                "registered_name": getattr(kind, "_registered_name", None) or kind.__name__}

    @property
    def dtype_policy(self):
        return self._policy

    @property
    def compute_dtype(self):
        return self._policy.rpartition("mixed_")[2] if self._policy else "float32"

    dtype = variable_dtype = "float32"

    def compute_output_shape(self, *shapes, **named):
        """By a trace, for these shapes."""
        from .._tensors.symbols import input_tensor
        made = self(*[input_tensor(shape[1:]) for shape in shapes],
                    **{key.rpartition("_shape")[0]: input_tensor(shape[1:])
                       for key, shape in named.items()})
        return shapes_of(made)

    def __call__(self, *args, **kwargs):
        """Calls the layer on symbolic tensors, on arrays, which computes at once, or, in a
        function, on recorded tensors."""
        trace = tracing()
        if trace is not None:
            made = trace.of_strings([args, kwargs], lambda: self(*args, **kwargs))
            if made is not NotImplemented:
                return made
            args, kwargs = trace.symbols(list(args)), trace.symbols(kwargs)
        elif not isinstance(find_tensor([*args, *kwargs.values()]), Tensor):
            from .._tensors.calls import call_layer
            kwargs["training"] = self._usual_training(kwargs.get("training"))
            return call_layer(self, args, {k: v for k, v in kwargs.items() if v is not None})
        self._calls += 1
        return self._called(args, kwargs)

    def __reduce__(self):
        if self.weights:
            raise TypeError("%s: a layer with weights is copied and pickled with its model"
                            % self.name)
        return type(self).from_config, (self.get_config(),)

    def __repr__(self):
        return "<%s name=%s, built=%s>" % (type(self).__name__, self.name, self.built)
