"""Volumes through convolutions of three axes, with a schedule and the best weights of a file."""

import os
import tempfile

from harness import data, keras, report, start

layers = keras.layers


def get_model(width, height, depth):
    inputs = keras.Input((width, height, depth, 1))
    x = layers.Conv3D(filters=4, kernel_size=3, activation="relu")(inputs)
    x = layers.MaxPool3D(pool_size=2)(x)
    x = layers.BatchNormalization()(x)
    x = layers.Conv3D(filters=6, kernel_size=3, activation="relu")(x)
    x = layers.MaxPool3D(pool_size=2)(x)
    x = layers.BatchNormalization()(x)
    x = layers.GlobalAveragePooling3D()(x)
    x = layers.Dense(units=8, activation="relu")(x)
    x = layers.Dropout(0.0)(x)
    return keras.Model(inputs, layers.Dense(units=1, activation="sigmoid")(x), name="3dcnn")


model = start(get_model(14, 12, 10))
lr_schedule = keras.optimizers.schedules.ExponentialDecay(
    0.01, decay_steps=2, decay_rate=0.96, staircase=True)
# With Adam's usual epsilon rounding moves weights whose gradients BatchNormalization makes 0.
model.compile(loss="binary_crossentropy", metrics=["acc"],
              optimizer=keras.optimizers.Adam(learning_rate=lr_schedule, epsilon=1e-4))
x, y = data(6, 14, 12, 10, 1), data(6, classes=2)
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "3d_image_classification.keras")
    checkpoint_cb = keras.callbacks.ModelCheckpoint(path, save_best_only=True)
    early_stopping_cb = keras.callbacks.EarlyStopping(monitor="val_acc", patience=15)
    model.fit(x, y, batch_size=2, epochs=4, shuffle=False, verbose=0,
              validation_data=(x[:3], y[:3]), callbacks=[checkpoint_cb, early_stopping_cb])
    model.load_weights(path)
report(prediction=model.predict(x[:1], verbose=0)[0], **model.history.history)
