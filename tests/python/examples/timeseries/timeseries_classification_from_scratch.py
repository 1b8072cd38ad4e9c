"""Convolutions over time, with callbacks that keep the best model."""

import os
import tempfile

from harness import data, fit, keras, report, start

layers = keras.layers
x, y = data(16, 40, 1), data(16, classes=2)
inputs = layers.Input(x.shape[1:])
h = inputs
for _ in range(3):
    h = layers.Conv1D(filters=8, kernel_size=3, padding="same")(h)
    h = layers.ReLU()(layers.BatchNormalization()(h))
outputs = layers.Dense(2, activation="softmax")(layers.GlobalAveragePooling1D()(h))
model = start(keras.models.Model(inputs=inputs, outputs=outputs))
path = os.path.join(tempfile.mkdtemp(), "best_model.keras")
callbacks = [keras.callbacks.ModelCheckpoint(path, save_best_only=True, monitor="val_loss"),
             keras.callbacks.ReduceLROnPlateau(monitor="val_loss", factor=0.5, patience=20),
             keras.callbacks.EarlyStopping(monitor="val_loss", patience=50, verbose=0)]
model.compile(optimizer="adam", loss="sparse_categorical_crossentropy",
              metrics=["sparse_categorical_accuracy"])
logs = fit(model, x, y, callbacks=callbacks, validation_data=(x, y))
model = keras.models.load_model(path)
report(score=model.evaluate(x, y, verbose=0), **logs)
