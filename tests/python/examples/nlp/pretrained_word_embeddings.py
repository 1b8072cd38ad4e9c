"""Words looked up by a layer that is adapted, and a table that is not trained."""

import numpy as np
from harness import data, fit, keras, report, start

layers = keras.layers
samples = ["the cat sat on the mat", "a dog ran", "the dog sat", "cats and dogs ran away"] * 2
vectorizer = layers.TextVectorization(max_tokens=50, output_sequence_length=12)
vectorizer.adapt(np.array(samples))
voc = vectorizer.get_vocabulary()
table = data(len(voc) + 2, 8)
embedding_layer = layers.Embedding(len(voc) + 2, 8, trainable=False)
embedding_layer.build((1,))
embedding_layer.set_weights([table])
inputs = keras.Input(shape=(12,), dtype="int32")
x = embedding_layer(inputs)
x = layers.Conv1D(8, 3, activation="relu")(x)
x = layers.MaxPooling1D(2)(x)
x = layers.GlobalMaxPooling1D()(layers.Conv1D(8, 3, activation="relu")(x))
model = start(keras.Model(inputs, layers.Dense(3, activation="softmax")(layers.Dropout(0.0)(x))))
model.compile(loss="sparse_categorical_crossentropy", optimizer="rmsprop", metrics=["acc"])
ids = np.asarray(vectorizer(np.array([[s] for s in samples])))
logs = fit(model, ids, data(8, classes=3))
string_input = keras.Input(shape=(1,), dtype="string")
end_to_end = keras.Model(string_input, model(vectorizer(string_input)))
report(ids=ids, **logs)
