"""Kernels that a network makes for each place, of patches of the image; layers that are made in
build; a model cut for what a layer returns beside its result."""

from harness import data, fit, keras, report, start

layers, ops = keras.layers, keras.ops


class Involution(layers.Layer):
    def __init__(self, channel, group_number, kernel_size, stride, reduction_ratio, name):
        super().__init__(name=name)
        self.channel, self.group_number, self.kernel_size = channel, group_number, kernel_size
        self.stride, self.reduction_ratio = stride, reduction_ratio

    def build(self, input_shape):
        (_, height, width, num_channels) = input_shape
        height, width = height // self.stride, width // self.stride
        self.stride_layer = layers.AveragePooling2D(
            pool_size=self.stride, strides=self.stride, padding="same") \
            if self.stride > 1 else keras.layers.Identity()
        self.kernel_gen = keras.Sequential([
            layers.Conv2D(filters=self.channel // self.reduction_ratio, kernel_size=1),
            layers.BatchNormalization(), layers.ReLU(),
            layers.Conv2D(filters=self.kernel_size * self.kernel_size * self.group_number,
                          kernel_size=1)])
        area = self.kernel_size * self.kernel_size
        self.kernel_reshape = layers.Reshape((height, width, area, 1, self.group_number))
        self.input_patches_reshape = layers.Reshape(
            (height, width, area, num_channels // self.group_number, self.group_number))
        self.output_reshape = layers.Reshape((height, width, num_channels))

    def call(self, x):
        kernel = self.kernel_reshape(self.kernel_gen(self.stride_layer(x)))
        input_patches = ops.image.extract_patches(
            x, size=(self.kernel_size, self.kernel_size), strides=(self.stride, self.stride),
            padding="same")
        output = ops.multiply(kernel, self.input_patches_reshape(input_patches))
        output = ops.sum(output, axis=3)
        return self.output_reshape(output), kernel


inputs = keras.Input(shape=(8, 8, 3))
x, _ = Involution(channel=3, group_number=1, kernel_size=3, stride=1, reduction_ratio=2,
                  name="inv_1")(inputs)
x = layers.MaxPooling2D((2, 2))(layers.ReLU()(x))
x, _ = Involution(channel=3, group_number=1, kernel_size=3, stride=1, reduction_ratio=2,
                  name="inv_2")(x)
x = layers.Flatten()(layers.ReLU()(x))
outputs = layers.Dense(4)(layers.Dense(8, activation="relu")(x))
model = start(keras.Model(inputs=[inputs], outputs=[outputs], name="inv_model"))
model.compile(optimizer="adam", metrics=["accuracy"],
              loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
images = data(8, 8, 8, 3)
logs = fit(model, images, data(8, 1, classes=4))
vis_model = keras.Model(model.inputs, [model.get_layer(name).output for name in ("inv_1", "inv_2")])
report(kernel=vis_model.predict(images, verbose=0)[1][1], **logs)
