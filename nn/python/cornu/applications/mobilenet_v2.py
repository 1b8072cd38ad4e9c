"""MobileNetV2. Source: Sandler et al., arXiv 1801.04381; layers' names are Keras'."""

from .. import layers
from .._surface.missing import getter
from ._networks import Network, correct_pad
from .imagenet_utils import decode_predictions, preprocessing

preprocess_input = preprocessing("tf")
# Filters, blocks and the first one's stride.
_STACKS = ((16, 1, 1), (24, 2, 2), (32, 3, 2), (64, 4, 2), (96, 3, 1), (160, 3, 2), (320, 1, 1))


def _eights(filters):
    """A multiple of 8, at most a tenth below."""
    made = max(8, int(filters + 4) // 8 * 8)
    return made + 8 if made < 0.9 * filters else made


def _normalized(x, name, relu=None):
    x = layers.BatchNormalization(epsilon=1e-3, momentum=0.999, name=name)(x)
    return layers.ReLU(6.0, name=relu)(x) if relu else x


def _block(x, filters, stride, number):
    inputs, channels = x, x.shape[-1]
    prefix = "block_%d_" % number if number else "expanded_conv_"
    if number:
        x = layers.Conv2D(6 * channels, 1, padding="same", use_bias=False,
                          name=prefix + "expand")(x)
        x = _normalized(x, prefix + "expand_BN", prefix + "expand_relu")
    if stride == 2:
        x = layers.ZeroPadding2D(correct_pad(x, 3), name=prefix + "pad")(x)
    x = layers.DepthwiseConv2D(3, strides=stride, use_bias=False,
                               padding="same" if stride == 1 else "valid",
                               name=prefix + "depthwise")(x)
    x = _normalized(x, prefix + "depthwise_BN", prefix + "depthwise_relu")
    x = layers.Conv2D(filters, 1, padding="same", use_bias=False, name=prefix + "project")(x)
    x = _normalized(x, prefix + "project_BN")
    if channels == filters and stride == 1:
        x = layers.Add(name=prefix + "add")([inputs, x])
    return x


def MobileNetV2(input_shape=None, alpha=1.0, include_top=True, weights="imagenet",
                input_tensor=None, pooling=None, classes=1000, classifier_activation="softmax",
                name=None):
    """17 inverted residual blocks; alpha scales the number of filters."""
    size = input_shape[0] if input_shape and input_shape[0] == input_shape[1] else 224
    size = size if size in (96, 128, 160, 192, 224) else 224
    net = Network("mobilenetv2_%.2f_%s" % (alpha, input_shape[0] if input_shape else (
        224 if include_top else None)), size, include_top, weights, input_tensor, input_shape,
        pooling, classes, classifier_activation, name)
    x = layers.Conv2D(_eights(32 * alpha), 3, strides=2, padding="same", use_bias=False,
                      name="Conv1")(net.input)
    x, number = _normalized(x, "bn_Conv1", "Conv1_relu"), 0
    for filters, blocks, first in _STACKS:
        for i in range(blocks):
            x = _block(x, _eights(int(filters * alpha)), first if i == 0 else 1, number)
            number += 1
    last = _eights(1280 * alpha) if alpha > 1 else 1280
    x = layers.Conv2D(last, 1, use_bias=False, name="Conv_1")(x)
    x = net.ended(_normalized(x, "Conv_1_bn", "out_relu"), None, None)
    file = "mobilenet_v2_weights_tf_dim_ordering_tf_kernels_%s_%d" % (float(alpha), size)
    return net.model(x, file + ("%s" if include_top else "_no_top%.0s") + ".h5", "mobilenet_v2/")


__all__ = ["MobileNetV2", "decode_predictions", "preprocess_input"]
__getattr__ = getter(__name__)
