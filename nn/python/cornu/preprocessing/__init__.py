"""Keras' keras.preprocessing: what cornu.utils has, by its old names."""

from .._surface.missing import getter
from ..utils import (image_dataset_from_directory, text_dataset_from_directory,
                     timeseries_dataset_from_array)
from . import image, sequence

__all__ = ["image", "image_dataset_from_directory", "sequence", "text_dataset_from_directory",
           "timeseries_dataset_from_array"]
__getattr__ = getter(__name__)
