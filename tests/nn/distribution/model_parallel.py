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

ROWS, BATCH, FEATURES, CLASSES, TIMES, WORDS = 160, 16, 12, 8, 6, 24


def numbers(count, first):
    i = np.arange(count, dtype=np.int64)
    return ((i * 37 + first) % 101 / np.float32(50) - np.float32(1)).astype(np.float32)


def mlp():
    return keras.Sequential([
        keras.layers.Input((FEATURES,)),
        keras.layers.Dense(32, activation="relu", name="up"),
        keras.layers.Dense(16, name="down"),
        keras.layers.Dense(CLASSES, activation="softmax", name="out"),
    ], name="mlp")


MLP_LAYOUTS = {
    "mlp/up/kernel": (None, "model"), "mlp/up/bias": ("model",),
    "mlp/down/kernel": ("model", None),
}


def mlp_data():
    i = np.arange(ROWS)
    return numbers(ROWS * FEATURES, 0).reshape(ROWS, FEATURES), (i * 5 + i // 3) % CLASSES


def writer(heads):
    """A text's next words, the vocabulary cut in the table and in the last layer."""
    text = keras.Input((TIMES,), dtype="int32")
    h = keras.layers.Embedding(WORDS, 16, name="embedding")(text)
    y = keras.layers.MultiHeadAttention(heads, 4, name="heads")(h, h, use_causal_mask=True)
    h = keras.layers.LayerNormalization(name="norm")(keras.layers.Add()([h, y]))
    y = keras.layers.Dense(32, activation="relu", name="up")(h)
    h = keras.layers.Add()([h, keras.layers.Dense(16, name="down")(y)])
    return keras.Model(text, keras.layers.Dense(WORDS, activation="softmax", name="out")(h))


WRITER_LAYOUTS = {
    "embedding/embeddings": ("model", None),
    "heads/(query|key|value)/kernel": (None, "model", None),
    "heads/(query|key|value)/bias": ("model", None),
    "heads/attention_output/kernel": ("model", None, None),
    "up/kernel": (None, "model"), "up/bias": ("model",), "down/kernel": ("model", None),
    "norm/output": ("batch", None, "model"),
    "out/kernel": (None, "model"), "out/bias": ("model",),
}


def writer_data():
    i = np.arange(ROWS * TIMES)
    words = (i * 29 + i // 7) % WORDS
    return words.reshape(ROWS, TIMES), ((words * 5 + 1 + i % 2) % WORDS).reshape(ROWS, TIMES)


def train(rows, columns, layouts, make, data):
    mesh = keras.distribution.DeviceMesh((rows, columns), ["batch", "model"],
                                         keras.distribution.list_devices())
    layout_map = keras.distribution.LayoutMap(mesh)
    for path, layout in layouts.items():
        layout_map[path] = layout
    keras.distribution.set_distribution(
        keras.distribution.ModelParallel(layout_map=layout_map, batch_dim_name="batch"))
    model = make()
    cut = 0
    for i, weight in enumerate(model.weights):
        weight.assign(numbers(int(np.prod(weight.shape)), 11 * i).reshape(weight.shape) * 0.3)
        cut += not weight.value.sharding.is_fully_replicated
    assert columns == 1 or cut > 0, "no layout is for a weight"
    model.compile(optimizer=keras.optimizers.Adam(0.01), loss="sparse_categorical_crossentropy")
    x, y = data()
    return cut, [float(model.train_on_batch(x[k:k + BATCH], y[k:k + BATCH]))
                 for k in range(0, ROWS, BATCH)]


if __name__ == "__main__":
    for shape in ((2, 4), (1, 8), (4, 2), (8, 1)):
        for name, layouts, make, data in (
                ("mlp", MLP_LAYOUTS, mlp, mlp_data),
                ("writer", WRITER_LAYOUTS, lambda: writer(8), writer_data)):
            cut, losses = train(*shape, layouts, make, data)
            print(name, shape, f"{cut} weights cut:", ", ".join(f"{loss:.7f}" for loss in losses))
