"""Functions that a program hands to a compiler of another package, as tf.function and jax.jit are:
those that call what is Cornu's are recorded here, all others there."""

import functools
import types

from .symbols import find_tensor

_PACKAGE = __name__.split(".")[0]


class Standing:
    """Stands for an object of another package, in whose module it is, and has its attributes."""

    def __init__(self, theirs):
        self._theirs = theirs

    def __getattr__(self, name):
        if name == "_theirs":       # before there is one
            raise AttributeError(name)
        return getattr(self._theirs, name)

    def __copy__(self):
        return self     # as of a function

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        return self.__qualname__    # of its module


class Either(Standing):
    """A function as the other package makes it, and as this one does.

    python: the function of the program
    theirs, ours: what each package makes of it
    is_theirs: tells of a call's arguments that the other package must have it
    """

    _calls_cornu = None     # whether the function does, once it has been called

    def __init__(self, python, theirs, ours, is_theirs):
        functools.update_wrapper(self, python)
        super().__init__(theirs)
        self._python, self._ours, self._is_theirs = python, ours, is_theirs

    def __get__(self, instance, owner=None):
        if instance is None:
            return self
        return Either(types.MethodType(self._python, instance),
                      self._theirs.__get__(instance, owner), self._ours.__get__(instance, owner),
                      self._is_theirs)

    def __call__(self, *args, **kwargs):
        given = [*args, *kwargs.values()]
        ours = not self._is_theirs(given) and self._is_ours(given)
        return (self._ours if ours else self._theirs)(*args, **kwargs)

    def _is_ours(self, given):
        if self._calls_cornu is None:
            self._calls_cornu = uses_cornu(self._python, set())
        return self._calls_cornu or find_tensor(given) is not None or \
            any(uses_cornu(value, set()) for value in given)


def uses_cornu(value, seen):
    """Whether a function calls what is Cornu's: by the objects that its names mean, in functions
    of the program that it calls, too."""
    if isinstance(value, Either):
        return uses_cornu(value._python, seen)
    if isinstance(value, types.ModuleType):
        return value.__name__.split(".")[0] == _PACKAGE
    if isinstance(value, types.MethodType):
        return uses_cornu(value.__func__, seen) or _is_cornus(value.__self__) or \
            any(map(_is_cornus, getattr(value.__self__, "__dict__", {}).values()))
    if isinstance(value, functools.partial):
        return any(uses_cornu(part, seen) for part in (value.func, *value.args))
    if not isinstance(value, types.FunctionType):
        return _is_cornus(value)
    if value in seen:
        return False
    seen.add(value)
    cells = [cell.cell_contents for cell in value.__closure__ or () if cell != types.CellType()]
    names = [value.__globals__[name] for name in value.__code__.co_names
             if name in value.__globals__]
    return any(uses_cornu(each, seen) for each in cells + names)


def _is_cornus(value):
    kind = type(value)
    kinds = (*kind.__mro__, *(value.__mro__ if isinstance(value, type) else ()))
    return not isinstance(value, Either) and any(
        base.__module__.split(".")[0] == _PACKAGE for base in kinds)
