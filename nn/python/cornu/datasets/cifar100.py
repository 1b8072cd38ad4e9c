"""CIFAR-100: 60,000 images of a hundred classes in twenty groups."""

import os

import numpy as np

from .files import find, images_of, read_pickle


def load_data(label_mode="fine"):
    """(x_train, y_train), (x_test, y_test): uint8 (N, 32, 32, 3) and int64 (N, 1), the class, or
    its group with label_mode="coarse"."""
    if label_mode not in ("fine", "coarse"):
        raise ValueError("label_mode is %r, expected 'fine' or 'coarse'" % (label_mode,))
    folder = find("cifar-100-python-target",
                  "https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz",
                  "85cd44d02ba6437773c5bbd22e183051d648de2e7d6b014e1ef29b855ba677a7", extract=True)
    parts = [read_pickle(os.path.join(folder, "cifar-100-python", name))
             for name in ("train", "test")]
    return tuple((images_of(part["data"]), np.array(part[label_mode + "_labels"])[:, None])
                 for part in parts)
