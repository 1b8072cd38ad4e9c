"""Initializers with arguments in Keras' JSON, and their distributions. Writes initializers/initializers.json.

Of each CASE: `initializer`, Keras' JSON; `shape`; and `values`, where these are not random,
else `mean` and `deviation` of the distribution and, where it ends, its ends `low` and `high`, by
Keras' formulas. The script checks Keras' own numbers against them.
"""

import json
import math

import common
import keras
import numpy as np
from keras.src.initializers.random_initializers import compute_fans

I = keras.initializers
CUT = 0.87962566103423978

CASES = {
    "zeros": (I.Zeros(), (3, 4)),
    "ones": (I.Ones(), (5,)),
    "constant": (I.Constant(-2.5), (2, 3)),
    "constant_default": (I.Constant(), (2, 3)),
    "identity": (I.Identity(), (4, 4)),
    "identity_tall": (I.Identity(gain=-0.5), (4, 3)),
    "identity_wide": (I.Identity(gain=3.0), (2, 5)),
    "orthogonal": (I.Orthogonal(), (64, 256)),
    "orthogonal_arguments": (I.Orthogonal(gain=0.5, seed=4), (3, 3, 16, 32)),
    "random_uniform": (I.RandomUniform(), (1000, 40)),
    "random_uniform_arguments": (I.RandomUniform(minval=0.0, maxval=1.5, seed=0), (100, 200)),
    "random_uniform_negative": (I.RandomUniform(minval=-3.0, maxval=-1.0), (20000,)),
    "random_normal": (I.RandomNormal(), (100, 200)),
    "random_normal_arguments": (I.RandomNormal(mean=1.0, stddev=0.02, seed=3), (100, 200)),
    "truncated_normal": (I.TruncatedNormal(), (100, 200)),
    "truncated_normal_arguments": (I.TruncatedNormal(mean=-0.5, stddev=2.0), (3, 3, 40, 50)),
    "scaling": (I.VarianceScaling(), (784, 30)),
    "scaling_in": (I.VarianceScaling(scale=0.1, mode="fan_in", distribution="uniform"),
                   (3, 3, 40, 50)),
    "scaling_out": (I.VarianceScaling(scale=2.0, mode="fan_out", distribution="untruncated_normal",
                                      seed=11), (3, 3, 40, 50)),
    "scaling_avg": (I.VarianceScaling(scale=3.0, mode="fan_avg", distribution="truncated_normal"),
                    (5, 60, 70)),
    "scaling_axes": (I.VarianceScaling(mode="fan_avg", distribution="uniform", input_axes=[0],
                                       output_axes=[1, -1]), (40, 20, 30)),
    "scaling_vector": (I.VarianceScaling(distribution="normal"), (20000,)),
    "glorot_uniform_dense": (I.GlorotUniform(), (784, 30)),
    "glorot_uniform_heads": (I.GlorotUniform(), (96, 8, 32)),
    "glorot_uniform_axes": (I.GlorotUniform(seed=2, input_axes=[0], output_axes=[1, 2]),
                            (96, 8, 32)),
    "glorot_uniform_recurrent": (I.GlorotUniform(), (48, 4 * 128)),
    "glorot_normal": (I.GlorotNormal(seed=2147483648), (1000, 40)),
    "he_uniform": (I.HeUniform(), (3, 3, 40, 50)),
    "he_normal": (I.HeNormal(seed=7), (3, 3, 40, 50)),
    "he_normal_depthwise": (I.HeNormal(), (5, 5, 300, 3)),
    "lecun_uniform": (I.LecunUniform(), (784, 30)),
    "lecun_normal": (I.LecunNormal(input_axes=[-1], output_axes=[0]), (784, 30)),
}


def normal(mean, stddev, cut):
    if not cut:
        return {"mean": mean, "deviation": stddev}
    return {"mean": mean, "deviation": stddev * CUT, "low": mean - 2 * stddev,
            "high": mean + 2 * stddev}


def uniform(low, high):
    return {"mean": (low + high) / 2, "deviation": (high - low) / math.sqrt(12), "low": low,
            "high": high}


def distribution(init, shape):
    """By the class's docstring."""
    if isinstance(init, I.RandomUniform):
        return uniform(init.minval, init.maxval)
    if isinstance(init, (I.RandomNormal, I.TruncatedNormal)):
        return normal(init.mean, init.stddev, isinstance(init, I.TruncatedNormal))
    if isinstance(init, I.Orthogonal):           # the mean of the squares is known, by the rows
        rows, columns = math.prod(shape[:-1]), shape[-1]
        return {"mean": 0.0, "deviation": init.gain / math.sqrt(max(rows, columns))}
    fan_in, fan_out = compute_fans(shape, init.input_axes, init.output_axes)
    fan = {"fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2}[init.mode]
    deviation = math.sqrt(init.scale / max(1.0, fan))
    if init.distribution == "uniform":
        return uniform(-math.sqrt(3) * deviation, math.sqrt(3) * deviation)
    if init.distribution == "untruncated_normal":
        return normal(0.0, deviation, False)
    return normal(0.0, deviation / CUT, True)


def serialize(init):
    """Keras 3.15 omits the gain of Identity when writing, but reads it."""
    json = I.serialize(init)
    if isinstance(init, I.Identity):
        json["config"] = {"gain": init.gain}
        assert I.deserialize(json).gain == init.gain
    return json


def case(name, init, shape):
    about = {"initializer": serialize(init), "shape": shape}
    values = np.asarray(init(shape), np.float64)
    if isinstance(init, (I.Zeros, I.Ones, I.Constant, I.Identity)):
        return about | {"values": values.ravel().tolist()}
    about |= distribution(init, shape)
    near = 5 * about["deviation"] / math.sqrt(values.size)
    assert abs(values.mean() - about["mean"]) < near, name
    assert abs(values.std() - about["deviation"]) < near, name
    slack = 1e-6 * max(abs(values.min()), abs(values.max()))
    assert values.min() >= about.get("low", -math.inf) - slack, name
    assert values.max() <= about.get("high", math.inf) + slack, name
    return about


def main():
    keras.utils.set_random_seed(1)
    out = common.folder("initializers")
    cases = {name: case(name, *of) for name, of in CASES.items()}
    (out / "initializers.json").write_text(json.dumps(cases, indent=1) + "\n")


if __name__ == "__main__":
    main()
