"""Settings of the program, and Keras' helpers for data."""

import random
import sys

import numpy as np

from .._binding.arrays import KERAS_NAMES as _KERAS_NAMES
from .._binding.described import reset_names
from .._binding.library import lib
from .._surface.missing import Namespace as _Namespace, add_aliases, getter
from .._tensors.symbols import (Tensor as _Tensor, find_tensor as _find_tensor,
                                operands as _operands, operation as _operation)
from .._tensors.values import state as _state
from .batches import Dataset, PyDataset, split_dataset, timeseries_dataset_from_array
from .feature_space import FeatureSpace
from .files import get_file
from .folders import (audio_dataset_from_directory, image_dataset_from_directory,
                      text_dataset_from_directory)
from .graphs import model_to_dot, plot_model
from .images import Image, array_to_img, img_to_array, load_img, save_img
from .progbar import Progbar
from ..random import seed_all as _seed_all
from ..saving import (CustomObjectScope, custom_object_scope, deserialize_keras_object,
                      get_custom_objects, get_registered_name, get_registered_object,
                      register_keras_serializable, serialize_keras_object)


def set_random_seed(seed):
    """The seed of initial weights, dropout and shuffling of models that this thread makes next;
    and, as in Keras, of Python's, NumPy's and TensorFlow's random numbers. What it computes on
    arrays draws from the beginning."""
    lib.cornu_set_random_seed(int(seed))
    _seed_all(seed)
    for counter in _state.counters.values():
        counter.reset()
    random.seed(seed)
    np.random.seed(seed)
    if "tensorflow" in sys.modules:     # which shuffles data sets
        sys.modules["tensorflow"].random.set_seed(int(seed))


def set_dtype_policy(policy):
    """The precision policy of models made from now on: "float32", "mixed_bfloat16", …"""
    lib.cornu_set_dtype_policy(getattr(policy, "name", policy))


def clear_session():
    """Default names of layers and models begin anew."""
    reset_names()


def to_categorical(x, num_classes=None):
    """Classes as rows with a 1 at the class: [1, 0] is [[0, 1], [1, 0]]. num_classes: default one
    more than the largest, of a tensor required. A last axis of extent 1 is replaced."""
    if _find_tensor([x]) is not None and num_classes is not None:
        x = _operation("squeeze", x, axis=-1) if len(x.shape) > 1 and x.shape[-1] == 1 else x
        return _operation("one_hot", x, num_classes)
    x = np.asarray(x, "int64")
    shape = x.shape[:-1] if x.ndim > 1 and x.shape[-1] == 1 else x.shape
    classes = x.ravel()
    count = int(num_classes or classes.max(initial=-1) + 1)
    if classes.size and (classes.min() < 0 or classes.max() >= count):
        raise ValueError("to_categorical: a class is %d, expected 0 to %d"
                         % (classes.min() if classes.min() < 0 else classes.max(), count - 1))
    made = np.zeros((classes.size, count))
    made[np.arange(classes.size), classes] = 1
    return made.reshape(shape + (count,))


def _checked(what, value):
    if value not in ("pre", "post"):
        raise ValueError("pad_sequences: %s is %r, expected 'pre' or 'post'" % (what, value))
    return value


def pad_sequences(sequences, maxlen=None, dtype="int32", padding="pre", truncating="pre",
                  value=0.0):
    """Sequences of several lengths as one array, (rows, maxlen, ...): shorter ones are filled with
    `value`, longer ones cut, at the start ("pre") or the end ("post"). maxlen: default that of the
    longest."""
    _checked("padding", padding), _checked("truncating", truncating)
    rows = []
    for i, row in enumerate(sequences):
        if not hasattr(row, "__len__"):
            raise ValueError("pad_sequences: sequence %d is %r, expected a list" % (i, row))
        rows.append(np.asarray(row, dtype))
    longest = max([len(row) for row in rows], default=0) if maxlen is None else maxlen
    shape = next((row.shape[1:] for row in rows if len(row)), ())
    made = np.full((len(rows), longest) + shape, value, dtype)
    for i, row in enumerate(rows):
        if len(row) and row.shape[1:] != shape:
            raise ValueError("pad_sequences: sequence %d has elements of %s, expected %s like the "
                             "first one" % (i, row.shape[1:], shape))
        row = row[max(len(row) - longest, 0):] if truncating == "pre" else row[:longest]
        if len(row):
            made[i, slice(-len(row), None) if padding == "pre" else slice(len(row))] = row
    return made


