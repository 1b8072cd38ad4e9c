"""MobileNet. Source: Howard et al., arXiv 1704.04861; layers' names are Keras'."""

from .. import layers
from .._surface.missing import getter
from ._networks import Network
from .imagenet_utils import decode_predictions, preprocessing

preprocess_input = preprocessing("tf")
_BLOCKS = ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1), (512, 1), (512, 1),
           (512, 1), (512, 1), (1024, 2), (1024, 1))


def _normalized(x, name):
    return layers.ReLU(6.0, name=name + "_relu")(
        layers.BatchNormalization(name=name + "_bn")(x))


def MobileNet(input_shape=None, alpha=1.0, depth_multiplier=1, dropout=0.001, include_top=True,
              weights="imagenet", input_tensor=None, pooling=None, classes=1000,
              classifier_activation="softmax", name=None):
    """13 depthwise separable convolutions; alpha scales the number of filters."""
    size = input_shape[0] if input_shape and input_shape[0] == input_shape[1] else 224
    size = size if size in (128, 160, 192, 224) else 224
    net = Network("mobilenet_%.2f_%s" % (alpha, input_shape[0] if input_shape else (
        224 if include_top else None)), size, include_top, weights, input_tensor, input_shape,
        pooling, classes, classifier_activation, name)
    x = layers.Conv2D(int(32 * alpha), 3, padding="same", use_bias=False, strides=2,
                      name="conv1")(net.input)
    x = _normalized(x, "conv1")
    for i, (filters, stride) in enumerate(_BLOCKS, 1):
        if stride == 2:
            x = layers.ZeroPadding2D(((0, 1), (0, 1)), name="conv_pad_%d" % i)(x)
        x = layers.DepthwiseConv2D(3, padding="same" if stride == 1 else "valid", strides=stride,
                                   depth_multiplier=depth_multiplier, use_bias=False,
                                   name="conv_dw_%d" % i)(x)
        x = _normalized(x, "conv_dw_%d" % i)
        x = layers.Conv2D(int(filters * alpha), 1, padding="same", use_bias=False,
                          name="conv_pw_%d" % i)(x)
        x = _normalized(x, "conv_pw_%d" % i)
    if include_top:
        x = layers.GlobalAveragePooling2D(keepdims=True)(x)
        x = layers.Dropout(dropout, name="dropout")(x)
        x = layers.Conv2D(classes, 1, padding="same", name="conv_preds")(x)
        x = layers.Reshape((classes,), name="reshape_2")(x)
        x = layers.Activation(classifier_activation or "linear", name="predictions")(x)
    else:
        x = net.pooled(x)
    text = {1.0: "1_0", 0.75: "7_5", 0.5: "5_0", 0.25: "2_5"}.get(alpha, alpha)
    file = "mobilenet_%s_%d_tf" % (text, size) + ("%s" if include_top else "_no_top%.0s") + ".h5"
    return net.model(x, file, "mobilenet/")


__all__ = ["MobileNet", "decode_predictions", "preprocess_input"]
__getattr__ = getter(__name__)
