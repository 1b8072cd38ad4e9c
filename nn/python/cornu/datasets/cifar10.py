"""CIFAR-10: 60,000 images of ten classes."""

import os

import numpy as np

from .files import find, images_of, read_pickle


def load_data():
    """(x_train, y_train), (x_test, y_test): uint8 (N, 32, 32, 3) and (N, 1)."""
    folder = find("cifar-10-batches-py-target",
                  "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz",
                  "6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce", extract=True)
    parts = [read_pickle(os.path.join(folder, "cifar-10-batches-py", name))
             for name in ["data_batch_%d" % i for i in range(1, 6)] + ["test_batch"]]
    x = [images_of(part["data"]) for part in parts]
    y = [np.array(part["labels"], np.uint8)[:, None] for part in parts]
    return (np.concatenate(x[:5]), np.concatenate(y[:5])), (x[5], y[5])
