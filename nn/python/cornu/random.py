"""keras.random: numbers drawn by the library's generator (device/random.h).

In a model they differ from step to step, in inference, too, and are the same for any number of
threads and devices. A seed that is a number gives the same numbers each time; a SeedGenerator, or
None, others.
"""

import threading

from ._binding.described import unique_name
from ._tensors.extents import Extent, as_extents
from ._tensors.symbols import Tensor, find_tensor, operation
from ._tensorflow import in_graph
from ._tensors.traces import tracing
from ._tensors.values import current

_state, _lock = {"seed": None, "count": 0}, threading.Lock()


def seed_all(seed):
    """The seed of what is drawn without one, outside of models."""
    with _lock:
        _state.update(seed=int(seed), count=0)


class SeedGenerator:
    """A seed of draws that differ from each other. seed: default that of set_random_seed, or 0."""

    def __init__(self, seed=None, name=None, **kwargs):
        if seed is not None and (isinstance(seed, bool) or not hasattr(seed, "__index__")):
            raise ValueError("SeedGenerator: seed is %r, expected a whole number or None" % (seed,))
        self.name = name or unique_name("seed_generator")
        self._initial_seed, self._own, self._count = seed, seed, 0

    @property
    def seed(self):
        return self._initial_seed

    def next(self, ordered=True):
        """A seed that no other draw of it has."""
        with _lock:
            if self._own is None:
                _state["count"] += 1
                self._own = _mixed(_state["seed"] or 0, _state["count"])
            self._count += 1
            return _mixed(self._own, self._count)

    def get_config(self):
        return {"seed": self._initial_seed}

    @classmethod
    def from_config(cls, config):
        return cls(**config)


def _mixed(seed, count):
    """A whole number below 2^52 that differs from those of others. Source: Steele, Lea and Flood,
    "Fast Splittable Pseudorandom Number Generators", 2014."""
    z = (seed + count * 0x9E3779B97F4A7C15) & (2 ** 64 - 1)
    z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & (2 ** 64 - 1)
    z = ((z ^ z >> 27) * 0x94D049BB133111EB) & (2 ** 64 - 1)
    return (z ^ z >> 31) >> 12


def _form(seed, values):
    """A seed as an argument of the operation."""
    recorded = current() is not None and current().values is None
    in_model = tracing() is not None or isinstance(find_tensor(values), (Tensor, Extent))
    own = seed.seed if isinstance(seed, SeedGenerator) else seed
    if isinstance(seed, SeedGenerator) and not recorded and not in_model:
        return seed.next()
    if seed is not None and not isinstance(seed, SeedGenerator):
        return int(seed)
    if own is None and not in_model:
        own = _state["seed"]
    if own is None:
        return None
    return {"class_name": "SeedGenerator", "config": {"seed": int(own)}}


def _draw(name, *values, seed=None, **named):
    made = in_graph(lambda values, named: _draw(name, *values, seed=seed, **named), values, named,
                    draws=True)
    if made is not NotImplemented:
        return made
    seed = _form(seed, (*values, *named.values()))
    if seed is not None:
        named["seed"] = seed
    return operation(name, *values, **{k: v for k, v in named.items() if v is not None})


def _shape(shape):
    return list(as_extents(shape)) if hasattr(shape, "__iter__") else [shape]


def normal(shape, mean=0.0, stddev=1.0, dtype=None, seed=None):
    """Of the normal distribution."""
    return _draw("normal", _shape(shape), mean, stddev, dtype=dtype, seed=seed)


def uniform(shape, minval=0.0, maxval=1.0, dtype=None, seed=None):
    """From minval to below maxval, of whole numbers if the dtype is of these."""
    if dtype is not None and "int" in str(dtype):
        return randint(shape, minval, maxval, dtype, seed)
    return _draw("uniform", _shape(shape), minval, maxval, dtype=dtype, seed=seed)


def truncated_normal(shape, mean=0.0, stddev=1.0, dtype=None, seed=None):
    """Of the normal distribution within two standard deviations."""
    return _draw("truncated_normal", _shape(shape), mean, stddev, dtype=dtype, seed=seed)


def randint(shape, minval, maxval, dtype="int32", seed=None):
    """Whole numbers from minval to below maxval."""
    return _draw("randint", _shape(shape), minval, maxval, dtype=dtype, seed=seed)


def categorical(logits, num_samples, dtype="int32", seed=None):
    """Classes of rows of logits, (rows, num_samples)."""
    return _draw("categorical", logits, num_samples, dtype=dtype, seed=seed)


def binomial(shape, counts, probabilities, dtype=None, seed=None):
    """How many of `counts` trials succeed."""
    return _draw("binomial", _shape(shape), counts, probabilities, dtype=dtype, seed=seed)


def dropout(inputs, rate, noise_shape=None, seed=None):
    """Elements are 0 with the probability `rate`, others scaled."""
    return _draw("dropout", inputs, rate, noise_shape=noise_shape, seed=seed)


def shuffle(x, axis=0, seed=None):
    """The elements along an axis in another order."""
    return _draw("shuffle", x, axis=axis, seed=seed)
