"""Functions of other packages that have NumPy's names and arguments, as those of cornu.ops have."""

import functools

from .either import Standing
from .symbols import find_tensor


class Counterpart(Standing):
    """A function of a module, which a tensor of Cornu among its arguments makes Cornu's."""

    def __init__(self, module, name, ours):
        super().__init__(getattr(module, name))
        functools.update_wrapper(self, self._theirs)
        self._ours, self.__module__, self.__qualname__ = ours, module.__name__, name

    def __call__(self, *args, **kwargs):
        of_ours = find_tensor(args) is not None or find_tensor(kwargs.values()) is not None
        return (self._ours if of_ours else self._theirs)(*args, **kwargs)


def connect_functions(module, names=None):
    """Replaces in a module the functions of these names, by default of all, that cornu.ops has."""
    from .. import ops
    for name in names or ops.__all__:
        theirs = getattr(module, name, None)
        if callable(theirs) and not isinstance(theirs, (type, Counterpart)):
            setattr(module, name, Counterpart(module, name, getattr(ops, name)))
