"""Shared by the make_*.py scripts: versions, writing, and the reference networks.

Run them with KERAS_BACKEND=jax from an interpreter that has the versions in VERSIONS; every
script rewrites its own folder and is deterministic (text byte for byte, floats on one CPU kind).
"""

import json
import os
import pathlib
import platform
import zlib

os.environ.setdefault("KERAS_BACKEND", "jax")
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import keras
import numpy as np
import rich
import safetensors
import safetensors.numpy
from importlib.metadata import version

HERE = pathlib.Path(__file__).resolve().parent


def versions():
    """The interpreter and packages that write the goldens, as an ordered dict."""
    return {
        "python": platform.python_version(),
        "keras": keras.__version__,
        "backend": keras.backend.backend(),
        "jax": jax.__version__,
        "numpy": np.__version__,
        "rich": version("rich"),
        "safetensors": safetensors.__version__,
    }


def folder(name):
    """The emptied output folder `name`, holding only its VERSIONS."""
    path = HERE / name
    path.mkdir(exist_ok=True)
    for old in path.iterdir():
        old.unlink()
    text = "".join(f"{k} {v}\n" for k, v in versions().items())
    (path / "VERSIONS").write_text(text)
    return path


def write_arrays(path, arrays, cases):
    """A .safetensors file. Its __metadata__ has the one key `golden`, a JSON text
    {"versions": {...}, "cases": {...}} with sorted keys: one key only, because the
    package orders several keys differently on every run."""
    text = json.dumps({"versions": versions(), "cases": cases}, sort_keys=True)
    plain = {}
    for name, array in arrays.items():
        array = np.asarray(array)
        if array.dtype == np.float64:
            array = array.astype(np.float32)
        if array.dtype == np.int64:
            array = array.astype(np.int32)
        assert array.dtype in (np.float32, np.int32, np.uint8), (name, array.dtype)
        plain[name] = np.ascontiguousarray(array).reshape(array.shape)
    safetensors.numpy.save_file(plain, str(path), metadata={"golden": text})
    path.chmod(0o644)


def use_logits():
    """From now on crossentropies of what a softmax gave use its logits, as they do in Keras on
    TensorFlow (keras/src/backend/tensorflow/nn.py, _get_logits), and in Cornu; on JAX, whose arrays
    have no attributes, Keras clips the probabilities."""
    from keras.src.backend.jax import nn

    made = []       # results, kept so that none has the id of another, and their logits
    softmax, crossentropy = nn.softmax, nn.sparse_categorical_crossentropy

    def noted_softmax(x, axis=-1):
        made.append((softmax(x, axis), x))
        return made[-1][0]

    def of_logits(target, output, from_logits=False, axis=-1):
        for result, logits in made:
            if result is output:
                return crossentropy(target, logits, True, axis)
        return crossentropy(target, output, from_logits, axis)

    nn.softmax, nn.sparse_categorical_crossentropy = noted_softmax, of_logits


def hashed_uniform(name, count):
    """`count` values in [-1, 1), exact in f32, that a C test makes again in six lines:
    u32 x = crc32(name) + i * 0x9E3779B9, mixed by the murmur3 finalizer, its top 24 bits
    taken as an integer k: value = (k - 2^23) / 2^23."""
    x = np.arange(count, dtype=np.uint64) * 0x9E3779B9 + zlib.crc32(name.encode())
    x = x.astype(np.uint32)
    x ^= x >> np.uint32(16)
    x *= np.uint32(0x85EBCA6B)
    x ^= x >> np.uint32(13)
    x *= np.uint32(0xC2B2AE35)
    x ^= x >> np.uint32(16)
    k = (x >> np.uint32(8)).astype(np.float64)
    return ((k - 2.0**23) / 2.0**23).astype(np.float32)


def mnist_cnn(dropout=0.5):
    L = keras.layers
    return keras.Sequential(
        [
            keras.Input((28, 28, 1)),
            L.Conv2D(32, 3, activation="relu"),
            L.MaxPooling2D(2),
            L.Conv2D(64, 3, activation="relu"),
            L.MaxPooling2D(2),
            L.Conv2D(64, 3, activation="relu"),
            L.Flatten(),
            L.Dense(64, activation="relu"),
            L.Dropout(dropout),
            L.Dense(10, activation="softmax"),
        ],
        name="mnist_cnn",
    )


def mnist_cnn_bn(dropout=0.4):
    L = keras.layers
    layers = [keras.Input((784,)), L.Reshape((28, 28, 1))]
    for filters, kernel, stride in ((12, 3, 1), (24, 6, 2), (32, 6, 2)):
        layers += [
            L.Conv2D(filters, kernel, strides=stride, padding="same", use_bias=False),
            L.BatchNormalization(scale=False),
            L.Activation("relu"),
        ]
    layers += [
        L.Flatten(),
        L.Dense(200, use_bias=False),
        L.BatchNormalization(scale=False),
        L.Activation("relu"),
        L.Dropout(dropout),
        L.Dense(10, activation="softmax"),
    ]
    return keras.Sequential(layers, name="mnist_cnn_bn")


def mnist_convnet(dropout=0.5):
    L = keras.layers
    return keras.Sequential(
        [
            keras.Input((28, 28, 1)),
            L.Conv2D(32, 3, activation="relu"),
            L.MaxPooling2D(2),
            L.Conv2D(64, 3, activation="relu"),
            L.MaxPooling2D(2),
            L.Flatten(),
            L.Dropout(dropout),
            L.Dense(10, activation="softmax"),
        ],
        name="mnist_convnet",
    )


def fashion_mnist_cnn(dropout=None):
    """Takes pixels from 0 to 255. dropout: of every layer; by default 0.25, after dense 0.5."""
    L = keras.layers
    layers = [keras.Input((28, 28, 1))]
    for filters in (64, 128, 256):
        layers += [
            L.BatchNormalization(),
            L.Conv2D(filters, 5, padding="same", activation="elu"),
            L.MaxPooling2D(2),
            L.Dropout(0.25 if dropout is None else dropout),
        ]
    layers += [
        L.Flatten(),
        L.Dense(256),
        L.Activation("elu"),
        L.Dropout(0.5 if dropout is None else dropout),
        L.Dense(10),
        L.Activation("softmax"),
    ]
    return keras.Sequential(layers, name="fashion_mnist_cnn")


DIGITS = {f.__name__: f for f in (mnist_cnn, mnist_cnn_bn, mnist_convnet)}
NETWORKS = DIGITS | {"fashion_mnist_cnn": fashion_mnist_cnn}
