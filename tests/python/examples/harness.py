"""What the programs of this folder share. EXAMPLE_SIDE chooses what they import: "keras", on JAX,
or "cornu", the default. What has a tape, or states that outlast a batch, needs TensorFlow, which
KERAS_BACKEND names then; its sparse gradients of embeddings make optimizers such as Adam differ
from Keras on JAX.

Each program is written anew with the structure of one of Keras' published examples or guides, on
small arrays: `data` makes them, `start` gives a model the same weights on both sides, `report`
prints what compare.py compares. Where an example has dropout, its rate here is 0.
"""

import json
import os

import numpy as np

if os.environ.get("EXAMPLE_SIDE") == "keras":
    os.environ.setdefault("KERAS_BACKEND", "jax")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import keras
else:
    import cornu as keras


def GradientTape(**options):
    """TensorFlow's tape, and the one of its name here."""
    if os.environ.get("EXAMPLE_SIDE") == "keras":
        import tensorflow
        return tensorflow.GradientTape(**options)
    return keras.GradientTape(**options)


if os.environ.get("EXAMPLE_SIDE") == "keras":
    def value_and_grad(*given, **options):
        """JAX' functions, and those of their names here."""
        import jax
        return jax.value_and_grad(*given, **options)

    def jit(function):
        import jax
        return jax.jit(function)
else:
    value_and_grad, jit = keras.value_and_grad, keras.jit


keras.utils.set_random_seed(1)


def data(*shape, classes=None, seed=0):
    """Normal float32 numbers, or integers below `classes`."""
    rng = np.random.default_rng(seed + len(shape))
    if classes:
        return rng.integers(0, classes, shape).astype("int32")
    return rng.standard_normal(shape).astype("float32")


def start(model):
    """Gives a model the same weights on both sides: by the order and shape of each."""
    kept = ("mean", "variance", "count")        # what adapt learnt
    values = []
    for i, (weight, value) in enumerate(zip(model.weights, model.get_weights())):
        name, value = weight.path.rpartition("/")[2], np.asarray(value)
        draw = np.random.default_rng(i).standard_normal(value.shape)
        if name in kept or value.dtype.kind != "f":
            values.append(value)
        elif name in ("gamma", "moving_variance"):
            values.append(1 + 0.1 * np.abs(draw))
        else:
            values.append(draw * (0.1 if value.ndim < 2 else value[..., 0].size ** -0.5))
    model.set_weights([np.asarray(v, "float32") for v in values])
    return model


def report(**found):
    """Prints numbers by name: lists of losses, arrays."""
    print("REPORT " + json.dumps({name: np.asarray(values, float).ravel()[:50].tolist()
                                  for name, values in found.items()}))


def fit(model, x, y=None, steps=3, **arguments):
    """Three steps, each of all rows; returns the logs by name."""
    rows = len(next(iter(x.values())) if isinstance(x, dict) else
               x[0] if isinstance(x, (list, tuple)) else x)
    history = model.fit(x, y, batch_size=rows, epochs=steps, shuffle=False, verbose=0, **arguments)
    return history.history
