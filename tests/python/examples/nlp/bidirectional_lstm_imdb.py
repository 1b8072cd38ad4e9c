"""Reviews as integers."""

from harness import data, fit, keras, report, start

layers = keras.layers
x = keras.utils.pad_sequences([list(row[:n]) for row, n in zip(data(16, 30, classes=200),
                                                              range(10, 26))], maxlen=20)
inputs = keras.Input(shape=(None,), dtype="int32")
y = layers.Embedding(200, 16)(inputs)
y = layers.Bidirectional(layers.LSTM(8, return_sequences=True))(y)
y = layers.Bidirectional(layers.LSTM(8))(y)
model = start(keras.Model(inputs, layers.Dense(1, activation="sigmoid")(y)))
model.compile(optimizer="adam", loss="binary_crossentropy", metrics=["accuracy"])
report(**fit(model, x, data(16, classes=2)))
