"""Strategies of the library: the one that this thread compiles models with, and how long it
lives."""

import threading

from .._binding.library import Owned, lib

_thread = threading.local()


class Strategy:
    """A strategy by its address; models that are compiled with it keep it."""

    def __init__(self, address):
        self.owned = Owned(address, lib.cornu_strategy_free)

    @property
    def address(self):
        return self.owned.address


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


def keep(owned):
    """What is compiled now lives no longer than the strategy with which it is."""
    scopes = _scopes()
    strategy = scopes[-1] if scopes else getattr(_thread, "used", None)
    if strategy:
        owned.needs(strategy.owned.counted)
