"""Models that begin with layers of strings, as Keras on TensorFlow saves them. Writes text_models/:
NAME.keras, and NAME.json with strings, numbers, predictions and the loss of a step of SGD.

Run with KERAS_BACKEND=tensorflow: other backends have no strings."""

import json
import os

os.environ["KERAS_BACKEND"] = "tensorflow"

import common
import keras
import numpy as np
import tensorflow as tf

L = keras.layers
TEXTS = ["the cat sat", "a dog, a DOG!", "", "the bird sat on the dog today"]
COLORS = ["red", "green", "sky", "red"]
NUMBERS = [[0.5, -1.0], [0.25, 2.0], [-0.75, 0.0], [1.0, 1.0]]
TARGETS = [[1.0], [0.0], [1.0], [0.0]]


def branches():
    text, color = keras.Input((1,), dtype="string", name="text"), keras.Input((1,), dtype="string", name="color")
    number = keras.Input((2,), name="number")
    words = L.TextVectorization(output_sequence_length=5, name="words")
    words.adapt(np.array(TEXTS))
    x = L.Embedding(12, 3, name="embedding", mask_zero=True)(words(text))
    x = L.GlobalAveragePooling1D()(x)
    known = L.StringLookup(vocabulary=["red", "green"], output_mode="one_hot", name="known")(color)
    bins = L.Hashing(5, name="bins", salt=[3, 4])(color)
    crossed = L.HashedCrossing(7, output_mode="one_hot", name="crossed")([color, color])
    y = L.Concatenate()([x, number, known, L.Flatten()(L.Embedding(5, 2, name="of_bins")(bins)), crossed])
    return keras.Model([text, color, number], L.Dense(1, activation="sigmoid", name="out")(y), name="branches")


def weighted():
    words = L.TextVectorization(output_mode="tf_idf", name="words")
    words.adapt(np.array(TEXTS))
    return keras.Sequential([keras.Input((), dtype="string"), words, L.Dense(1, name="out")], name="weighted")


def looked_up():
    lookup = L.StringLookup(num_oov_indices=2, mask_token="", name="lookup")
    lookup.adapt(np.array(COLORS + ["red", "blue"]))
    return keras.Sequential([keras.Input((1,), dtype="string"), lookup, L.Embedding(8, 2), L.Flatten(),
                             L.Dense(1, name="out")], name="looked_up")


if __name__ == "__main__":
    to = common.folder("text_models")
    # A mean over no words is NaN.
    inputs = {"branches": [[[t or "dog"] for t in TEXTS], [[c] for c in COLORS], NUMBERS],
              "weighted": [TEXTS], "looked_up": [[[c] for c in COLORS]]}
    for make in (branches, weighted, looked_up):
        keras.utils.set_random_seed(1)
        model = make()
        given = inputs[model.name]
        x = [tf.constant(v) for v in given]
        x = x if len(x) > 1 else x[0]
        model.compile(optimizer=keras.optimizers.SGD(0.5), loss="mse")
        model.save(to / f"{model.name}.keras")
        about = {"inputs": given, "targets": TARGETS,
                 "predicted": np.asarray(model(x)).tolist(),
                 "loss": float(np.asarray(model.train_on_batch(x, tf.constant(TARGETS)))),
                 "after": np.asarray(model(x)).tolist()}
        (to / f"{model.name}.json").write_text(json.dumps(about, indent=0) + "\n")
