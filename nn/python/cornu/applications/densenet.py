"""DenseNet121, 169 and 201. Source: Huang et al., arXiv 1608.06993; layers' names are Keras'."""

from .. import layers
from .._surface.missing import getter
from ._networks import Network
from .imagenet_utils import decode_predictions, preprocessing

preprocess_input = preprocessing("torch")


def _normalized(x, name):
    x = layers.BatchNormalization(epsilon=1.001e-5, name=name + "bn")(x)
    return layers.Activation("relu", name=name + "relu")(x)


def _dense(x, blocks, name):
    """Blocks that each add 32 channels to what they get."""
    for i in range(1, blocks + 1):
        prefix = "%s_block%d_" % (name, i)
        y = layers.Conv2D(128, 1, use_bias=False, name=prefix + "1_conv")(
            _normalized(x, prefix + "0_"))
        y = layers.Conv2D(32, 3, padding="same", use_bias=False, name=prefix + "2_conv")(
            _normalized(y, prefix + "1_"))
        x = layers.Concatenate(name=prefix + "concat")([x, y])
    return x


def _build(label, blocks, arguments):
    net = Network(label, 224, **arguments)
    x = layers.ZeroPadding2D(3)(net.input)
    x = layers.Conv2D(64, 7, strides=2, use_bias=False, name="conv1_conv")(x)
    x = layers.ZeroPadding2D(1)(_normalized(x, "conv1_"))
    x = layers.MaxPooling2D(3, strides=2, name="pool1")(x)
    for i, count in enumerate(blocks, 2):
        x = _dense(x, count, "conv%d" % i)
        if i < 5:       # half of the channels, and of the extents
            pool = "pool%d_" % i
            x = _normalized(x, pool)
            x = layers.Conv2D(x.shape[-1] // 2, 1, use_bias=False, name=pool + "conv")(x)
            x = layers.AveragePooling2D(2, strides=2, name=pool + "pool")(x)
    x = net.ended(_normalized(x, ""))
    return net.model(x, label + "_weights_tf_dim_ordering_tf_kernels%s.h5", "densenet/")


def DenseNet121(include_top=True, weights="imagenet", input_tensor=None, input_shape=None,
                pooling=None, classes=1000, classifier_activation="softmax", name="densenet121"):
    """Blocks of 6, 12, 24 and 16."""
    return _build("densenet121", (6, 12, 24, 16), locals())


def DenseNet169(include_top=True, weights="imagenet", input_tensor=None, input_shape=None,
                pooling=None, classes=1000, classifier_activation="softmax", name="densenet169"):
    """Blocks of 6, 12, 32 and 32."""
    return _build("densenet169", (6, 12, 32, 32), locals())


def DenseNet201(include_top=True, weights="imagenet", input_tensor=None, input_shape=None,
                pooling=None, classes=1000, classifier_activation="softmax", name="densenet201"):
    """Blocks of 6, 12, 48 and 32."""
    return _build("densenet201", (6, 12, 48, 32), locals())


__all__ = ["DenseNet121", "DenseNet169", "DenseNet201", "decode_predictions", "preprocess_input"]
__getattr__ = getter(__name__)
