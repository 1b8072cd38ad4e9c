"""Packages of others, connected when a program imports them. Nothing here imports one."""

import importlib.abc
import importlib.util
import sys


class _Loader(importlib.abc.Loader):
    """The loader of a module, which connects it afterwards."""

    def __init__(self, loader, connect):
        self._loader, self._connect = loader, connect

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        self._connect(module)


class _Finder(importlib.abc.MetaPathFinder):
    """Finds a module as the other finders do, to connect it when it is imported."""

    _asks = False       # the other finders

    def __init__(self, name, connect):
        self._name, self._connect = name, connect

    def find_spec(self, name, path=None, target=None):
        if name != self._name or self._asks:
            return None
        self._asks = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._asks = False
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, self._connect)
        return spec


def when_imported(name, connect):
    """connect(module), now or when the module of this name is imported."""
    imported = sys.modules.get(name)
    if imported is None:
        sys.meta_path.insert(0, _Finder(name, connect))
    else:
        connect(imported)
