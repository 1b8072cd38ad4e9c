"""Draws of tf.random, with its arguments, by cornu.random."""

from .. import ops, random


def _dtype(dtype):
    return getattr(dtype, "name", dtype)


def normal(shape, mean=0.0, stddev=1.0, dtype="float32", seed=None):
    return ops.cast(random.normal(shape, seed=seed) * stddev + mean, _dtype(dtype))


def truncated_normal(shape, mean=0.0, stddev=1.0, dtype="float32", seed=None):
    return ops.cast(random.truncated_normal(shape, seed=seed) * stddev + mean, _dtype(dtype))


def uniform(shape, minval=0, maxval=None, dtype="float32", seed=None):
    if "int" in _dtype(dtype):
        return random.randint(shape, minval, maxval, _dtype(dtype), seed)
    maxval = 1 if maxval is None else maxval
    return ops.cast(random.uniform(shape, seed=seed) * (maxval - minval) + minval, _dtype(dtype))


def categorical(logits, num_samples, dtype="int32", seed=None):
    return random.categorical(logits, num_samples, _dtype(dtype), seed)


def shuffle(value, seed=None):
    return random.shuffle(value, seed=seed)


DRAWS = {made.__name__: made for made in (normal, truncated_normal, uniform, categorical, shuffle)}
