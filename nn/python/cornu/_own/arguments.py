"""The arguments that layers and models of the program's own are made of."""

import inspect


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
