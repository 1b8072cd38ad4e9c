"""VGG16. Source: Simonyan and Zisserman, arXiv 1409.1556; layers' names are Keras'."""

from .. import layers
from .._surface.missing import getter
from ._networks import Network
from .imagenet_utils import decode_predictions, preprocessing

preprocess_input = preprocessing("caffe")


def build(label, depths, arguments):
    """The network with that many convolutions in each of its five blocks."""
    net = Network(label, 224, **arguments)
    x = net.input
    for i, (depth, filters) in enumerate(zip(depths, (64, 128, 256, 512, 512)), 1):
        for j in range(1, depth + 1):
            x = layers.Conv2D(filters, 3, activation="relu", padding="same",
                              name="block%d_conv%d" % (i, j))(x)
        x = layers.MaxPooling2D(2, strides=2, name="block%d_pool" % i)(x)
    if net.include_top:
        x = layers.Flatten(name="flatten")(x)
        for name in ("fc1", "fc2"):
            x = layers.Dense(4096, activation="relu", name=name)(x)
        x = net.classified(x)
    else:
        x = net.pooled(x)
    return net.model(x, label + "_weights_tf_dim_ordering_tf_kernels%s.h5", label + "/")


def VGG16(include_top=True, weights="imagenet", input_tensor=None, input_shape=None, pooling=None,
          classes=1000, classifier_activation="softmax", name="vgg16"):
    """13 convolutions and 3 dense layers."""
    return build("vgg16", (2, 2, 3, 3, 3), locals())


__all__ = ["VGG16", "decode_predictions", "preprocess_input"]
__getattr__ = getter(__name__)
