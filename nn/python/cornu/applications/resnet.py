"""ResNet50, 101 and 152. Sources: He et al., arXiv 1512.03385 and 1603.05027; layers' names are
Keras'."""

from .. import layers
from .._surface.missing import getter
from ._networks import Network
from .imagenet_utils import decode_predictions, preprocessing

preprocess_input = preprocessing("caffe")
DEPTHS = {50: (3, 4, 6, 3), 101: (3, 4, 23, 3), 152: (3, 8, 36, 3)}


def _normalized(x, name, relu=None):
    x = layers.BatchNormalization(epsilon=1.001e-5, name=name + "_bn")(x)
    return layers.Activation("relu", name=relu or name + "_relu")(x) if relu != "" else x


def _block_v1(x, filters, stride, widens, name):
    shortcut = x
    if widens:
        shortcut = layers.Conv2D(4 * filters, 1, strides=stride, name=name + "_0_conv")(x)
        shortcut = _normalized(shortcut, name + "_0", "")
    x = layers.Conv2D(filters, 1, strides=stride, name=name + "_1_conv")(x)
    x = _normalized(x, name + "_1")
    x = layers.Conv2D(filters, 3, padding="same", name=name + "_2_conv")(x)
    x = _normalized(x, name + "_2")
    x = layers.Conv2D(4 * filters, 1, name=name + "_3_conv")(x)
    x = layers.Add(name=name + "_add")([shortcut, _normalized(x, name + "_3", "")])
    return layers.Activation("relu", name=name + "_out")(x)


def _block_v2(x, filters, stride, widens, name):
    before = _normalized(x, name + "_preact")
    if widens:
        shortcut = layers.Conv2D(4 * filters, 1, strides=stride, name=name + "_0_conv")(before)
    else:
        shortcut = layers.MaxPooling2D(1, strides=stride)(x) if stride > 1 else x
    x = layers.Conv2D(filters, 1, use_bias=False, name=name + "_1_conv")(before)
    x = _normalized(x, name + "_1")
    x = layers.ZeroPadding2D(1, name=name + "_2_pad")(x)
    x = layers.Conv2D(filters, 3, strides=stride, use_bias=False, name=name + "_2_conv")(x)
    x = _normalized(x, name + "_2")
    x = layers.Conv2D(4 * filters, 1, name=name + "_3_conv")(x)
    return layers.Add(name=name + "_out")([shortcut, x])


def _stack(x, first, filters, depth, second):
    """A stack of blocks, of which one halves the image: the first, or the last of the second
    version; not in the stack where its pixels are to stay."""
    for i in range(1, depth + 1):
        name = "%s_block%d" % (first, i)
        if second:
            stride = 2 if i == depth and first != "conv5" else 1
            x = _block_v2(x, filters, stride, i == 1, name)
        else:
            x = _block_v1(x, filters, 2 if i == 1 and first != "conv2" else 1, i == 1, name)
    return x


def build(depth, second, arguments):
    """The network of a depth, in its first or second version."""
    label = "resnet%d%s" % (depth, "v2" if second else "")
    net = Network(label, 224, **arguments)
    x = layers.ZeroPadding2D(3, name="conv1_pad")(net.input)
    x = layers.Conv2D(64, 7, strides=2, name="conv1_conv")(x)
    x = x if second else _normalized(x, "conv1")
    x = layers.ZeroPadding2D(1, name="pool1_pad")(x)
    x = layers.MaxPooling2D(3, strides=2, name="pool1_pool")(x)
    for i, blocks in enumerate(DEPTHS[depth]):
        x = _stack(x, "conv%d" % (i + 2), 64 << i, blocks, second)
    x = _normalized(x, "post") if second else x
    return net.model(net.ended(x), label + "_weights_tf_dim_ordering_tf_kernels%s.h5", "resnet/")


def ResNet50(include_top=True, weights="imagenet", input_tensor=None, input_shape=None,
             pooling=None, classes=1000, classifier_activation="softmax", name="resnet50"):
    """50 layers, version 1."""
    return build(50, False, locals())


def ResNet101(include_top=True, weights="imagenet", input_tensor=None, input_shape=None,
              pooling=None, classes=1000, classifier_activation="softmax", name="resnet101"):
    """101 layers, version 1."""
    return build(101, False, locals())


def ResNet152(include_top=True, weights="imagenet", input_tensor=None, input_shape=None,
              pooling=None, classes=1000, classifier_activation="softmax", name="resnet152"):
    """152 layers, version 1."""
    return build(152, False, locals())


__all__ = ["ResNet101", "ResNet152", "ResNet50", "decode_predictions", "preprocess_input"]
__getattr__ = getter(__name__)
