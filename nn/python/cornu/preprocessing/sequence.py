"""Keras' keras.preprocessing.sequence."""

from .._surface.missing import getter
from ..utils import pad_sequences

__all__ = ["pad_sequences"]
__getattr__ = getter(__name__)
