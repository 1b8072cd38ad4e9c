"""Cornu: Keras in C, from Python.

    import cornu

    (x, y), test = cornu.datasets.mnist.load_data()
    model = cornu.Sequential([cornu.Input((28, 28), scale=1 / 255), cornu.layers.Flatten(),
                              cornu.layers.Dense(10, activation="softmax")])
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    model.fit(x, y, epochs=3, validation_data=test)
    model.save("digits.safetensors")

Names, arguments, defaults and orders are Keras'; so are shapes: rows first, images (B, H, W, C).
Arrays are NumPy's, and are not copied if they are contiguous. Failures raise CornuError.
"""

from . import (activations, callbacks, constraints, datasets, errors, initializers, layers, losses,
               metrics, models, ops, optimizers, regularizers, utils)
from ._explain import explain
from ._functions import GradientTape, Variable, function, gradients
from ._library import lib as _lib
from ._remat import RematScope, remat
from ._symbols import Tensor, input_tensor as Input
from .devices import Device
from .errors import CornuError
from .int8 import Int8Model
from .models import (Model, Predictor, Sequential, clone_model, from_keras, load, load_model,
                     model_from_json)
from .utils import clear_session, set_dtype_policy, set_random_seed

__version__ = _lib.version

__all__ = ["CornuError", "Device", "GradientTape", "Input", "Int8Model", "Model", "Predictor",
           "RematScope", "Sequential", "Tensor", "Variable",
           "activations", "callbacks", "clear_session", "clone_model", "constraints", "datasets",
           "errors", "explain", "from_keras", "function", "gradients", "initializers", "layers", "load", "load_model",
           "losses", "metrics", "model_from_json", "models", "ops", "optimizers", "regularizers",
           "remat", "set_dtype_policy", "set_random_seed", "utils"]
