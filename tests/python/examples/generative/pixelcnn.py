"""A layer that masks the kernel of a convolution before it calls it, and residual blocks; pixels
are drawn one after the other."""

import numpy as np
from harness import data, fit, keras, report, start

layers, ops = keras.layers, keras.ops


class PixelConvLayer(layers.Layer):
    def __init__(self, mask_type, **kwargs):
        super().__init__()
        self.mask_type = mask_type
        self.conv = layers.Conv2D(**kwargs)

    def build(self, input_shape):
        self.conv.build(input_shape)
        kernel_shape = ops.shape(self.conv.kernel)
        self.mask = np.zeros(shape=kernel_shape)
        self.mask[:kernel_shape[0] // 2, ...] = 1.0
        self.mask[kernel_shape[0] // 2, :kernel_shape[1] // 2, ...] = 1.0
        if self.mask_type == "B":
            self.mask[kernel_shape[0] // 2, kernel_shape[1] // 2, ...] = 1.0

    def call(self, inputs):
        self.conv.kernel.assign(self.conv.kernel * self.mask)
        return self.conv(inputs)


class ResidualBlock(keras.layers.Layer):
    def __init__(self, filters, **kwargs):
        super().__init__(**kwargs)
        self.conv1 = keras.layers.Conv2D(filters=filters, kernel_size=1, activation="relu")
        self.pixel_conv = PixelConvLayer(mask_type="B", filters=filters // 2, kernel_size=3,
                                         activation="relu", padding="same")
        self.conv2 = keras.layers.Conv2D(filters=filters, kernel_size=1, activation="relu")

    def call(self, inputs):
        return keras.layers.add([inputs, self.conv2(self.pixel_conv(self.conv1(inputs)))])


inputs = keras.Input(shape=(6, 6, 1), batch_size=4)
x = PixelConvLayer(mask_type="A", filters=8, kernel_size=7, activation="relu",
                   padding="same")(inputs)
x = ResidualBlock(filters=8)(x)
x = PixelConvLayer(mask_type="B", filters=8, kernel_size=1, strides=1, activation="relu",
                   padding="valid")(x)
out = keras.layers.Conv2D(filters=1, kernel_size=1, strides=1, activation="sigmoid",
                          padding="valid")(x)
pixel_cnn = start(keras.Model(inputs, out))
pixel_cnn.compile(optimizer=keras.optimizers.RMSprop(learning_rate=0.0005),
                  loss="binary_crossentropy")
images = data(4, 6, 6, 1, classes=2).astype("float32")
logs = fit(pixel_cnn, images, images)
pixels = np.zeros((4, 6, 6, 1), "float32")
for row in range(2):
    for col in range(6):
        probs = ops.convert_to_numpy(pixel_cnn(pixels))[:, row, col, :]
        pixels[:, row, col, :] = np.ceil(probs - 0.5)
report(pixels=pixels[:, :2], probs=probs, **logs)
