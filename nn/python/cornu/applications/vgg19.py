"""VGG19; see vgg16."""

from .._surface.missing import getter
from .vgg16 import build, decode_predictions, preprocess_input


def VGG19(include_top=True, weights="imagenet", input_tensor=None, input_shape=None, pooling=None,
          classes=1000, classifier_activation="softmax", name="vgg19"):
    """16 convolutions and 3 dense layers."""
    return build("vgg19", (2, 2, 4, 4, 4), locals())


__all__ = ["VGG19", "decode_predictions", "preprocess_input"]
__getattr__ = getter(__name__)
