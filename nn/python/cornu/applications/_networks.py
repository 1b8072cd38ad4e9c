"""What the networks of keras.applications have in common: their arguments, ends and weights."""

import os

from .. import layers
from .._models.models import Model
from .._tensors.symbols import Tensor
from ..utils import get_file, get_source_inputs

_ADDRESS = "https://storage.googleapis.com/tensorflow/keras-applications/"


class Network:
    """The arguments that all networks share.

    weights: None; "imagenet": the file that Keras keeps in ~/.keras/models, else fetched; or a path
    include_top: with the classes' layer; without it, pooling is None, "avg" or "max"
    """

    def __init__(self, label, default_size, include_top=True, weights="imagenet",
                 input_tensor=None, input_shape=None, pooling=None, classes=1000,
                 classifier_activation="softmax", name=None, min_size=32):
        self.name, self.include_top, self.weights = name or label, include_top, weights
        self.pooling, self.classes, self.activation = pooling, classes, classifier_activation
        if not (weights in (None, "imagenet") or os.path.exists(weights)):
            raise ValueError("%s: weights is %r, expected None, 'imagenet' or the path of a file"
                             % (label, weights))
        if weights == "imagenet" and include_top and classes != 1000:
            raise ValueError("%s: classes is %d with the weights of ImageNet, expected 1000"
                             % (label, classes))
        if pooling not in (None, "avg", "max"):
            raise ValueError("%s: pooling is %r, expected None, 'avg' or 'max'" % (label, pooling))
        if input_tensor is not None and not isinstance(input_tensor, Tensor):
            raise TypeError("%s: input_tensor is %s, expected a symbolic tensor"
                            % (label, type(input_tensor).__name__))
        self._tensor = input_tensor
        self.shape = self._shape(label, default_size, min_size, input_shape)
        self.input = layers.Input(self.shape) if input_tensor is None else input_tensor

    def _shape(self, label, default_size, min_size, shape):
        if shape is None and self._tensor is not None:
            return self._tensor.shape[1:]
        if shape is None:
            return (default_size,) * 2 + (3,) if self.include_top else (None, None, 3)
        shape = tuple(shape)
        if len(shape) != 3 or any(n is not None and n < min_size for n in shape[:2]):
            raise ValueError("%s: input_shape is %s, expected (H, W, C) of at least %d pixels"
                             % (label, shape, min_size))
        if self.include_top and None in shape:
            raise ValueError("%s: input_shape is %s, expected known extents with include_top"
                             % (label, shape))
        return shape

    def pooled(self, x, average=None, most=None):
        """The end without classes; names of the layers if they have ones."""
        if self.pooling == "avg":
            return layers.GlobalAveragePooling2D(name=average)(x)
        return layers.GlobalMaxPooling2D(name=most)(x) if self.pooling == "max" else x

    def classified(self, x, **arguments):
        return layers.Dense(self.classes, activation=self.activation, name="predictions",
                            **arguments)(x)

    def ended(self, x, average="avg_pool", most="max_pool", **arguments):
        """The usual end: the mean over the image and the classes."""
        if self.include_top:
            return self.classified(layers.GlobalAveragePooling2D(name=average)(x), **arguments)
        return self.pooled(x, average, most)

    def model(self, x, file, folder="", address=_ADDRESS):
        """The model with its weights; those of ImageNet are `file`, of which %s is where Keras'
        names differ without the classes."""
        inputs = self.input if self._tensor is None else get_source_inputs(self._tensor)
        made = Model(inputs, x, name=self.name)
        if self.weights == "imagenet":
            file = file % ("" if self.include_top else "_notop")
            made.load_weights(get_file(file, address + folder + file, cache_subdir="models"))
        elif self.weights is not None:
            made.load_weights(self.weights)
        return made


def correct_pad(x, kernel_size):
    """The padding before a convolution of stride 2, as TensorFlow's "same" has it."""
    half = kernel_size // 2
    before = [half - (1 if n is None else 1 - n % 2) for n in x.shape[1:3]]
    return tuple((n, half) for n in before)
