"""JAX' functions on tensors of Cornu, and jax.jit, jax.grad and jax.value_and_grad of functions that
call what is Cornu's, in programs that import both.

Such a program writes the loss of a model as a function of its variables' values, by
model.stateless_call, and hands it to JAX. JAX traces functions with values of its own, which the
library does not compute with; so these three, in the module `jax`, are replaced by functions that
record what calls Cornu as cornu.jit, cornu.grad and cornu.value_and_grad do, and leave all else to
JAX. So are those functions of jax.numpy and jax.nn that cornu.ops has, for tensors that are
recorded or symbolic. Arrays of JAX are taken as NumPy's are, wherever they lie; those returned are
NumPy's.
"""

import functools

import numpy as np

from .._binding.imports import when_imported
from .._tensors.counterparts import Counterpart, connect_functions
from .._tensors.either import Either
from .._tensors.functions import Function
from .._tensors.stateless import grad, value_and_grad
from .._tensors.values import Readable

# Of jax.nn the arguments and defaults are those of keras.ops, but for one.
_OF_NN = ("celu", "elu", "gelu", "glu", "hard_sigmoid", "hard_silu", "hard_swish", "hard_tanh",
          "log_sigmoid", "log_softmax", "logsumexp", "one_hot", "relu", "relu6", "selu", "sigmoid",
          "silu", "softmax", "softplus", "sparse_plus", "squareplus", "swish", "tanh")
_OF_LAX = ("erf", "rsqrt", "stop_gradient", "top_k")


def leaky_relu(x, negative_slope=0.01):
    from .. import ops
    return ops.leaky_relu(x, negative_slope)


def _is_traced_by(jax):
    return lambda given: any(isinstance(leaf, jax.core.Tracer)
                             for leaf in jax.tree_util.tree_leaves(given))


def _is_of_jax(python):
    return (getattr(python, "__module__", None) or "").split(".")[0] in ("jax", "jaxlib")


def _replaced(jax, name, make_ours):
    """jax.NAME: of a function, or, with options alone, what takes the function."""
    real, is_traced = getattr(jax, name), _is_traced_by(jax)

    @functools.wraps(real)
    def transform(fun=None, *args, **options):
        if fun is None:
            return functools.partial(transform, **options)
        theirs = real(fun, *args, **options)
        if _is_of_jax(fun) or isinstance(fun, type):
            return theirs
        return Either(fun, theirs, make_ours(fun, *args, **options), is_traced)
    transform.of_cornu = True
    setattr(jax, name, transform)


def _replace_device_put(jax):
    """jax.device_put of variables puts their values."""
    real = jax.device_put

    @functools.wraps(real)
    def device_put(x, *args, **options):
        x = jax.tree_util.tree_map(
            lambda leaf: np.asarray(leaf) if isinstance(leaf, Readable) else leaf, x)
        return real(x, *args, **options)
    jax.device_put = device_put


def _of_options(make):
    """Of the options of jax.grad those that are cornu.grad's."""
    def ours(fun, argnums=0, has_aux=False, **_):
        return make(fun, argnums, has_aux)
    return ours


def _connect(jax):
    if not hasattr(jax, "value_and_grad") or hasattr(jax.value_and_grad, "of_cornu"):
        return      # while it is being imported, or once more
    connect_functions(jax.numpy)
    connect_functions(jax.numpy.linalg)
    connect_functions(jax.nn, _OF_NN)
    connect_functions(jax.lax, _OF_LAX)
    jax.nn.leaky_relu = Counterpart(jax.nn, "leaky_relu", leaky_relu)
    _replace_device_put(jax)
    _replaced(jax, "jit", lambda fun, *args, **options: Function(fun))
    _replaced(jax, "grad", _of_options(grad))
    _replaced(jax, "value_and_grad", _of_options(value_and_grad))


def connect_imported():
    """Connects JAX, now or when it is imported."""
    when_imported("jax", _connect)
