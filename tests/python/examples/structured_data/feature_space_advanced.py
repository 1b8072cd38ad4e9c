"""A FeatureSpace of every kind of column, with crosses, in a data set's map, in a model that is
trained, and, from a file, before it; needs Keras on TensorFlow."""

import os
import tempfile

import numpy as np
import tensorflow as tf

from harness import keras, report, start

FeatureSpace = keras.utils.FeatureSpace

rng = np.random.default_rng(0)
TABLE = {"age": rng.integers(18, 90, 64), "rate": rng.normal(0, 2, 64).astype("float32"),
         "kind": rng.integers(3, 7, 64), "visits": rng.integers(0, 50, 64),
         "job": rng.choice(["clerk", "nurse", "cook"], 64), "town": rng.choice(list("abcde"), 64)}
NOTES = rng.choice(["good deal", "bad weather", "good weather"], 64)
data = tf.data.Dataset.from_tensor_slices((TABLE, rng.integers(0, 2, 64)))

single = FeatureSpace({
    "kind": FeatureSpace.integer_categorical(num_oov_indices=0), "job": "string_categorical",
    "notes": FeatureSpace.feature("string", keras.layers.TextVectorization(output_mode="tf_idf"),
                                  "float")}, output_mode="dict")
words = {"kind": TABLE["kind"], "job": TABLE["job"], "notes": NOTES}
single.adapt(tf.data.Dataset.from_tensor_slices(words))
row = single({name: values[0] for name, values in words.items()})

data = data.batch(16)
space = FeatureSpace(
    features={"age": FeatureSpace.float_discretized(num_bins=4), "rate": "float_normalized",
              "kind": FeatureSpace.integer_categorical(num_oov_indices=0),
              "visits": FeatureSpace.integer_hashed(num_bins=4),
              "job": FeatureSpace.string_categorical(num_oov_indices=0),
              "town": FeatureSpace.string_hashed(num_bins=3)},
    crosses=[FeatureSpace.cross(("age", "job"), 8), ("kind", "town")], crossing_dim=6)
space.adapt(data.map(lambda x, _: x))

encoded = space.get_encoded_features()
x = keras.layers.Dense(8, activation="relu")(encoded)
model = start(keras.Model(encoded, keras.layers.Dense(1, activation="sigmoid")(x)))
model.compile("adam", "binary_crossentropy")
losses = model.fit(data.map(lambda x, y: (space(x), y)), epochs=3, verbose=0).history["loss"]

with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "space.keras")
    space.save(path)
    loaded = keras.models.load_model(path)
whole = keras.Model(loaded.get_inputs(), model(loaded.get_encoded_features()))
sample = {name: tf.convert_to_tensor(TABLE[name][:5]) for name in space.features}
report(losses=losses, vectors=np.asarray(space(sample))[:2], job=row["job"], kind=row["kind"],
       notes=row["notes"], predictions=whole.predict(sample, verbose=0))
