"""A convolutional autoencoder."""

import numpy as np
from harness import data, fit, keras, report, start

layers = keras.layers
x = data(8, 32, 1)
model = keras.Sequential([
    layers.Input(shape=(x.shape[1], x.shape[2])),
    layers.Conv1D(filters=8, kernel_size=7, padding="same", strides=2, activation="relu"),
    layers.Dropout(rate=0.0),
    layers.Conv1D(filters=4, kernel_size=7, padding="same", strides=2, activation="relu"),
    layers.Conv1DTranspose(filters=4, kernel_size=7, padding="same", strides=2, activation="relu"),
    layers.Dropout(rate=0.0),
    layers.Conv1DTranspose(filters=8, kernel_size=7, padding="same", strides=2, activation="relu"),
    layers.Conv1DTranspose(filters=1, kernel_size=7, padding="same"),
])
start(model)
model.compile(optimizer=keras.optimizers.Adam(learning_rate=0.001), loss="mse")
logs = fit(model, x, x)
report(threshold=np.max(np.mean(np.abs(model.predict(x, verbose=0) - x), axis=1)), **logs)
