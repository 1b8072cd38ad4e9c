"""Separable convolutions with shortcuts, of a folder of images."""

import os
import tempfile

import numpy as np
from harness import data, keras, report, start

layers = keras.layers
folder = tempfile.mkdtemp()
for i in range(8):
    os.makedirs(os.path.join(folder, "ab"[i % 2]), exist_ok=True)
    pixels = np.uint8(abs(data(40, 30, 3, seed=i)) * 90 % 256)
    keras.utils.save_img(os.path.join(folder, "ab"[i % 2], "%d.png" % i), pixels, scale=False)
train_ds, val_ds = keras.utils.image_dataset_from_directory(
    folder, validation_split=0.25, subset="both", seed=1337, image_size=(32, 32), batch_size=8,
    shuffle=False, verbose=False, labels=[0, 1] * 4)
val_ds = val_ds.map(lambda x, y: (x, y))


def make_model(input_shape):
    inputs = keras.Input(shape=input_shape)
    x = layers.Rescaling(1.0 / 255)(inputs)
    x = layers.Conv2D(8, 3, strides=2, padding="same")(x)
    x = layers.Activation("relu")(layers.BatchNormalization()(x))
    previous = x
    for size in [16, 24]:
        for _ in range(2):
            x = layers.Activation("relu")(x)
            x = layers.SeparableConv2D(size, 3, padding="same")(x)
            x = layers.BatchNormalization()(x)
        x = layers.MaxPooling2D(3, strides=2, padding="same")(x)
        residual = layers.Conv2D(size, 1, strides=2, padding="same")(previous)
        previous = x = layers.add([x, residual])
    x = layers.GlobalAveragePooling2D()(x)
    return keras.Model(inputs, layers.Dense(1, activation=None)(layers.Dropout(0.0)(x)))


model = start(make_model(input_shape=(32, 32) + (3,)))
model.compile(optimizer=keras.optimizers.Adam(3e-4),
              loss=keras.losses.BinaryCrossentropy(from_logits=True),
              metrics=[keras.metrics.BinaryAccuracy(name="acc")])
history = model.fit(train_ds, epochs=3, validation_data=val_ds, verbose=0)
path = os.path.join(folder, "0.png")
img = keras.utils.load_img(os.path.join(folder, "a", "0.png"), target_size=(32, 32))
img_array = np.expand_dims(keras.utils.img_to_array(img), 0)
report(prediction=model.predict(img_array, verbose=0), **history.history)
