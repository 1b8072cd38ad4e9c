"""A U-shaped network of separable convolutions."""

from harness import data, fit, keras, report, start

layers = keras.layers


def get_model(img_size, num_classes):
    inputs = keras.Input(shape=img_size + (3,))
    x = layers.Conv2D(8, 3, strides=2, padding="same")(inputs)
    x = layers.Activation("relu")(layers.BatchNormalization()(x))
    previous = x
    for filters in [8, 16]:
        for _ in range(2):
            x = layers.Activation("relu")(x)
            x = layers.SeparableConv2D(filters, 3, padding="same")(x)
            x = layers.BatchNormalization()(x)
        x = layers.MaxPooling2D(3, strides=2, padding="same")(x)
        previous = x = layers.add([x, layers.Conv2D(filters, 1, strides=2,
                                                    padding="same")(previous)])
    for filters in [16, 8, 8]:
        for _ in range(2):
            x = layers.Activation("relu")(x)
            x = layers.Conv2DTranspose(filters, 3, padding="same")(x)
            x = layers.BatchNormalization()(x)
        x = layers.UpSampling2D(2)(x)
        residual = layers.Conv2D(filters, 1, padding="same")(layers.UpSampling2D(2)(previous))
        previous = x = layers.add([x, residual])
    return keras.Model(inputs, layers.Conv2D(num_classes, 3, activation="softmax",
                                             padding="same")(x))


model = start(get_model((32, 32), 3))
model.compile(optimizer=keras.optimizers.Adam(1e-3), loss="sparse_categorical_crossentropy")
report(**fit(model, data(4, 32, 32, 3), data(4, 32, 32, 1, classes=3)))
