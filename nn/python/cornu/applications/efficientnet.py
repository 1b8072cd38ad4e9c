"""EfficientNetB0 to B7. Source: Tan and Le, arXiv 1905.11946; layers' names are Keras'."""

import math

from .. import layers
from .._surface.missing import getter
from ..initializers import VarianceScaling
from ._networks import Network, correct_pad
from .imagenet_utils import decode_predictions, preprocessing

preprocess_input = preprocessing(None)      # the networks have the layers for it
# Kernel, blocks, filters, expansion, the first block's stride.
_STACKS = ((3, 1, 16, 1, 1), (3, 2, 24, 6, 2), (5, 2, 40, 6, 2), (3, 3, 80, 6, 2),
           (5, 3, 112, 6, 1), (5, 4, 192, 6, 2), (3, 1, 320, 6, 1))
# Of B0 to B7: width, depth, pixels, dropout.
_VARIANTS = ((1.0, 1.0, 224, 0.2), (1.0, 1.1, 240, 0.2), (1.1, 1.2, 260, 0.3),
             (1.2, 1.4, 300, 0.3), (1.4, 1.8, 380, 0.4), (1.6, 2.2, 456, 0.4),
             (1.8, 2.6, 528, 0.5), (2.0, 3.1, 600, 0.5))
_DROP_CONNECT = 0.2
_DEVIATIONS = (0.229, 0.224, 0.225)


def _initial():
    return VarianceScaling(scale=2.0, mode="fan_out", distribution="truncated_normal")


def _conv(x, filters, name, **arguments):
    return layers.Conv2D(filters, 1, padding="same", kernel_initializer=_initial(), name=name,
                         **arguments)(x)


def _normalized(x, name, active=True):
    x = layers.BatchNormalization(name=name + "bn")(x)
    return layers.Activation("silu", name=name + "activation")(x) if active else x


def _eights(filters):
    made = max(8, int(filters + 4) // 8 * 8)
    return made + 8 if made < 0.9 * filters else made


def _block(x, before, after, kernel, stride, expansion, drop, name):
    """Expansion, a depthwise convolution, a gate for each channel, projection, shortcut."""
    inputs, filters = x, before * expansion
    if expansion != 1:
        x = _normalized(_conv(x, filters, name + "expand_conv", use_bias=False), name + "expand_")
    if stride == 2:
        x = layers.ZeroPadding2D(correct_pad(x, kernel), name=name + "dwconv_pad")(x)
    x = layers.DepthwiseConv2D(kernel, strides=stride, use_bias=False, name=name + "dwconv",
                               padding="valid" if stride == 2 else "same",
                               depthwise_initializer=_initial())(x)
    x = _normalized(x, name)
    gate = layers.GlobalAveragePooling2D(name=name + "se_squeeze")(x)
    gate = layers.Reshape((1, 1, filters), name=name + "se_reshape")(gate)
    gate = _conv(gate, max(1, before // 4), name + "se_reduce", activation="silu")
    gate = _conv(gate, filters, name + "se_expand", activation="sigmoid")
    x = layers.multiply([x, gate], name=name + "se_excite")
    x = _normalized(_conv(x, after, name + "project_conv", use_bias=False), name + "project_",
                    False)
    if stride == 1 and before == after:
        if drop > 0:
            x = layers.Dropout(drop, noise_shape=(None, 1, 1, 1), name=name + "drop")(x)
        x = layers.add([x, inputs], name=name + "add")
    return x


def _stem(net, width):
    x = layers.Rescaling(1.0 / 255.0)(net.input)
    x = layers.Normalization(axis=-1)(x)
    if net.weights == "imagenet":       # as Keras, which published weights expect
        x = layers.Rescaling([1 / math.sqrt(d) for d in _DEVIATIONS])(x)
    x = layers.ZeroPadding2D(correct_pad(x, 3), name="stem_conv_pad")(x)
    x = layers.Conv2D(_eights(32 * width), 3, strides=2, padding="valid", use_bias=False,
                      kernel_initializer=_initial(), name="stem_conv")(x)
    return _normalized(x, "stem_")


def _build(number, arguments):
    width, depth, size, dropout = _VARIANTS[number]
    label = "efficientnetb%d" % number
    net = Network(label, size, **arguments)
    x, done = _stem(net, width), 0
    total = sum(math.ceil(depth * blocks) for _, blocks, *_ in _STACKS)
    before = _eights(32 * width)
    for i, (kernel, blocks, filters, expansion, first) in enumerate(_STACKS, 1):
        after = _eights(filters * width)
        for j in range(math.ceil(depth * blocks)):
            x = _block(x, before, after, kernel, first if j == 0 else 1, expansion,
                       _DROP_CONNECT * done / total, "block%d%s_" % (i, chr(ord("a") + j)))
            before, done = after, done + 1
    x = _normalized(_conv(x, _eights(1280 * width), "top_conv", use_bias=False), "top_")
    if net.include_top:
        x = layers.GlobalAveragePooling2D(name="avg_pool")(x)
        x = layers.Dropout(dropout, name="top_dropout")(x)
        x = net.classified(x, kernel_initializer=VarianceScaling(
            scale=1 / 3, mode="fan_out", distribution="uniform"))
    else:
        x = net.pooled(x, "avg_pool", "max_pool")
    return net.model(x, label + "%s.h5",
                     address="https://storage.googleapis.com/keras-applications/")


def _variant(number):
    def made(include_top=True, weights="imagenet", input_tensor=None, input_shape=None,
             pooling=None, classes=1000, classifier_activation="softmax",
             name="efficientnetb%d" % number):
        arguments = dict(locals())
        arguments.pop("number")
        return _build(number, arguments)
    made.__name__ = made.__qualname__ = "EfficientNetB%d" % number
    made.__doc__ = "Width %s, depth %s; %d pixels by default." % _VARIANTS[number][:3]
    return made


__all__ = ["decode_predictions", "preprocess_input"]
for _number in range(len(_VARIANTS)):
    globals()["EfficientNetB%d" % _number] = _variant(_number)
    __all__.append("EfficientNetB%d" % _number)
__getattr__ = getter(__name__)
