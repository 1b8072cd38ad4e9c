"""Shakespeare's works, of characters."""

from .images import load


def load_data(path=None, limit=0, seed=0):
    """(x_train, y_train), (x_test, y_test): code points, uint8, of blocks of 100 characters
    (N, 100) and of the characters that follow (N, 100); the arguments are those of
    mnist.load_data."""
    return load("cornu_shakespeare_load_from", path, limit, seed)
