"""Models as configurations: Keras' get_config and from_config."""

import inspect
import json

from .._surface.missing import missing_attribute


class Configured:
    """The part of Model that is its architecture."""

    def get_config(self):
        """The architecture, a dictionary; a class of one's own overrides it with the arguments of
        its __init__."""
        return json.loads(self.to_json())["config"]

    @classmethod
    def from_config(cls, config, custom_objects=None):
        """An uncompiled model of what get_config returned, with weights of its own."""
        if "layers" not in config:
            return cls(**config)
        from .files import model_from_json
        from .sequential import Sequential
        kind = "Sequential" if issubclass(cls, Sequential) else "Functional"
        return model_from_json(json.dumps({"module": "keras", "class_name": kind,
                                           "config": config, "registered_name": kind}),
                               custom_objects)

    def __getattr__(self, name):
        if name == "_owned":
            raise RuntimeError("%s: call super().__init__() first in __init__"
                               % type(self).__name__)
        return missing_attribute(self, name)

    @property
    def compiled(self):
        """Whether compile was called."""
        return self._compiled is not None


def note_arguments(made, args, kwargs):
    """What get_config has of a class without one: the arguments of __init__."""
    made._arguments = None
    try:
        bound = inspect.signature(type(made).__init__).bind(made, *args, **kwargs)
    except TypeError:
        return              # __init__ says why
    given = dict(bound.arguments)
    given.pop(next(iter(given)), None)
    for parameter in bound.signature.parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD:
            given.update(given.pop(parameter.name, {}))
        if parameter.kind is parameter.VAR_POSITIONAL and given.get(parameter.name):
            return
    made._arguments = given
