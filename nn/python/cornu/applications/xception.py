"""Xception. Source: Chollet, arXiv 1610.02357; layers' names are Keras'."""

from .. import layers
from .._surface.missing import getter
from ._networks import Network
from .imagenet_utils import decode_predictions, preprocessing

preprocess_input = preprocessing("tf")


def _separable(x, filters, name, active=True):
    """relu, a separable convolution and its normalization."""
    x = layers.Activation("relu", name=name + "_act")(x) if active else x
    x = layers.SeparableConv2D(filters, 3, padding="same", use_bias=False, name=name)(x)
    return layers.BatchNormalization(name=name + "_bn")(x)


def _halving(x, first, filters, block):
    """Two separable convolutions, the second of `filters`, pooling, and a shortcut."""
    residual = layers.Conv2D(filters, 1, strides=2, padding="same", use_bias=False)(x)
    residual = layers.BatchNormalization()(residual)
    x = _separable(x, first, "block%d_sepconv1" % block, block > 2)
    x = _separable(x, filters, "block%d_sepconv2" % block)
    x = layers.MaxPooling2D(3, strides=2, padding="same", name="block%d_pool" % block)(x)
    return layers.add([x, residual])


def Xception(include_top=True, weights="imagenet", input_tensor=None, input_shape=None,
             pooling=None, classes=1000, classifier_activation="softmax", name="xception"):
    """36 convolutions, separable ones with shortcuts but for the first two."""
    net = Network("xception", 299, min_size=71, **locals())
    x = net.input
    for i, (filters, stride) in enumerate(((32, 2), (64, 1)), 1):
        x = layers.Conv2D(filters, 3, strides=stride, use_bias=False, name="block1_conv%d" % i)(x)
        x = layers.BatchNormalization(name="block1_conv%d_bn" % i)(x)
        x = layers.Activation("relu", name="block1_conv%d_act" % i)(x)
    for block, filters in ((2, 128), (3, 256), (4, 728)):
        x = _halving(x, filters, filters, block)
    for block in range(5, 13):
        residual = x
        for i in (1, 2, 3):
            x = _separable(x, 728, "block%d_sepconv%d" % (block, i))
        x = layers.add([x, residual])
    x = _halving(x, 728, 1024, 13)
    for i, filters in ((1, 1536), (2, 2048)):
        x = _separable(x, filters, "block14_sepconv%d" % i, False)
        x = layers.Activation("relu", name="block14_sepconv%d_act" % i)(x)
    x = net.ended(x, "avg_pool" if include_top else None, None)
    return net.model(x, "xception_weights_tf_dim_ordering_tf_kernels%s.h5", "xception/")


__all__ = ["Xception", "decode_predictions", "preprocess_input"]
__getattr__ = getter(__name__)
