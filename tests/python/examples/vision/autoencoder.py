"""Convolutions and transposed ones, from images to the same images."""

from harness import data, fit, keras, report, start

layers = keras.layers
x = abs(data(8, 28, 28, 1)) % 1
inputs = layers.Input(shape=(28, 28, 1))
y = layers.Conv2D(8, (3, 3), activation="relu", padding="same")(inputs)
y = layers.MaxPooling2D((2, 2), padding="same")(y)
y = layers.Conv2D(8, (3, 3), activation="relu", padding="same")(y)
y = layers.MaxPooling2D((2, 2), padding="same")(y)
y = layers.Conv2DTranspose(8, (3, 3), strides=2, activation="relu", padding="same")(y)
y = layers.Conv2DTranspose(8, (3, 3), strides=2, activation="relu", padding="same")(y)
y = layers.Conv2D(1, (3, 3), activation="sigmoid", padding="same")(y)
autoencoder = start(keras.models.Model(inputs, y))
autoencoder.compile(optimizer="adam", loss="binary_crossentropy")
report(out=autoencoder.predict(x, verbose=0), **fit(autoencoder, x, x, validation_data=(x, x)))
