"""Keras' keras.backend: what programs ask of it, and the functions of tf.keras.backend for labels
that are shorter than the predictions."""

from . import ops
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


# ---- Of tf.keras.backend: probabilities whose last class is the blank ----

def ctc_batch_cost(y_true, y_pred, input_length, label_length):
    """The loss of each row, in nats: (B, 1). y_true (B, L) of classes, y_pred (B, T, C) of
    probabilities, and the lengths of both, (B, 1). The blank and larger numbers fill up labels."""
    blank = y_pred.shape[-1] - 1
    y_true = ops.cast(y_true, "int32")
    length = ops.minimum(ops.cast(ops.squeeze(label_length, -1), "int32"),
                         ops.sum(ops.cast(y_true < blank, "int32"), axis=-1))
    losses = ops.ctc_loss(ops.minimum(y_true, blank), ops.log(y_pred + epsilon()), length,
                          ops.squeeze(input_length, -1), mask_index=blank)
    return ops.expand_dims(losses, -1)


def ctc_decode(y_pred, input_length, greedy=True, beam_width=100, top_paths=1):
    """The likeliest classes: a list of top_paths arrays (B, T), filled up with -1, and their log
    probabilities, (B, top_paths); negative, if greedy."""
    steps, classes = y_pred.shape[1:]
    strategy = {"strategy": "greedy"} if greedy else {
        "strategy": "beam_search", "beam_width": beam_width, "top_paths": top_paths}
    found, scores = ops.ctc_decode(ops.log(y_pred + epsilon()), ops.cast(input_length, "int32"),
                                   mask_index=classes - 1, **strategy)
    missing = [(0, 0), (0, steps - found.shape[-1])]
    return [ops.pad(each, missing, constant_values=-1) for each in found], scores


__all__ = ["backend", "clear_session", "ctc_batch_cost", "ctc_decode", "epsilon", "floatx",
           "get_uid", "image_data_format", "is_float_dtype", "is_int_dtype", "is_keras_tensor",
           "set_epsilon", "set_floatx", "set_image_data_format", "standardize_dtype"]
__getattr__ = getter(__name__)
