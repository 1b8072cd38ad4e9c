"""Keras' keras.preprocessing.image."""

from .._surface.missing import getter
from ..utils.images import array_to_img, img_to_array, load_img, save_img, smart_resize

__all__ = ["array_to_img", "img_to_array", "load_img", "save_img", "smart_resize"]
__getattr__ = getter(__name__)
