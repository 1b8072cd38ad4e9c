"""Classes made from what the library says that files can hold (nn/saving/describe.h)."""

import inspect
import json
import re
import threading
import warnings

import numpy as np

from .library import lib
from .._surface.missing import missing_attribute

described = json.loads(lib.take_text(lib.cornu_classes_to_json()))
_counts, _counts_lock = {}, threading.Lock()


def next_count(label):
    """0, 1, … for each label, counted over the program."""
    with _counts_lock:
        count = _counts[label] = _counts.get(label, -1) + 1
    return count


def unique_name(label):
    """Keras' default names: dense, dense_1, …"""
    count = next_count(label)
    return label if count == 0 else "%s_%d" % (label, count)


def reset_names():
    with _counts_lock:
        _counts.clear()


def snake_case(name):
    """Conv2DTranspose is conv2d_transpose. Source: keras/src/utils/naming.py."""
    name = re.sub(r"(.)([A-Z][a-z]+)", r"\1_\2", re.sub(r"\W+", "", name))
    return re.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower()


def slice_form(start, stop, step):
    """A slice as Keras' JSON has it."""
    return {"class_name": "__slice__", "config": {"start": start, "stop": stop, "step": step}}


def plain(value):
    """A value as JSON has it: objects as Keras' {"class_name", "config"}, arrays as lists."""
    if isinstance(value, Described) and not value.is_own:
        return value.to_dict()
    if hasattr(value, "dtype") and hasattr(value, "tolist"):
        return value.tolist()
    if hasattr(value, "__array__") and hasattr(value, "dtype"):     # of another package
        return np.asarray(value).tolist()
    if hasattr(value, "as_numpy_dtype"):    # TensorFlow's
        return value.name
    if isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(value, np.generic)):
        return np.dtype(value).name
    if isinstance(value, slice):
        return slice_form(plain(value.start), plain(value.stop), plain(value.step))
    if value is Ellipsis:
        return {"class_name": "__ellipsis__", "config": {}}
    if isinstance(value, dict):
        return {str(key): plain(v) for key, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, type) and issubclass(value, Described):
        return value().to_dict()
    if callable(value) and getattr(value, "_cornu_name", None):
        return value._cornu_name
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if callable(value) and getattr(collecting, "own", None):
        return collecting.own(value)
    if hasattr(value, "to_json"):       # a model
        return json.loads(value.to_json())
    if hasattr(value, "to_dict"):
        return value.to_dict()
    raise TypeError("%r is not a value that a file can hold: expected a number, a string, a list, "
                    "or an object of this package; or one whose class has get_config"
                    % (value,))


class Collecting:
    """Within it, functions and classes of the program's own become what `own` makes of them."""

    def __init__(self, own):
        self._own = own

    def __enter__(self):
        self._before, collecting.own = getattr(collecting, "own", None), self._own

    def __exit__(self, *_):
        collecting.own = self._before


collecting = threading.local()


_RENAMED = {("LeakyReLU", "alpha"): "negative_slope"}


class Described:
    """An object of a class of the library, by its arguments."""

    class_name = None
    is_own = False      # of a class that the program wrote and the library calls
    field_names = ()

    def __init__(self, *args, **kwargs):
        if self.class_name is None:
            raise TypeError("%s is not a class to make objects of" % type(self).__name__)
        if len(args) > len(self.field_names):
            raise TypeError("%s takes %d positional arguments, %d are given"
                            % (self.class_name, len(self.field_names), len(args)))
        self._config = dict(zip(self.field_names, args))
        for name, value in kwargs.items():
            name = self._renamed(name)
            if name in self._config:
                raise TypeError("%s: %s is given twice" % (self.class_name, name))
            self._config[name] = value

    def _renamed(self, name):
        """Keras' name of an argument that had another one in Keras 2, which Keras still takes."""
        new = _RENAMED.get((self.class_name, name), name)
        if new != name:
            warnings.warn("%s: the argument %s is deprecated, use %s"
                          % (self.class_name, name, new), stacklevel=4)
        return new

    def __getattr__(self, name):
        return missing_attribute(self, name)

    @classmethod
    def overridden(cls, *names):
        """Those that the program's subclass of a class of the library defines itself."""
        below = cls.__mro__[:next((i for i, kind in enumerate(cls.__mro__)
                                   if "description" in vars(kind)), 0)]
        return [name for name in names if any(name in vars(kind) for kind in below)]

    def to_dict(self):
        """Keras' {"class_name", "config"}."""
        return {"class_name": self.class_name, "config": plain(self._config)}

    def get_config(self):
        """The arguments that were given."""
        return plain(self._config)

    @classmethod
    def from_config(cls, config):
        return cls(**config)

    def _name(self):
        """As logs have it: the argument, or the usual name of the class."""
        return self._config.get("name") or self.description["name"]

    def __repr__(self):
        given = ", ".join("%s=%r" % pair for pair in self._config.items())
        return "<cornu %s(%s)>" % (self.class_name, given)


