"""Keras' keras.applications.imagenet_utils."""

import json

import numpy as np

from .._surface.missing import getter
from .._tensorflow import in_graph
from .._tensors.symbols import Tensor
from .._tensors.values import Value
from ..utils import get_file

_INDEX = "https://storage.googleapis.com/download.tensorflow.org/data/imagenet_class_index.json"
_MEANS = {"caffe": [103.939, 116.779, 123.68], "torch": [0.485, 0.456, 0.406]}
_DEVIATIONS = [0.229, 0.224, 0.225]
_names = {}


def _scaled(x, mode):
    if mode == "tf":
        return x / 127.5 - 1.0
    if mode == "torch":
        return (x / 255.0 - np.float32(_MEANS[mode])) / np.float32(_DEVIATIONS)
    return x[..., ::-1] - np.float32(_MEANS[mode])


def preprocess_input(x, data_format=None, mode="caffe"):
    """Images of 0 to 255 as a network expects them. mode: "tf" is -1 to 1, "torch" divided by 255
    and normalized, "caffe" BGR less the means; arrays are not changed in place."""
    if mode not in ("caffe", "tf", "torch"):
        raise ValueError("preprocess_input: mode is %r, expected 'caffe', 'tf' or 'torch'" % mode)
    made = in_graph(lambda x: preprocess_input(x, data_format, mode), x)
    if made is not NotImplemented:
        return made
    if isinstance(x, (Tensor, Value)):      # of a model, or of a step
        if data_format == "channels_first":
            raise NotImplementedError("preprocess_input of a symbolic tensor: channels_first")
        return _scaled(x, mode)
    x = np.asarray(x)
    x = x if x.dtype.kind == "f" else x.astype(np.float32)
    if data_format == "channels_first":
        return np.moveaxis(_scaled(np.moveaxis(x, -3, -1), mode), -1, -3)
    return _scaled(x, mode)


def decode_predictions(preds, top=5):
    """For each row of (N, 1000) the likeliest classes: (WordNet's number, name, probability)."""
    preds = np.asarray(preds)
    if preds.ndim != 2 or preds.shape[1] != 1000:
        raise ValueError("decode_predictions: the shape is %s, expected (N, 1000)"
                         % (preds.shape,))
    if not _names:
        with open(get_file("imagenet_class_index.json", _INDEX, cache_subdir="models"),
                  encoding="utf-8") as file:
            _names.update(json.load(file))
    return [[tuple(_names[str(i)]) + (row[i],) for i in row.argsort()[::-1][:top]]
            for row in preds]


def preprocessing(mode):
    """preprocess_input of a family of networks; of mode None the network does it itself."""
    def made(x, data_format=None):
        return x if mode is None else preprocess_input(x, data_format, mode)
    made.__name__ = made.__qualname__ = "preprocess_input"
    made.__doc__ = "Images of 0 to 255 as these networks expect them."
    return made


__all__ = ["decode_predictions", "preprocess_input"]
__getattr__ = getter(__name__)
