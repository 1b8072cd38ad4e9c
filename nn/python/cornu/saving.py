"""Keras' keras.saving: files, objects as JSON, and the classes and functions that these name."""

import inspect
import json
import os
import threading

import numpy as np

from ._binding.described import Described
from ._surface.missing import getter

_global_objects = {}    # by registered name, and by the names that programs give
_names = {}             # the registered name of a class or function
_scopes = threading.local()


# ---- Objects of one's own ----

def get_custom_objects():
    """The objects that a file may name, by name, for the whole program; it can be changed."""
    return _global_objects


class CustomObjectScope:
    """with custom_object_scope({"MyLayer": MyLayer}): what files name within it, by this thread."""

    def __init__(self, custom_objects):
        self.custom_objects = custom_objects or {}

    def __enter__(self):
        stack = _scopes.__dict__.setdefault("stack", [])
        stack.append(dict(self.custom_objects))
        return self

    def __exit__(self, *exception):
        _scopes.stack.pop()


custom_object_scope = CustomObjectScope


def in_scope():
    """Whether this thread is within a scope that names objects."""
    return any(_scopes.__dict__.get("stack", []))


def register_keras_serializable(package="Custom", name=None):
    """A decorator of classes and functions that files may name: "package>name"."""
    def register(made):
        if inspect.isclass(made) and not hasattr(made, "get_config"):
            raise ValueError("register_keras_serializable: the class %s has no get_config"
                             % made.__name__)
        known = "%s>%s" % (package, name or made.__name__)
        _global_objects[known], _names[made] = made, known
        if inspect.isclass(made):
            made._registered_name = known       # which files keep
        return made
    return register


def get_registered_name(obj):
    """"package>name" of a registered class or function, else its own name."""
    return _names.get(obj, getattr(obj, "__name__", None))


def get_registered_object(name, custom_objects=None, module_objects=None):
    """What is known by a name: of scopes, the innermost first, then of custom_objects, the program
    and module_objects. None if nothing is."""
    tables = [*reversed(_scopes.__dict__.get("stack", [])), custom_objects or {}, _global_objects,
              module_objects or {}]
    for table in tables:
        if name in table:
            return table[name]
    return next((made for known, made in _global_objects.items()
                 if known.rpartition(">")[2] == name and ">" in known), None)


# ---- Objects as JSON ----

def _record(obj):
    cls = type(obj)
    if isinstance(obj, Described) and cls not in _names and obj.class_name and not obj.is_own:
        module = cls.__module__.partition(".")[2]
        return {"module": ".".join(filter(None, ("keras", module))), "class_name": obj.class_name,
                "config": obj.get_config(), "registered_name": None}
    return {"module": cls.__module__, "class_name": cls.__name__,
            "config": serialize_keras_object(obj.get_config()),
            "registered_name": get_registered_name(cls)}


def serialize_keras_object(obj):
    """A value, or an object with get_config, as Keras' JSON has it."""
    if obj is None or isinstance(obj, (bool, int, float, str)):
        return obj
    if isinstance(obj, tuple):
        return {"class_name": "__tuple__", "items": [serialize_keras_object(v) for v in obj]}
    if isinstance(obj, list):
        return [serialize_keras_object(v) for v in obj]
    if isinstance(obj, dict):
        return {key: serialize_keras_object(v) for key, v in obj.items()}
    if isinstance(obj, np.generic):
        return obj.item()
    if isinstance(obj, np.ndarray):
        return {"class_name": "__numpy__",
                "config": {"value": obj.tolist(), "dtype": obj.dtype.name}}
    if getattr(obj, "_cornu_name", None):
        return obj._cornu_name
    if inspect.isfunction(obj):
        return {"module": obj.__module__, "class_name": "function",
                "config": get_registered_name(obj), "registered_name": "function"}
    if hasattr(obj, "get_config"):
        return _record(obj)
    raise TypeError("serialize_keras_object: %r has no get_config" % (obj,))


def record_of(obj):
    """What files have of an object of a class, or of a function, of the program's: JSON as above;
    None for what has no name there, as a lambda, or no get_config."""
    if getattr(obj, "__name__", None) == "<lambda>":
        return None
    try:
        return json.dumps(serialize_keras_object(obj), sort_keys=True)
    except (TypeError, NotImplementedError):
        return None


