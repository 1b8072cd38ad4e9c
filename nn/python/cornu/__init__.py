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

from . import (_jax, _tensorflow, activations, applications, backend, callbacks, config,
               constraints, data, datasets, distribution, dtype_policies, errors,
               initializers, layers, losses, metrics, mixed_precision, models, ops,
               optimizers, preprocessing, random, regularizers, saving, tree, utils)
from ._models.compile_to_c import compile_to_c
from ._models.explain import explain
from ._tensors.functions import GradientTape, Variable, function, gradients
from ._binding.library import lib as _lib
from ._tensors.remat import RematScope, remat
from ._tensors.stateless import grad, value_and_grad
from ._surface.missing import coverage, getter as _getter
from ._tensors.symbols import Tensor, input_tensor as Input
from .devices import Device
from .dtype_policies import DTypePolicy, FloatDTypePolicy
from .errors import CornuError
from .initializers import Initializer
from .int8 import Int8Model
from .layers import InputSpec, Layer
from .losses import Loss
from .metrics import Metric
from .models import (Generator, Model, Predictor, Sequential, clone_model, from_keras, load,
                     load_model, model_from_json)
from .optimizers import Optimizer
from .regularizers import Regularizer
from .utils import clear_session, set_dtype_policy, set_random_seed

KerasTensor = Tensor
jit = function
__version__ = _lib.version
__getattr__ = _getter(__name__)
_jax.connect_imported()
_tensorflow.connect_imported()


def version():
    """The version of the library."""
    return __version__


__all__ = [
    "CornuError", "DTypePolicy", "Device", "FloatDTypePolicy", "Generator", "GradientTape",
    "Initializer", "Input", "InputSpec", "Int8Model", "KerasTensor", "Layer", "Loss", "Metric",
    "Model", "Optimizer", "Predictor", "Regularizer", "RematScope", "Sequential", "Tensor", "Variable",
    "activations", "applications", "backend", "callbacks", "clear_session", "clone_model",
    "compile_to_c", "config", "constraints", "coverage", "data", "datasets", "distribution",
    "dtype_policies", "errors", "explain", "from_keras", "function", "grad", "gradients",
    "initializers", "jit", "layers", "load", "load_model", "losses", "metrics",
    "mixed_precision", "model_from_json", "models",
    "ops", "optimizers", "preprocessing", "random", "regularizers", "remat", "saving",
    "set_dtype_policy", "set_random_seed", "tree", "utils", "value_and_grad", "version",
]
