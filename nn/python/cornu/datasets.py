"""MNIST and Fashion-MNIST: cornu.datasets.mnist.load_data(), as Keras'; shakespeare alike."""

import ctypes

from ._arrays import array_of
from ._library import Owned, lib, struct


class _TrainTest:
    """A data set of images (N, 28, 28) and labels (N,), both uint8; of shakespeare, code points of
    blocks of 100 characters (N, 100) and of the characters that follow (N, 100)."""

    def __init__(self, load, name):
        self._load, self.__name__ = load, name

    def load_data(self, path=None, limit=0, seed=0):
        """(x_train, y_train), (x_test, y_test).

        path: a folder of data sets, or "synthetic"; None: CORNU_DATA, ./data or the user's cache,
            then a download
        limit: at most so many samples of each part
        """
        config = struct("CornuTrainTestConfig", limit=limit, seed=seed)
        config.data = None if path is None else str(path).encode("utf-8")
        address = getattr(lib, self._load)(ctypes.byref(config))
        owner = Owned(address, lib.cornu_train_test_free)
        data = lib.type("CornuTrainTest").from_address(address)
        return ((array_of(data.train_x, owner), array_of(data.train_y, owner)),
                (array_of(data.test_x, owner), array_of(data.test_y, owner)))


mnist = _TrainTest("cornu_mnist_load_from", "mnist")
fashion_mnist = _TrainTest("cornu_fashion_mnist_load_from", "fashion_mnist")
shakespeare = _TrainTest("cornu_shakespeare_load_from", "shakespeare")
