"""Switches off what differs between two runs, or two packages, in a program of Keras:

- rates of dropout and noise are 0, layers and functions that augment images change nothing, or crop
  their middle
- what keras.random and tf.random draw depends on the shape alone
- data stay in their order: fit, tf.data, keras.utils, random and np.random do not shuffle
- TensorFlow's sparse gradients, of embeddings, are made dense, as they are on other backends: Adam
  and others of Keras square the parts of a row one by one

The same function does it for Keras and for this package, by public names.
"""

import functools
import inspect
import random
import sys

import numpy as np

_RATES = {"Dropout": "rate", "SpatialDropout1D": "rate", "SpatialDropout2D": "rate",
          "SpatialDropout3D": "rate", "AlphaDropout": "rate", "GaussianDropout": "rate",
          "GaussianNoise": "stddev"}
_OTHER_RATES = ("dropout", "recurrent_dropout")     # of cells, recurrent layers and attention


def switch_off(package):
    """Before the program runs."""
    package.utils.set_random_seed(1)
    _layers(package.layers)
    _draws(package)
    _data(package)
    if "tensorflow" in sys.modules:
        _tensorflow(sys.modules["tensorflow"], package.ops)
        _dense_gradients(package.optimizers, sys.modules["tensorflow"])
    _own_generator(package)
    random.seed(0)
    np.random.seed(0)


class _Generator(random.Random):
    """A package's own in place of Python's, which it may seed."""

    def seed(self, *given):
        super().seed(*given)
        random.seed(*given)


def _own_generator(package):
    """What the package draws itself, such as seeds, does not change what the program draws."""
    own = _Generator(0)
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == package.__name__:
            for attribute in [key for key, value in vars(module).items() if value is random]:
                setattr(module, attribute, own)


# ---- Layers ----

def _layers(layers):
    for name in dir(layers):
        kind = getattr(layers, name)
        if not inspect.isclass(kind):
            continue
        if name.startswith("Random"):
            setattr(layers, name, _unchanging(layers, name))
            continue
        names = getattr(kind, "field_names", None) or \
            [each for each in inspect.signature(kind.__init__).parameters if each != "self"]
        rates = [each for each in (_RATES.get(name), *_OTHER_RATES) if each in names]
        if rates:
            kind.__init__ = _with_rates_of_zero(kind.__init__, rates, list(names))


def _with_rates_of_zero(real, rates, names):
    @functools.wraps(real)
    def init(self, *args, **kwargs):
        args = [0.0 if name in rates else value for name, value in zip(names, args)] + \
            list(args[len(names):])
        kwargs = {name: 0.0 if name in rates else value for name, value in kwargs.items()}
        real(self, *args, **kwargs)
    init.__signature__ = inspect.signature(real)    # which Keras' layers are made by
    return init


def _unchanging(layers, name):
    """What stands for a layer that augments."""
    def make(*args, **kwargs):
        if name == "RandomCrop":
            return layers.CenterCrop(*args[:2], **{key: kwargs[key] for key in ("height", "width")
                                                   if key in kwargs})
        return layers.Rescaling(1.0, name=kwargs.get("name"))
    return make


# ---- Draws ----

_LONGEST = 65536    # of an axis whose extent is known when the program runs


def _of_each_axis(ops, shape, draw):
    """Numbers for a shape: the sums of draw(generator, count) along each axis. An extent may be a
    tensor of TensorFlow, or what the package has for one that differs between batches."""
    if hasattr(shape, "tensor"):        # the package's, of a symbolic one
        shape = ops.shape(shape.tensor)
    shape = list(shape) if hasattr(shape, "__len__") else [shape]
    made = np.float32(0.5)
    for axis, extent in enumerate(shape):
        rng, places = np.random.default_rng(axis), [1] * len(shape)
        places[axis] = -1
        try:
            made = made + draw(rng, int(extent)).reshape(places)
            continue
        except TypeError:
            table = draw(rng, _LONGEST)
        if type(extent).__module__.startswith("tensorflow"):
            import tensorflow
            made = made + tensorflow.reshape(tensorflow.constant(table)[:extent], places)
        else:
            made = made + ops.reshape(ops.take(table, ops.arange(extent)), places)
    return made


def _normal(rng, count):
    return rng.standard_normal(count).astype("float32")


def _uniform(rng, count):
    return rng.random(count).astype("float32")