class OwnCalled(Described):
    """An object of a class of the library, or of the program's own, which is called."""

    def __init__(self, *args, **kwargs):
        if self.class_name is not None:
            super().__init__(*args, **kwargs)

    @property
    def is_own(self):
        return self.class_name is None or bool(self.overridden("__call__"))

    def get_config(self):
        if self.class_name is None:
            raise NotImplementedError("%s has no get_config" % type(self).__name__)
        return super().get_config()


class Written:
    """A default that is an object, as a program writes it."""

    def __init__(self, text):
        self._text = text

    def __repr__(self):
        return self._text


def _named(value):
    """An object of Keras' JSON: 'glorot_uniform', or RandomUniform(minval=-1) if its arguments are
    not those by default."""
    name, config = value["class_name"], value.get("config", {})
    entry = next((entry for kind in ("initializers", "regularizers", "constraints", "layers")
                  for entry in described[kind] if entry["class_name"] == name), {"fields": []})
    usual = {field["name"]: field.get("default") for field in entry["fields"]}
    own = ["%s=%r" % (key, as_written(v)) for key, v in config.items()
           if key in usual and v != usual[key]]
    if own or "name" not in entry:
        return Written("%s(%s)" % (name, ", ".join(own)))
    return entry["name"]


def as_written(value):
    """A default of JSON as a program of Python writes it: tuples, and names of objects."""
    if isinstance(value, dict) and "class_name" in value:
        return _named(value)
    if isinstance(value, list):
        return tuple(as_written(v) for v in value)
    return value


def _signature(fields):
    parameters = []
    for field in fields:
        usual = inspect.Parameter.empty if field.get("required") else \
            as_written(field.get("default"))
        # A required argument after another one, as in EinsumDense, is one of Keras' by name.
        if usual is inspect.Parameter.empty and any(p.default is not usual for p in parameters):
            usual = None
        parameters.append(inspect.Parameter(field["name"], inspect.Parameter.POSITIONAL_OR_KEYWORD,
                                            default=usual))
    parameters.append(inspect.Parameter("kwargs", inspect.Parameter.VAR_KEYWORD))
    return inspect.Signature(parameters)


# What the types of describe.h are in Python; of others the name says it.
_TYPES = {"integer": "int", "number": "float", "flag": "bool", "text": "str", "single": "int",
          "pair": "int or two of them", "triple": "int or three of them", "texts": "list of str",
          "integers": "list of int", "numbers": "list of float", "strings": "list of str",
          "shape": "tuple of int"}


def _type_name(kind):
    word, _, rest = kind.partition("_or_")
    return " or ".join([_TYPES.get(word, word)] + {"none": ["None"], "default": []}.get(
        rest, [rest] if rest else []))


def _documentation(entry):
    lines = ["Keras' %s, as libcornu has it." % entry["class_name"], ""]
    for field in entry["fields"]:
        text = "    %s: %s" % (field["name"], _type_name(field["type"]))
        if field.get("choices"):
            text = "    %s: one of %s" % (field["name"],
                                          ", ".join(repr(c) for c in field["choices"]))
        if field.get("required"):
            text += "; required"
        elif "default" in field:
            text += "; default %r" % (as_written(field["default"]),)
        lines.append(text)
    return "\n".join(lines)


def make_classes(kind, base, module, bases_of=lambda entry: ()):
    """Adds a subclass of `base` for each class of a kind to a module; returns their names.
    bases_of(entry) are further ones, before it."""
    names = []
    for entry in described[kind]:
        made = type(entry["class_name"], (*bases_of(entry), base), {
            "__doc__": _documentation(entry), "__module__": module["__name__"],
            "class_name": entry["class_name"], "description": entry,
            "field_names": tuple(field["name"] for field in entry["fields"]),
            "__signature__": _signature(entry["fields"])})
        module[entry["class_name"]] = made
        names.append(entry["class_name"])
    return names
