"""Keras' activations, for arguments: activation=cornu.activations.relu, or just "relu"."""

from . import layers
from ._binding.described import described
from ._tensors.operators import operate
from ._surface.missing import add_aliases, getter


def _make(name):
    def activation(x, *args, **kwargs):
        if not args and not kwargs:
            return layers.Activation(name)(x)
        if name == "relu":
            names = ("negative_slope", "max_value", "threshold")
            return layers.ReLU(**dict(zip(names, args)), **kwargs)(x)
        return operate(name, x, *args, **kwargs)
    activation.__name__ = activation.__qualname__ = activation._cornu_name = name
    activation.__doc__ = "The activation %s, with Keras' arguments." % name
    return activation


for _name in described["names"]["activations"]:
    globals()[_name] = _make(_name)

__all__ = list(described["names"]["activations"])


def get(identifier):
    """An activation by its name; None is linear, and a function itself."""
    if identifier is None:
        return globals()["linear"]
    if callable(identifier):
        return identifier
    if isinstance(identifier, dict):
        return deserialize(identifier)
    if identifier not in __all__:
        raise ValueError("activations.get: there is no %r, expected one of %s"
                         % (identifier, ", ".join(described["names"]["activations"])))
    return globals()[identifier]


def serialize(activation):
    """The name of an activation, as files have it."""
    name = getattr(activation, "_cornu_name", None)
    if name is None:
        raise ValueError("activations.serialize: %r is not one of this module" % (activation,))
    return name


def deserialize(config, custom_objects=None):
    """An activation by its name, or by Keras' {"class_name", "config"}."""
    if isinstance(config, dict):
        config = config["config"] if isinstance(config.get("config"), str) else \
            config["class_name"]
    return (custom_objects or {}).get(config) or get(config)


__all__ += ["deserialize", "get", "serialize"] + add_aliases("activations", globals())
__getattr__ = getter(__name__)
