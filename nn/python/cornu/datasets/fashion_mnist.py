"""Fashion-MNIST: 70,000 images of clothes."""

import os

from .files import is_kept, keras_home
from .images import load


def load_data(path=None, limit=0, seed=0):
    """(x_train, y_train), (x_test, y_test): uint8 (N, 28, 28) and (N,); the arguments are those of
    mnist.load_data, but for Keras' files, which are in a folder."""
    folder = os.path.join("datasets", "fashion-mnist")      # below Keras' datasets
    if path is None and not os.environ.get("CORNU_DATA"):
        for kept in (folder, "fashion-mnist"):
            if is_kept(os.path.join(kept, "train-images-idx3-ubyte.gz")):
                path = os.path.dirname(os.path.join(keras_home(), "datasets", kept))
                break
    return load("cornu_fashion_mnist_load_from", path, limit, seed)