def own_object(record):
    """The object of such JSON, of a class or a function that the program has named; else None."""
    name = record["config"] if record["class_name"] == "function" else record["class_name"]
    for known in (record.get("registered_name"), name):
        if isinstance(known, str) and get_registered_object(known) is not None:
            return deserialize_keras_object(record)
    wrapped = record["config"].get("fn") if isinstance(record["config"], dict) else None
    named = isinstance(wrapped, dict) and own_object(wrapped) is not None
    return deserialize_keras_object(record) if named else None


def _find(config, custom_objects):
    """The class or function that a config names."""
    name = config["config"] if config["class_name"] == "function" else config["class_name"]
    for known in (config.get("registered_name"), name):
        found = known and get_registered_object(known, custom_objects)
        if found:
            return found
    import cornu
    path = (config.get("module") or "").split(".")
    at = cornu if path[0] in ("keras", "cornu") else None
    for part in path[1:]:
        at = getattr(at, part, None) if at is not None else None
    found = getattr(at, name, None) if at is not None else None
    for module in () if found else (cornu.layers, cornu.optimizers, cornu.losses, cornu.metrics,
                                    cornu.initializers, cornu.regularizers, cornu.constraints):
        found = found or vars(module).get(name)
    if found is None:
        raise TypeError("deserialize_keras_object: there is no %r; expected a class of this "
                        "package, or one in custom_objects or under @register_keras_serializable"
                        % name)
    return found


def deserialize_keras_object(config, custom_objects=None, safe_mode=True, **kwargs):
    """The value or object of Keras' JSON."""
    if isinstance(config, list):
        return [deserialize_keras_object(v, custom_objects) for v in config]
    if not isinstance(config, dict):
        return config
    kind = config.get("class_name")
    if kind == "__tuple__":
        return tuple(deserialize_keras_object(v, custom_objects) for v in config["items"])
    if kind == "__numpy__":
        return np.array(config["config"]["value"], config["config"]["dtype"])
    if kind is None or "config" not in config:
        return {key: deserialize_keras_object(v, custom_objects) for key, v in config.items()}
    if kind in ("Functional", "Sequential", "Model"):
        from ._models.files import model_from_json
        return model_from_json(json.dumps(config), custom_objects)
    found = _find(config, custom_objects)
    if kind == "function" or not inspect.isclass(found):
        return found
    with CustomObjectScope(custom_objects):
        inner = config["config"]
        if not issubclass(found, Described) or found in _names:
            inner = deserialize_keras_object(inner)
        return found.from_config(inner)


# ---- Files ----

def load_model(filepath, custom_objects=None, compile=True, safe_mode=True):
    """See cornu.load; custom_objects are known by name while the file is read."""
    from ._models.files import load_model as load
    return load(filepath, custom_objects, compile, safe_mode)


def check_overwrite(path, overwrite):
    """FileExistsError if there is a file that must not be replaced."""
    if not overwrite and os.path.exists(path):
        raise FileExistsError("%s exists, and overwrite is False" % os.fspath(path))


def save_model(model, filepath, overwrite=True, zipped=None, **kwargs):
    """model.save(filepath)."""
    check_overwrite(filepath, overwrite)
    model.save(filepath)


def load_weights(model, filepath, skip_mismatch=False, **kwargs):
    """model.load_weights(filepath)."""
    model.load_weights(filepath, skip_mismatch)


def save_weights(model, filepath, overwrite=True, max_shard_size=None, **kwargs):
    """model.save_weights(filepath)."""
    if max_shard_size is not None:
        raise NotImplementedError("save_weights: max_shard_size is not supported")
    check_overwrite(filepath, overwrite)
    model.save_weights(filepath)


__all__ = ["CustomObjectScope", "custom_object_scope", "deserialize_keras_object",
           "get_custom_objects", "get_registered_name", "get_registered_object", "load_model",
           "load_weights", "register_keras_serializable", "save_model", "save_weights",
           "serialize_keras_object"]
__getattr__ = getter(__name__)
