"""Keras' activations, for arguments: activation=cornu.activations.relu, or just "relu"."""

from ._described import described


def _make(name):
    def activation(x):
        from .layers import Activation
        return Activation(name)(x)
    activation.__name__ = activation.__qualname__ = activation._cornu_name = name
    activation.__doc__ = "The activation %s, of a symbolic tensor." % name
    return activation


for _name in described["names"]["activations"]:
    globals()[_name] = _make(_name)

__all__ = list(described["names"]["activations"])
