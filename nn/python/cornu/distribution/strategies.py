"""Strategies of the library: the one that this thread compiles models with, and how long it
lives."""

import itertools
import threading
import warnings

from .._binding.library import Owned, lib

_thread = threading.local()


class Strategy:
    """A strategy by its address; models that are compiled with it keep it."""

    def __init__(self, address):
        self.owned = Owned(address, lib.cornu_strategy_free)

    @property
    def address(self):
        return self.owned.address

    def allow_unused_layouts(self):
        """As in Keras, rows of its layout map may be for no weight of a model."""
        lib.cornu_device_allow_unused_layouts(lib.cornu_strategy_device(self.address))

    def unused_layouts(self):
        """The patterns that were found in no path so far."""
        device = lib.cornu_strategy_device(self.address)
        found = (lib.cornu_device_unused_layout(device, i) for i in itertools.count())
        return list(itertools.takewhile(lambda pattern: pattern is not None, found))


def _scopes():
    return _thread.__dict__.setdefault("scopes", [])


def enter(strategy):
    lib.cornu_scope_enter(strategy.address)
    _scopes().append(strategy)


def leave():
    lib.cornu_scope_leave()
    _scopes().pop()


def use(strategy):
    """The thread's strategy outside of all scopes; None is none."""
    lib.cornu_set_distribution(strategy.address if strategy else None)
    _thread.used = strategy


def keep(owned, built=False):
    """What is compiled now lives no longer than the strategy with which it is. Of a model that is
    built, warns of layouts that are for none of its weights."""
    scopes = _scopes()
    strategy = scopes[-1] if scopes else getattr(_thread, "used", None)
    if strategy:
        owned.needs(strategy.owned.counted)
        unused = strategy.unused_layouts() if built else []
        if unused:
            warnings.warn("the layout map's %s: no weight or output of a model that was compiled "
                          "so far has such a path, expected one; ignored" % ", ".join(unused),
                          stacklevel=4)
