"""A table's columns, each encoded by a layer that is adapted to it: numbers, whole numbers and
strings, as a data set of dictionaries; needs Keras on TensorFlow."""

import numpy as np
import tensorflow as tf

from harness import keras, report, start

layers = keras.layers

rng = np.random.default_rng(0)
TABLE = {"age": rng.normal(50, 9, 32), "rate": rng.normal(0, 2, 32),
         "kind": rng.integers(0, 4, 32), "thal": rng.choice(["fixed", "normal", "other"], 32)}
data = tf.data.Dataset.from_tensor_slices((TABLE, rng.integers(0, 2, 32))).batch(16)


def encoded(symbol, name, layer):
    layer.adapt(data.map(lambda x, y: tf.expand_dims(x[name], -1)))
    return layer(symbol)


inputs = {"age": keras.Input((1,), name="age"), "rate": keras.Input((1,), name="rate"),
          "kind": keras.Input((1,), name="kind", dtype="int64"),
          "thal": keras.Input((1,), name="thal", dtype="string")}
x = layers.concatenate([
    encoded(inputs["age"], "age", layers.Normalization()),
    encoded(inputs["rate"], "rate", layers.Normalization()),
    encoded(inputs["kind"], "kind", layers.IntegerLookup(output_mode="binary")),
    encoded(inputs["thal"], "thal", layers.StringLookup(output_mode="binary"))])
x = layers.Dense(8, activation="relu")(x)
model = start(keras.Model(inputs, layers.Dense(1, activation="sigmoid")(x)))
model.compile("adam", "binary_crossentropy", metrics=["accuracy"])
losses = model.fit(data, epochs=3, verbose=0).history["loss"]
sample = {name: tf.constant(values[:5, None]) for name, values in TABLE.items()}
report(losses=losses, predictions=model.predict(sample, verbose=0))
