"""ResNet50V2, 101 and 152; see resnet."""

from .._surface.missing import getter
from .imagenet_utils import decode_predictions, preprocessing
from .resnet import build

preprocess_input = preprocessing("tf")


def ResNet50V2(include_top=True, weights="imagenet", input_tensor=None, input_shape=None,
               pooling=None, classes=1000, classifier_activation="softmax", name="resnet50v2"):
    """50 layers, version 2."""
    return build(50, True, locals())


def ResNet101V2(include_top=True, weights="imagenet", input_tensor=None, input_shape=None,
                pooling=None, classes=1000, classifier_activation="softmax", name="resnet101v2"):
    """101 layers, version 2."""
    return build(101, True, locals())


def ResNet152V2(include_top=True, weights="imagenet", input_tensor=None, input_shape=None,
                pooling=None, classes=1000, classifier_activation="softmax", name="resnet152v2"):
    """152 layers, version 2."""
    return build(152, True, locals())


__all__ = ["ResNet101V2", "ResNet152V2", "ResNet50V2", "decode_predictions", "preprocess_input"]
__getattr__ = getter(__name__)
