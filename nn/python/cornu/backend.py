"""Keras' keras.backend: what programs ask of it."""

from ._binding.described import next_count
from ._surface.missing import getter
from ._tensors.symbols import Tensor
from .config import (backend, epsilon, floatx, image_data_format, set_epsilon, set_floatx,
                     set_image_data_format)
from .utils import clear_session, standardize_dtype


def get_uid(prefix=""):
    """1, 2, … for each prefix."""
    return next_count("uid " + prefix) + 1


def is_float_dtype(dtype):
    """Whether a dtype is of floating point."""
    return "float" in standardize_dtype(dtype)


def is_int_dtype(dtype):
    """Whether a dtype is of integers, with or without sign."""
    return "int" in standardize_dtype(dtype)


def is_keras_tensor(x):
    """Whether it is a symbolic tensor."""
    return isinstance(x, Tensor)


__all__ = ["backend", "clear_session", "epsilon", "floatx", "get_uid", "image_data_format",
           "is_float_dtype", "is_int_dtype", "is_keras_tensor", "set_epsilon", "set_floatx",
           "set_image_data_format", "standardize_dtype"]
__getattr__ = getter(__name__)
