"""What mnist, fashion_mnist and shakespeare are read by: the library."""

import ctypes

from .._binding.arrays import array_of
from .._binding.library import Owned, lib, struct


def load(function, path, limit, seed):
    """(x_train, y_train), (x_test, y_test) by a function of the library."""
    config = struct("CornuTrainTestConfig", limit=limit, seed=seed)
    config.data = None if path is None else str(path).encode("utf-8")
    address = getattr(lib, function)(ctypes.byref(config))
    owner = Owned(address, lib.cornu_train_test_free)
    data = lib.type("CornuTrainTest").from_address(address)
    return ((array_of(data.train_x, owner), array_of(data.train_y, owner)),
            (array_of(data.test_x, owner), array_of(data.test_y, owner)))
