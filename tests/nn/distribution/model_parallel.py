"""The losses of ten steps of Keras on JAX, its weights cut over 8 devices by a layout map.

    python model_parallel.py

prints the numbers that test_model_parallel.c compares with, made by Keras 3.15.1 on JAX 0.10.2.
Data and initial weights are formulas, so that both sides begin alike.
"""
import os

os.environ["KERAS_BACKEND"] = "jax"
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"

import keras
import numpy as np

ROWS, BATCH, FEATURES, CLASSES = 160, 16, 12, 8


def numbers(count, first):
    i = np.arange(count, dtype=np.int64)
    return ((i * 37 + first) % 101 / np.float32(50) - np.float32(1)).astype(np.float32)


def train(rows, columns):
    mesh = keras.distribution.DeviceMesh((rows, columns), ["batch", "model"],
                                         keras.distribution.list_devices())
    layouts = keras.distribution.LayoutMap(mesh)
    layouts["up/kernel"] = (None, "model")
    layouts["up/bias"] = ("model",)
    layouts["down/kernel"] = ("model", None)
    keras.distribution.set_distribution(
        keras.distribution.ModelParallel(layout_map=layouts, batch_dim_name="batch"))
    model = keras.Sequential([
        keras.layers.Input((FEATURES,)),
        keras.layers.Dense(32, activation="relu", name="up"),
        keras.layers.Dense(16, name="down"),
        keras.layers.Dense(CLASSES, activation="softmax", name="out"),
    ])
    for i, weight in enumerate(model.weights):
        weight.assign(numbers(int(np.prod(weight.shape)), 11 * i).reshape(weight.shape) * 0.3)
    model.compile(optimizer=keras.optimizers.Adam(0.01), loss="sparse_categorical_crossentropy")
    x = numbers(ROWS * FEATURES, 0).reshape(ROWS, FEATURES)
    i = np.arange(ROWS)
    y = (i * 5 + i // 3) % CLASSES
    return [float(model.train_on_batch(x[k:k + BATCH], y[k:k + BATCH]))
            for k in range(0, ROWS, BATCH)]


if __name__ == "__main__":
    for shape in ((2, 4), (1, 8), (4, 2), (8, 1)):
        print(shape, ", ".join(f"{loss:.7f}" for loss in train(*shape)))
