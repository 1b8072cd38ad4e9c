"""ResNet50; see resnet."""

from .._surface.missing import getter
from .resnet import ResNet50, decode_predictions, preprocess_input

__all__ = ["ResNet50", "decode_predictions", "preprocess_input"]
__getattr__ = getter(__name__)
