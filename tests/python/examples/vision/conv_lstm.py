"""The next frames of films."""

from harness import data, fit, keras, report, start

layers = keras.layers
x = abs(data(4, 5, 12, 12, 1)) % 1
inputs = layers.Input(shape=(None, 12, 12, 1))
y = inputs
for size in (5, 3, 1):
    y = layers.ConvLSTM2D(filters=4, kernel_size=(size, size), padding="same",
                          return_sequences=True, activation="relu")(y)
    y = layers.BatchNormalization()(y)
y = layers.Conv3D(filters=1, kernel_size=(3, 3, 3), activation="sigmoid", padding="same")(y)
model = start(keras.models.Model(inputs, y))
model.compile(loss=keras.losses.binary_crossentropy, optimizer=keras.optimizers.Adam())
callbacks = [keras.callbacks.EarlyStopping(monitor="val_loss", patience=10),
             keras.callbacks.ReduceLROnPlateau(monitor="val_loss", patience=5)]
report(**fit(model, x[:, :-1], x[:, 1:], validation_data=(x[:, :-1], x[:, 1:]),
             callbacks=callbacks))
