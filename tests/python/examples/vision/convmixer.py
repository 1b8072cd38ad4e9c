"""Depthwise and pointwise convolutions."""

from harness import data, fit, keras, report, start

layers = keras.layers


def activation_block(x):
    return layers.BatchNormalization()(layers.Activation("gelu")(x))


inputs = keras.Input((16, 16, 3))
x = layers.Rescaling(scale=1.0 / 255)(inputs)
x = activation_block(layers.Conv2D(12, kernel_size=2, strides=2)(x))
for _ in range(2):
    x0 = x
    x = layers.DepthwiseConv2D(kernel_size=5, padding="same")(x)
    x = layers.Add()([activation_block(x), x0])
    x = activation_block(layers.Conv2D(12, kernel_size=1)(x))
x = layers.GlobalAvgPool2D()(x)
model = start(keras.Model(inputs, layers.Dense(10, activation="softmax")(x)))
model.compile(optimizer=keras.optimizers.AdamW(learning_rate=0.001, weight_decay=0.0001),
              loss="sparse_categorical_crossentropy", metrics=["accuracy"])
report(**fit(model, 100 * data(8, 16, 16, 3), data(8, classes=10)))