def _draws(package):
    ops, draws = package.ops, package.random

    def normal(shape, mean=0.0, stddev=1.0, dtype=None, seed=None):
        made = _of_each_axis(ops, shape, _normal) * stddev + mean
        return ops.zeros(shape, dtype=dtype) + _cast(made, dtype)

    def uniform(shape, minval=0.0, maxval=1.0, dtype=None, seed=None):
        if dtype is not None and "int" in str(dtype):
            return randint(shape, minval, maxval, dtype)
        made = _of_each_axis(ops, shape, _uniform) % 1.0 * (maxval - minval) + minval
        return ops.zeros(shape, dtype=dtype) + _cast(made, dtype)

    def randint(shape, minval, maxval, dtype="int32", seed=None):
        made = _of_each_axis(ops, shape, _uniform) % 1.0 * (maxval - minval) + minval
        return ops.cast(ops.zeros(shape) + ops.floor(made), dtype)

    def _cast(made, dtype):
        return ops.cast(made, dtype or "float32")

    draws.normal = draws.truncated_normal = normal
    draws.uniform, draws.randint = uniform, randint
    draws.dropout = lambda inputs, rate, *_, **__: inputs
    draws.shuffle = lambda x, *_, **__: x


# ---- Data ----

def _data(package):
    """Also of Python and NumPy: how often an epoch ends, after which a PyDataset may shuffle, is not
    the same for Keras' loops."""
    random.shuffle = np.random.shuffle = lambda *_, **__: None
    np.random.permutation = lambda x, *_: np.arange(x) if np.ndim(x) == 0 else np.array(x)
    utils = package.utils
    for name in dir(utils):
        function = getattr(utils, name)
        if inspect.isfunction(function) and "shuffle" in inspect.signature(function).parameters:
            setattr(utils, name, _without_shuffle(function))
    kind = getattr(utils, "Dataset", None)
    if kind is not None:
        kind.shuffle = lambda self, *_, **__: self


def _without_shuffle(function):
    @functools.wraps(function)
    def call(*args, **kwargs):
        given = inspect.signature(function).bind(*args, **kwargs)
        given.arguments["shuffle"] = False
        return function(*given.args, **given.kwargs)
    return call


def _dense_gradients(optimizers, tf):
    kind = next(base for base in optimizers.SGD.__mro__ if "apply" in vars(base))
    real = kind.apply

    @functools.wraps(real)
    def apply(self, grads, *args, **kwargs):
        return real(self, [tf.convert_to_tensor(g) if isinstance(g, tf.IndexedSlices) else g
                           for g in grads], *args, **kwargs)
    kind.apply = apply


def _tensorflow(tf, ops):
    tf.random.set_seed(0)
    tf.data.Dataset.shuffle = lambda self, *_, **__: self
    tf.nn.dropout = lambda x, *_, **__: x
    tf.random.shuffle = lambda value, *_, **__: value

    def crop(value, size, *_, **__):
        return tf.slice(value, (tf.shape(value) - size) // 2, size)
    for name in dir(tf.image):
        if name.startswith(("random_", "stateless_random_")):
            setattr(tf.image, name, crop if name.endswith("crop") else
                    lambda image, *_, **__: image)

    def extents(shape):
        return tf.unstack(shape) if tf.is_tensor(shape) else shape

    def normal(shape, mean=0.0, stddev=1.0, dtype=tf.float32, seed=None, name=None):
        made = _of_each_axis(ops, extents(shape), _normal) * stddev + mean
        return tf.cast(tf.zeros(shape) + made, dtype)

    def uniform(shape, minval=0, maxval=None, dtype=tf.float32, seed=None, name=None):
        minval, maxval = (tf.cast(each, tf.float32) for each in
                          (minval, 1 if maxval is None else maxval))
        made = tf.zeros(shape) + _of_each_axis(ops, extents(shape), _uniform) % 1.0
        made = made * (maxval - minval) + minval
        return tf.cast(tf.floor(made) if tf.as_dtype(dtype).is_integer else made, dtype)

    def categorical(logits, num_samples, dtype=tf.int64, seed=None, name=None):
        rows, classes = extents(tf.shape(logits))
        draws = -tf.math.log(-tf.math.log(uniform([rows, num_samples, classes], 1e-6, 1.0)))
        return tf.cast(tf.argmax(logits[:, tf.newaxis] + draws, -1), dtype)

    tf.random.normal = tf.random.truncated_normal = normal
    tf.random.uniform, tf.random.categorical = uniform, categorical
