"""InceptionV3. Source: Szegedy and others, arXiv 1512.00567; layers' names are Keras'."""

from .. import layers
from .._surface.missing import getter
from ._networks import Network
from .imagenet_utils import decode_predictions, preprocessing

preprocess_input = preprocessing("tf")


def _convolved(x, filters, rows, columns, strides=1, padding="same"):
    x = layers.Conv2D(filters, (rows, columns), strides=strides, padding=padding,
                      use_bias=False)(x)
    return layers.Activation("relu")(layers.BatchNormalization(scale=False)(x))


def _path(x, convolutions):
    for convolution in convolutions:
        x = _convolved(x, *convolution)
    return x


def _pooled(x, filters):
    return _convolved(layers.AveragePooling2D(3, strides=1, padding="same")(x), filters, 1, 1)


def _mixed(x, name, filters, paths):
    """Paths of convolutions, and one of a mean, side by side."""
    made = [_path(x, path) for path in paths]
    return layers.concatenate([*made, _pooled(x, filters)], name=name)


def _halving(x, name, paths):
    """Paths whose last convolutions have the stride 2, and one of a maximum."""
    made = [_convolved(_path(x, path[:-1]), *path[-1], 2, "valid") for path in paths]
    return layers.concatenate([*made, layers.MaxPooling2D(3, strides=2)(x)], name=name)


def _split(x, name):
    """A row and a column side by side."""
    return layers.concatenate([_convolved(x, 384, 1, 3), _convolved(x, 384, 3, 1)], name=name)


def _wide(x, i):
    first = _convolved(x, 320, 1, 1)
    second = _split(_convolved(x, 384, 1, 1), "mixed9_%d" % i)
    third = _split(_path(x, [(448, 1, 1), (384, 3, 3)]), None)
    return layers.concatenate([first, second, third, _pooled(x, 192)], name="mixed%d" % (9 + i))


def _long(n):
    """Products of rows and columns of 7, of n filters within."""
    return [[(192, 1, 1)], [(n, 1, 1), (n, 1, 7), (192, 7, 1)],
            [(n, 1, 1), (n, 7, 1), (n, 1, 7), (n, 7, 1), (192, 1, 7)]]


def InceptionV3(include_top=True, weights="imagenet", input_tensor=None, input_shape=None,
                pooling=None, classes=1000, classifier_activation="softmax",
                name="inception_v3"):
    """A stem, and 11 blocks of convolutions side by side."""
    net = Network("inception_v3", 299, min_size=75, **locals())
    x = _convolved(net.input, 32, 3, 3, 2, "valid")
    x = _convolved(_convolved(x, 32, 3, 3, 1, "valid"), 64, 3, 3)
    x = layers.MaxPooling2D(3, strides=2)(x)
    x = _convolved(_convolved(x, 80, 1, 1, 1, "valid"), 192, 3, 3, 1, "valid")
    x = layers.MaxPooling2D(3, strides=2)(x)
    double = [(64, 1, 1), (96, 3, 3), (96, 3, 3)]
    for i, filters in enumerate((32, 64, 64)):
        x = _mixed(x, "mixed%d" % i, filters,
                   [[(64, 1, 1)], [(48, 1, 1), (64, 5, 5)], double])
    x = _halving(x, "mixed3", [[(384, 3, 3)], double])
    for i, filters in enumerate((128, 160, 160, 192), 4):
        x = _mixed(x, "mixed%d" % i, 192, _long(filters))
    x = _halving(x, "mixed8", [[(192, 1, 1), (320, 3, 3)],
                               [(192, 1, 1), (192, 1, 7), (192, 7, 1), (192, 3, 3)]])
    x = _wide(_wide(x, 0), 1)
    x = net.ended(x, "avg_pool" if include_top else None, None)
    return net.model(x, "inception_v3_weights_tf_dim_ordering_tf_kernels%s.h5", "inception_v3/")


__all__ = ["InceptionV3", "decode_predictions", "preprocess_input"]
__getattr__ = getter(__name__)
