"""Functions of jax.numpy and jax.nn by Cornu's, whose names and arguments are NumPy's as well."""

import functools

from .. import ops
from .._tensors.either import Standing
from .._tensors.symbols import find_tensor

# Of jax.nn the arguments and defaults are those of keras.ops, but for one.
_OF_NN = ("celu", "elu", "gelu", "glu", "hard_sigmoid", "hard_silu", "hard_swish", "hard_tanh",
          "log_sigmoid", "log_softmax", "logsumexp", "one_hot", "relu", "relu6", "selu", "sigmoid",
          "silu", "softmax", "softplus", "sparse_plus", "squareplus", "swish", "tanh")

_OF_LAX = ("erf", "rsqrt", "stop_gradient", "top_k")


def leaky_relu(x, negative_slope=0.01):
    return ops.leaky_relu(x, negative_slope)


class Counterpart(Standing):
    """A function of JAX, which a tensor of Cornu among its arguments makes Cornu's."""

    def __init__(self, module, name, ours):
        super().__init__(getattr(module, name))
        functools.update_wrapper(self, self._theirs)
        self._ours, self.__module__, self.__qualname__ = ours, module.__name__, name

    def __call__(self, *args, **kwargs):
        of_ours = find_tensor(args) is not None or find_tensor(kwargs.values()) is not None
        return (self._ours if of_ours else self._theirs)(*args, **kwargs)


def connect_functions(jax):
    """Replaces in JAX' modules the functions that Cornu has."""
    for module, names in ((jax.numpy, ops.__all__), (jax.numpy.linalg, ops.__all__),
                          (jax.nn, _OF_NN), (jax.lax, _OF_LAX)):
        for name in names:
            theirs = getattr(module, name, None)
            if callable(theirs) and not isinstance(theirs, type):
                setattr(module, name, Counterpart(module, name, getattr(ops, name)))
    jax.nn.leaky_relu = Counterpart(jax.nn, "leaky_relu", leaky_relu)