def normalize(x, axis=-1, order=2):
    """An array, or a tensor, divided by its norms along an axis; rows of zeros stay."""
    if _find_tensor([x]) is not None:
        return _operation("normalize", x, axis=axis, order=order)
    x = np.asarray(x)
    norms = np.linalg.norm(x, order, axis, keepdims=True)
    return x / np.where(norms == 0, 1, norms)


def is_keras_tensor(x):
    """Whether it is a symbolic tensor."""
    return isinstance(x, _Tensor)


def get_source_inputs(tensor):
    """The inputs of a model, a list, of which a symbolic tensor is made."""
    found, seen, left = [], set(), [tensor]
    while left:
        at = left.pop()
        if at.pointer in seen:
            continue
        seen.add(at.pointer)
        if lib.cornu_call_operands(at.pointer):
            before = _operands(at.pointer)
            left += reversed(before if isinstance(before, list) else [before])
        else:
            found.append(at)
    return found


def standardize_dtype(dtype):
    """The name of a dtype: that of NumPy's, of Python's numbers, or of another package's."""
    if dtype is None:
        return "float32"
    named = {"int": "int64" if dtype == "int64" else "int32", "float": "float32", "bool": "bool",
             "str": "string"}
    name = dtype if isinstance(dtype, str) else getattr(dtype, "name", None) or \
        getattr(dtype, "__name__", None) or str(dtype).rpartition(".")[2]
    name = named.get(name, name)
    if name not in _DTYPES:
        raise ValueError("dtype is %r, expected one of %s" % (dtype, ", ".join(sorted(_DTYPES))))
    return name


_DTYPES = set(_KERAS_NAMES) | {"int8", "int16", "uint16", "uint64", "complex64", "complex128",
                               "float8_e4m3fn", "float8_e5m2"}


def pack_x_y_sample_weight(x, y=None, sample_weight=None):
    """What a batch is: x, (x, y) or (x, y, sample_weight)."""
    if y is None:
        return x if not isinstance(x, (list, tuple)) else (x,)
    return (x, y) if sample_weight is None else (x, y, sample_weight)


def unpack_x_y_sample_weight(data):
    """(x, y, sample_weight) of a batch; what it does not have is None."""
    if isinstance(data, list):
        data = tuple(data)
    if not isinstance(data, tuple):
        return data, None, None
    if not 1 <= len(data) <= 3:
        raise ValueError("a batch has %d parts, expected x, (x, y) or (x, y, sample_weight)"
                         % len(data))
    return data + (None,) * (3 - len(data))


# Keras' names of settings of keras.config; these modules need this one.
def _setting(name):
    def call():
        from .. import config
        return getattr(config, name)()
    call.__name__ = call.__qualname__ = name
    call.__doc__ = "cornu.config.%s." % name
    return call


_SETTINGS = ["disable_interactive_logging", "enable_interactive_logging",
             "is_interactive_logging_enabled"]
globals().update({name: _setting(name) for name in _SETTINGS})

legacy = _Namespace("utils.legacy", {"deserialize_keras_object": deserialize_keras_object,
                                     "serialize_keras_object": serialize_keras_object})
__all__ = ["CustomObjectScope", "Dataset", "FeatureSpace", "Image", "Progbar", "PyDataset",
           "array_to_img", "audio_dataset_from_directory", "clear_session", "custom_object_scope",
           "deserialize_keras_object", "get_custom_objects", "get_file", "get_registered_name",
           "get_registered_object", "get_source_inputs", "image_dataset_from_directory",
           "img_to_array", "is_keras_tensor", "legacy", "load_img", "model_to_dot", "normalize",
           "pack_x_y_sample_weight", "pad_sequences", "plot_model", "register_keras_serializable",
           "save_img", "serialize_keras_object", "set_dtype_policy", "set_random_seed",
           "split_dataset", "standardize_dtype", "text_dataset_from_directory",
           "timeseries_dataset_from_array", "to_categorical", "unpack_x_y_sample_weight"]
__all__ += _SETTINGS + add_aliases("utils", globals())
__getattr__ = getter(__name__)
