"""Curves that a network makes for each pixel, with four losses and no labels, in steps of one's
own."""

from harness import GradientTape, data, keras, report, start

layers, ops = keras.layers, keras.ops


def build_dce_net():
    input_image = keras.Input(shape=[None, None, 3])
    conv1 = layers.Conv2D(4, (3, 3), strides=(1, 1), activation="relu", padding="same")(input_image)
    conv2 = layers.Conv2D(4, (3, 3), strides=(1, 1), activation="relu", padding="same")(conv1)
    int_con1 = layers.Concatenate(axis=-1)([conv2, conv1])
    x_r = layers.Conv2D(24, (3, 3), strides=(1, 1), activation="tanh", padding="same")(int_con1)
    return keras.Model(inputs=input_image, outputs=x_r)


def color_constancy_loss(x):
    mean_rgb = ops.mean(x, axis=(1, 2), keepdims=True)
    mr, mg, mb = mean_rgb[:, :, :, 0], mean_rgb[:, :, :, 1], mean_rgb[:, :, :, 2]
    d_rg, d_rb, d_gb = ops.square(mr - mg), ops.square(mr - mb), ops.square(mb - mg)
    return ops.sqrt(ops.square(d_rg) + ops.square(d_rb) + ops.square(d_gb))


def exposure_loss(x, mean_val=0.6):
    x = ops.mean(x, axis=3, keepdims=True)
    mean = ops.average_pool(x, pool_size=4, strides=4, padding="valid")
    return ops.mean(ops.square(mean - mean_val))


def illumination_smoothness_loss(x):
    batch_size, h_x, w_x = ops.shape(x)[0], ops.shape(x)[1], ops.shape(x)[2]
    count_h = (w_x - 1) * ops.shape(x)[3]
    count_w = w_x * (ops.shape(x)[3] - 1)
    h_tv = ops.sum(ops.square((x[:, 1:, :, :] - x[:, : h_x - 1, :, :])))
    w_tv = ops.sum(ops.square((x[:, :, 1:, :] - x[:, :, : w_x - 1, :])))
    batch_size = ops.cast(batch_size, dtype="float32")
    count_h, count_w = ops.cast(count_h, dtype="float32"), ops.cast(count_w, dtype="float32")
    return 2 * (h_tv / count_h + w_tv / count_w) / batch_size


class SpatialConsistencyLoss(keras.losses.Loss):
    def __init__(self, **kwargs):
        super().__init__(reduction=None)
        self.left_kernel = ops.convert_to_tensor(
            [[[[0, 0, 0]], [[-1, 1, 0]], [[0, 0, 0]]]], dtype="float32")
        self.left_kernel = ops.reshape(self.left_kernel, (3, 3, 1, 1))
        self.up_kernel = ops.reshape(ops.convert_to_tensor(
            [[0, -1, 0], [0, 1, 0], [0, 0, 0]], dtype="float32"), (3, 3, 1, 1))

    def call(self, y_true, y_pred):
        original_pool = ops.average_pool(ops.mean(y_true, 3, keepdims=True), pool_size=4,
                                         strides=4, padding="valid")
        enhanced_pool = ops.average_pool(ops.mean(y_pred, 3, keepdims=True), pool_size=4,
                                         strides=4, padding="valid")
        total = 0.0
        for kernel in (self.left_kernel, self.up_kernel):
            d_original = ops.conv(original_pool, kernel, strides=(1, 1), padding="same")
            d_enhance = ops.conv(enhanced_pool, kernel, strides=(1, 1), padding="same")
            total = total + ops.square(d_original - d_enhance)
        return total


class ZeroDCE(keras.Model):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.dce_model = start(build_dce_net())

    def compile(self, learning_rate, **kwargs):
        super().compile(**kwargs)
        self.optimizer = keras.optimizers.Adam(learning_rate=learning_rate)
        self.spatial_constancy_loss = SpatialConsistencyLoss(reduction="none")
        self.total_loss_tracker = keras.metrics.Mean(name="total_loss")
        self.exposure_loss_tracker = keras.metrics.Mean(name="exposure_loss")

    @property
    def metrics(self):
        return [self.total_loss_tracker, self.exposure_loss_tracker]

    def get_enhanced_image(self, data, output):
        x = data
        for i in range(0, 3 * 8, 3):
            r = output[:, :, :, i: i + 3]
            x = x + r * (ops.square(x) - x)
        return x

    def call(self, data):
        return self.get_enhanced_image(data, self.dce_model(data))

    def compute_losses(self, data, output):
        enhanced_image = self.get_enhanced_image(data, output)
        loss_illumination = 200 * illumination_smoothness_loss(output)
        loss_spatial = ops.mean(self.spatial_constancy_loss(enhanced_image, data))
        loss_color = 5 * ops.mean(color_constancy_loss(enhanced_image))
        loss_exposure = 10 * ops.mean(exposure_loss(enhanced_image))
        return {"total_loss": loss_illumination + loss_spatial + loss_color + loss_exposure,
                "exposure_loss": loss_exposure}

    def train_step(self, data):
        with GradientTape() as tape:
            losses = self.compute_losses(data, self.dce_model(data))
        gradients = tape.gradient(losses["total_loss"], self.dce_model.trainable_weights)
        self.optimizer.apply_gradients(zip(gradients, self.dce_model.trainable_weights))
        self.total_loss_tracker.update_state(losses["total_loss"])
        self.exposure_loss_tracker.update_state(losses["exposure_loss"])
        return {metric.name: metric.result() for metric in self.metrics}

    def test_step(self, data):
        losses = self.compute_losses(data, self.dce_model(data))
        self.total_loss_tracker.update_state(losses["total_loss"])
        self.exposure_loss_tracker.update_state(losses["exposure_loss"])
        return {metric.name: metric.result() for metric in self.metrics}


images = abs(data(3, 8, 8, 3)) % 1
model = ZeroDCE()
model.compile(learning_rate=1e-4)
logs = model.fit(images, epochs=3, batch_size=3, shuffle=False, verbose=0,
                 validation_data=(images[:2],)).history
report(enhanced=model(images[:1]), **logs)
