"""Keras' keras.dtype_policies: in what numbers layers compute, and keep their variables."""

from ._binding.arrays import KERAS_NAMES
from ._binding.described import Described
from ._binding.library import lib
from ._surface.missing import getter


class DTypePolicy(Described):
    """A policy by its name: "float32", "mixed_bfloat16", "mixed_float16", "bfloat16", … As dtype of
    a layer, and for cornu.config.set_dtype_policy."""

    class_name = "DTypePolicy"
    field_names = ("name",)

    def __init__(self, name="float32", **kwargs):
        super().__init__(name, **kwargs)
        self._policy = lib.type("CornuPolicy").from_address(lib.cornu_policy(self.name))

    @property
    def name(self):
        return self._config["name"]

    @property
    def compute_dtype(self):
        """What layers compute in."""
        return KERAS_NAMES[self._policy.compute]

    @property
    def variable_dtype(self):
        """What variables are kept in."""
        return KERAS_NAMES[self._policy.variable]

    def __eq__(self, other):
        return isinstance(other, DTypePolicy) and self.name == other.name

    def __hash__(self):
        return hash(self.name)

    def __repr__(self):
        return "<DTypePolicy %r>" % self.name


class FloatDTypePolicy(DTypePolicy):
    """Keras' other name of it."""


def get(identifier):
    """A policy by its name, by Keras' {"class_name", "config"}, or itself; None is the global
    one."""
    if identifier is None:
        return global_policy()
    if isinstance(identifier, DTypePolicy):
        return identifier
    if isinstance(identifier, dict):
        return deserialize(identifier)
    return DTypePolicy(identifier if isinstance(identifier, str) else
                       getattr(identifier, "__name__", str(identifier)))


def serialize(dtype_policy):
    """Keras' {"module", "class_name", "config"} of a policy."""
    return {"module": "keras", "class_name": "DTypePolicy", "registered_name": None,
            "config": {"name": dtype_policy.name}}


def deserialize(config, custom_objects=None):
    """The policy of Keras' {"class_name", "config"}."""
    return DTypePolicy(config["config"]["name"])


def global_policy():
    """That of models which this thread makes from now on."""
    address = lib.cornu_dtype_policy()
    return DTypePolicy(lib.type("CornuPolicy").from_address(address).name.decode()
                       if address else "float32")


def set_global_policy(policy):
    """Sets it, by name or as an object."""
    lib.cornu_set_dtype_policy(getattr(policy, "name", policy))


__all__ = ["DTypePolicy", "FloatDTypePolicy", "deserialize", "get", "serialize"]
__getattr__ = getter(__name__)
