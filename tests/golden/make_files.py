"""Models saved by Keras, with their predictions and later losses. Writes files/.

sequence  Embedding, Bidirectional LSTM, TimeDistributed Dense, GRU, Dense; Adam under a schedule
images    Conv2D, BatchNormalization, MaxPooling2D, Flatten, Dropout(0), Dense; SGD with momentum
branches  two inputs, a Dense called twice, a model in the model; RMSprop, two outputs

CASE.keras, CASE.weights.h5 and CASE.h5 are the model after three steps; CASE.npz has its inputs
x0, x1, labels y0, y1, predictions p0, p1, and `losses` of four more steps on the same batch.
nested.keras is of a custom class, as keras/src/saving/test_data/pre_pr22362_nested_container
and the backbones of KerasHub are: its layers are in a list of tuples; nested.npz has x0 and p0.
images.weights.json names the files of its weights in shards, images_0000N.weights.h5;
untrained.keras is compiled and not trained: its optimizer has no variables for weights yet.
hostile_NAME.weights.h5 are files of `images` with one part corrupted.
"""

import os

import common
import h5py
import keras
import numpy as np

L = keras.layers
OUT = common.folder("files")


def sequence():
    model = keras.Sequential(
        [
            keras.Input((6,)),
            L.Embedding(10, 4),
            L.Bidirectional(L.LSTM(3, return_sequences=True)),
            L.TimeDistributed(L.Dense(3, activation="tanh")),
            L.GRU(4, return_sequences=True),
            L.SimpleRNN(3),
            L.Dense(5, activation="relu", kernel_regularizer="l2"),
            L.Dense(3, activation="softmax", name="scores"),
        ],
        name="sequence",
    )
    schedule = keras.optimizers.schedules.ExponentialDecay(0.02, 10, 0.9)
    model.compile(keras.optimizers.Adam(schedule, amsgrad=True, clipnorm=1.0),
                  "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model, [np.arange(48).reshape(8, 6) * 7 % 10], [np.arange(8) % 3]


def images():
    model = keras.Sequential(
        [
            keras.Input((8, 8, 2)),
            L.Conv2D(4, 3, strides=2, padding="same", activation="relu"),
            L.BatchNormalization(),
            L.Conv2D(3, 3, use_bias=False, padding="same", activation="elu"),
            L.MaxPooling2D(2),
            L.Flatten(),
            L.Dropout(0.0),
            L.Dense(4),
        ],
        name="images",
    )
    model.compile(keras.optimizers.SGD(0.05, momentum=0.9, nesterov=True),
                  keras.losses.SparseCategoricalCrossentropy(from_logits=True),
                  metrics=["accuracy"])
    x = np.random.default_rng(1).normal(size=(8, 8, 8, 2)).astype("float32")
    return model, [x], [np.arange(8) % 4]


def branches():
    source, side = keras.Input((4,), name="source"), keras.Input((6,), name="side")
    h = keras.Input((4,), name="code_in")
    encoder = keras.Model(h, L.Dense(3, activation="tanh")(h), name="encoder")
    shared = L.Dense(4, activation="relu", name="shared")
    a = shared(source)
    b = shared(L.Dense(4)(side))
    both = L.Concatenate()([encoder(a), encoder(b), side])
    scores = L.Dense(3, activation="softmax", name="scores")(both)
    value = L.Dense(1, name="value")(L.Add()([a, b]))
    model = keras.Model([source, side], [scores, value], name="branches")
    model.compile(keras.optimizers.RMSprop(0.01, centered=True, momentum=0.5),
                  ["sparse_categorical_crossentropy", "mean_squared_error"],
                  loss_weights=[1.0, 0.25], metrics=[["accuracy"], ["mse"]])
    draw = np.random.default_rng(2).normal
    x = [draw(size=(8, 4)).astype("float32"), draw(size=(8, 6)).astype("float32")]
    return model, x, [np.arange(8) % 3, draw(size=(8, 1)).astype("float32")]


def step(model, x, y):
    return model.fit(x if len(x) > 1 else x[0], y if len(y) > 1 else y[0], batch_size=8,
                     shuffle=False, verbose=0).history["loss"][0]


for make in (sequence, images, branches):
    keras.utils.set_random_seed(7)
    model, x, y = make()
    for _ in range(3):
        step(model, x, y)
    name = str(OUT / model.name)
    model.save(f"{name}.keras")
    model.save_weights(f"{name}.weights.h5")
    model.save(f"{name}.h5")
    if make is images:
        model.save_weights(f"{name}.weights.json", max_shard_size=500 / 1024**3)
    predictions = model.predict(x if len(x) > 1 else x[0], verbose=0)
    predictions = predictions if isinstance(predictions, list) else [predictions]
    arrays = {f"x{i}": a.astype("int32") if a.dtype == np.int64 else a for i, a in enumerate(x)}
    arrays |= {f"y{i}": a.astype("int32") if a.dtype == np.int64 else a for i, a in enumerate(y)}
    arrays |= {f"p{i}": a for i, a in enumerate(predictions)}
    arrays["losses"] = np.array([step(model, x, y) for _ in range(4)], np.float32)
    np.savez_compressed(f"{name}.npz", **arrays)



@keras.saving.register_keras_serializable("cornu")
class Nested(keras.Model):
    def __init__(self, **arguments):
        x = source = keras.Input((4,))
        blocks = []
        for i in range(2):
            blocks.append((L.Dense(5, use_bias=False, name=f"narrow_{i}"),
                           L.Dense(4, activation="tanh", name=f"wide_{i}")))
            for layer in blocks[-1]:
                x = layer(x)
        super().__init__(source, x, **arguments)
        self.blocks = blocks

    def get_config(self):
        return {"name": self.name}


def nested():
    keras.utils.set_random_seed(7)
    model = Nested(name="nested")
    x = np.random.default_rng(3).normal(size=(8, 4)).astype("float32")
    model.save(OUT / "nested.keras")
    np.savez_compressed(OUT / "nested.npz", x0=x, p0=model.predict(x, verbose=0))


def untrained():
    model = keras.Sequential([keras.Input((3,)), L.Dense(2)], name="untrained")
    model.compile(keras.optimizers.Adam(0.25, name="adam"), "mse")
    model.save(OUT / "untrained.keras")


nested()
untrained()

# Hostile ones: the first kernel of `images` replaced.
KERNEL, BIAS = "layers/conv2d/vars/0", "layers/conv2d/vars/1"
original = (OUT / "images.weights.h5").read_bytes()


def hostile(name, change):
    path = OUT / f"hostile_{name}.weights.h5"
    path.write_bytes(original)
    with h5py.File(path, "a") as file:
        shape = file[KERNEL].shape
        del file[KERNEL]
        change(file, shape)


def virtual(file, shape):
    layout = h5py.VirtualLayout(shape=shape, dtype="f4")
    layout[...] = h5py.VirtualSource("images.weights.h5", KERNEL, shape=shape)
    file.create_virtual_dataset(KERNEL, layout)


def texts(file, shape):
    file.create_dataset(KERNEL, data=["a", "b"], dtype=h5py.string_dtype())


def soft(file, shape):
    file[KERNEL] = h5py.SoftLink("/" + BIAS)


def external_link(file, shape):
    file[KERNEL] = h5py.ExternalLink("images.weights.h5", KERNEL)


def external_data(file, shape):
    file.create_dataset(KERNEL, shape, "f4", external=[("/etc/passwd", 0, 4 * int(np.prod(shape)))])


def huge(file, shape):
    file.create_dataset(KERNEL, (1 << 20, 1 << 20), "f4", chunks=(64, 64))


hostile("soft", soft)
hostile("external_link", external_link)
hostile("external_data", external_data)
hostile("virtual", virtual)
hostile("huge", huge)
hostile("texts", texts)
hostile("missing", lambda file, shape: None)
hostile("group", lambda file, shape: file.create_group(KERNEL))
hostile("shape", lambda file, shape: file.create_dataset(KERNEL, data=np.zeros((3, 3), "f4")))
