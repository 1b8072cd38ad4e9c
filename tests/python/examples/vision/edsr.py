"""Residual blocks and pixels from channels, in a model with the compiled loss and metrics in its
own step, and a step of prediction that is called on one image."""

import numpy as np
from harness import GradientTape, data, keras, report, start

layers, ops = keras.layers, keras.ops


def PSNR(super_resolution, high_resolution):
    error = ops.mean(ops.square(high_resolution - super_resolution), axis=(1, 2, 3))
    return 10.0 * ops.log10(255.0 ** 2 / error)


class EDSRModel(keras.Model):
    def train_step(self, data):
        x, y = data
        with GradientTape() as tape:
            y_pred = self(x, training=True)
            loss = self.compiled_loss(y, y_pred, regularization_losses=self.losses)
        trainable_vars = self.trainable_variables
        gradients = tape.gradient(loss, trainable_vars)
        self.optimizer.apply_gradients(zip(gradients, trainable_vars))
        self.compiled_metrics.update_state(y, y_pred)
        return {m.name: m.result() for m in self.metrics}

    def predict_step(self, x):
        x = ops.cast(ops.expand_dims(x, axis=0), dtype="float32")
        super_resolution_img = self(x, training=False)
        super_resolution_img = ops.round(ops.clip(super_resolution_img, 0, 255))
        return ops.squeeze(ops.cast(super_resolution_img, dtype="uint8"), axis=0)


def res_block(inputs):
    x = layers.Conv2D(4, 3, padding="same", activation="relu")(inputs)
    x = layers.Conv2D(4, 3, padding="same")(x)
    return layers.Add()([inputs, x])


def upsampling(inputs, factor=2, **kwargs):
    for _ in range(2):
        x = layers.Conv2D(4 * (factor ** 2), 3, padding="same", **kwargs)(inputs)
        inputs = layers.Lambda(lambda x: ops.depth_to_space(x, block_size=factor))(x)
    return inputs


def make_model(num_of_residual_blocks):
    input_layer = layers.Input(shape=(None, None, 3))
    x = layers.Rescaling(scale=1.0 / 255)(input_layer)
    x = x_new = layers.Conv2D(4, 3, padding="same")(x)
    for _ in range(num_of_residual_blocks):
        x_new = res_block(x_new)
    x_new = layers.Conv2D(4, 3, padding="same")(x_new)
    x = upsampling(layers.Add()([x, x_new]))
    x = layers.Conv2D(3, 3, padding="same")(x)
    return EDSRModel(input_layer, layers.Rescaling(scale=255)(x))


model = start(make_model(2))
model.compile(optimizer=keras.optimizers.Adam(
    learning_rate=keras.optimizers.schedules.PiecewiseConstantDecay(
        boundaries=[2], values=[1e-3, 5e-4])), loss="mae", metrics=[PSNR])
highres = data(4, 24, 24, 3, classes=255).astype("float32")
history = model.fit(highres[:, ::4, ::4], highres, batch_size=2, epochs=2, shuffle=False, verbose=0)
image = ops.convert_to_numpy(model.predict_step(data(5, 7, 3, classes=255)))
report(loss=history.history["loss"], image=image.astype(int), shape=np.shape(image))
