"""Strings through a vectorization with a standardization of the program's own, in a data set's map,
a convolution over words, and a model of the strings themselves; needs Keras on TensorFlow."""

import numpy as np
import tensorflow as tf

from harness import keras, report, start

layers = keras.layers

WORDS = ["good", "bad", "film", "plot", "dull", "fine"]
rng = np.random.default_rng(0)
TEXTS = np.array(["<br />".join(w.title() + "!" for w in rng.choice(WORDS, 7)) for _ in range(24)])
LABELS = rng.integers(0, 2, 24).astype("float32")


def standardize(strings):
    plain = tf.strings.regex_replace(tf.strings.lower(strings), "<br />", " ")
    return tf.strings.regex_replace(plain, "!", "")


vectorize = layers.TextVectorization(standardize=standardize, max_tokens=7,
                                     output_sequence_length=9)
raw = tf.data.Dataset.from_tensor_slices((TEXTS, LABELS)).batch(8)
vectorize.adapt(raw.map(lambda x, y: x))
train = raw.map(lambda x, y: (vectorize(tf.expand_dims(x, -1)), y)).prefetch(2)

inputs = keras.Input((None,), dtype="int64")
x = layers.Embedding(7, 6)(inputs)
x = layers.Conv1D(5, 3, padding="valid", activation="relu", strides=2)(x)
x = layers.GlobalMaxPooling1D()(x)
model = start(keras.Model(inputs, layers.Dense(1, activation="sigmoid")(x)))
model.compile(keras.optimizers.SGD(0.1), "binary_crossentropy", metrics=["accuracy"])
losses = model.fit(train, epochs=3, verbose=0).history["loss"]

strings = keras.Input((1,), dtype="string")
whole = keras.Model(strings, model(vectorize(strings)))
report(losses=losses, words=[len(w) for w in vectorize.get_vocabulary()],
       predictions=whole.predict(tf.constant(TEXTS[:8, None]), verbose=0))
