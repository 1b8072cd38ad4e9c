"""get, serialize and deserialize of the modules of classes, as Keras has them."""

from .._binding.described import Described, described, snake_case
from .names import NAMES


def _instance(cls, config):
    """An object of a class by its config; the library's names of classes among its arguments stay
    JSON, which they are made of when they are used."""
    config = {key: value for key, value in (config or {}).items() if value is not None or
              key in cls.field_names}
    return cls.from_config(config)


def _names(kind, members):
    """The classes of a kind by each name that the library has for them."""
    found = {}
    for entry in described[kind]:
        cls = members[entry["class_name"]]
        for name in {entry["class_name"], entry.get("name"), snake_case(entry["class_name"])}:
            found[name] = cls
    return found


def add_registry(kind, base, members, functions=()):
    """Adds get, serialize and deserialize to a module. get of a name in `functions`, Keras'
    functions of the module, is the function."""
    module = members["__name__"]

    def deserialize(config, custom_objects=None):
        """An object of Keras' {"class_name", "config"}, or by its name."""
        if isinstance(config, str):
            return get(config)
        name = config["class_name"]
        own = (custom_objects or {}).get(name) or _registered(config)
        cls = own or members.get(name) or _names(kind, members).get(name)
        if cls is None or not isinstance(cls, type):
            raise ValueError("%s: there is no class %r, which a config names; expected one of %s, "
                             "or one of custom_objects" % (module, name, ", ".join(
                                 e["class_name"] for e in described[kind])))
        return _instance(cls, config.get("config")) if issubclass(cls, Described) else \
            cls.from_config(config.get("config") or {})

    def get(identifier):
        """An object by its name, by Keras' {"class_name", "config"}, or itself; None for None."""
        if identifier is None:
            return None
        if isinstance(identifier, dict):
            return deserialize(identifier)
        if isinstance(identifier, str):
            if identifier in functions:
                return members[identifier]
            cls = _names(kind, members).get(identifier) or _registered({"class_name": identifier})
            if cls is None:
                from .missing import message
                raise ValueError(message(module.partition(".")[2], identifier, members))
            return cls() if isinstance(cls, type) else cls
        if isinstance(identifier, type) and issubclass(identifier, base):
            return identifier()
        if isinstance(identifier, base) or callable(identifier):
            return identifier
        raise ValueError("%s.get: %r is neither a name nor an object of this module"
                         % (module, identifier))

    def serialize(obj):
        """Keras' {"module", "class_name", "config", "registered_name"} of an object."""
        from ..saving import serialize_keras_object
        return serialize_keras_object(obj)

    names = []
    for function in (deserialize, get, serialize):
        function.__module__, function.__qualname__ = module, function.__name__
        members[function.__name__] = function
        names.append(function.__name__)
    return names


def _registered(config):
    from ..saving import get_registered_object
    return get_registered_object(config.get("registered_name") or config["class_name"]) or \
        get_registered_object(config["class_name"])


def add_functions(members):
    """Adds Keras' functions of metrics, such as metrics.mean_squared_error: those of losses where
    there are such; others are arguments of compile alone."""
    from .. import losses
    theirs = {word.partition("=")[0] for word in NAMES["metrics"].split()}
    added = [name for name in dict.fromkeys([*described["names"]["metrics"], *losses._functions])
             if name in theirs | {"mse", "MSE", "mae", "MAE", "mape", "MAPE", "msle", "MSLE"} and
             name not in members]
    for name in added:
        members[name] = getattr(losses, name) if name in losses._functions else _argument(name)
    return added


def _argument(name):
    def function(*_, **__):
        raise TypeError("%s: called on data; expected as an argument of compile" % name)
    function.__name__ = function.__qualname__ = function._cornu_name = name
    function.__doc__ = "%s of each row; for compile." % name
    return function
