"""A network and its moving average, which a step assigns; a schedule of noise, normalization that
is adapted, and a callback that draws images. The noise is a constant here."""

import math

from harness import GradientTape, data, keras, report, start

layers, ops = keras.layers, keras.ops
image_size, embedding_dims, ema, batch_size = 8, 8, 0.9, 4
min_signal_rate, max_signal_rate = 0.02, 0.95
fixed_noises, fixed_times = data(batch_size, image_size, image_size, 3), data(4, 1, 1, 1) % 1


@keras.saving.register_keras_serializable()
def sinusoidal_embedding(x):
    frequencies = ops.exp(ops.linspace(ops.log(1.0), ops.log(100.0), embedding_dims // 2))
    angular_speeds = ops.cast(2.0 * math.pi * frequencies, "float32")
    return ops.concatenate([ops.sin(angular_speeds * x), ops.cos(angular_speeds * x)], axis=3)


def ResidualBlock(width):
    def apply(x):
        residual = x if x.shape[3] == width else layers.Conv2D(width, kernel_size=1)(x)
        x = layers.BatchNormalization(center=False, scale=False)(x)
        x = layers.Conv2D(width, kernel_size=3, padding="same", activation="swish")(x)
        x = layers.Conv2D(width, kernel_size=3, padding="same")(x)
        return layers.Add()([x, residual])
    return apply


def get_network(widths):
    noisy_images = keras.Input(shape=(image_size, image_size, 3))
    noise_variances = keras.Input(shape=(1, 1, 1))
    e = layers.Lambda(sinusoidal_embedding, output_shape=(1, 1, embedding_dims))(noise_variances)
    e = layers.UpSampling2D(size=image_size, interpolation="nearest")(e)
    x = layers.Conv2D(widths[0], kernel_size=1)(noisy_images)
    x, skips = layers.Concatenate()([x, e]), []
    for width in widths[:-1]:
        x = ResidualBlock(width)(x)
        skips.append(x)
        x = layers.AveragePooling2D(pool_size=2)(x)
    x = ResidualBlock(widths[-1])(x)
    for width in reversed(widths[:-1]):
        x = layers.UpSampling2D(size=2, interpolation="bilinear")(x)
        x = ResidualBlock(width)(layers.Concatenate()([x, skips.pop()]))
    x = layers.Conv2D(3, kernel_size=1, kernel_initializer="zeros")(x)
    return keras.Model([noisy_images, noise_variances], x, name="residual_unet")


class DiffusionModel(keras.Model):
    def __init__(self, widths):
        super().__init__()
        self.normalizer = layers.Normalization()
        self.network = start(get_network(widths))
        self.ema_network = keras.models.clone_model(self.network)
        self.ema_network.set_weights(self.network.get_weights())

    def compile(self, **kwargs):
        super().compile(**kwargs)
        self.noise_loss_tracker = keras.metrics.Mean(name="n_loss")
        self.image_loss_tracker = keras.metrics.Mean(name="i_loss")

    @property
    def metrics(self):
        return [self.noise_loss_tracker, self.image_loss_tracker]

    def denormalize(self, images):
        images = self.normalizer.mean + images * self.normalizer.variance ** 0.5
        return ops.clip(images, 0.0, 1.0)

    def diffusion_schedule(self, diffusion_times):
        start_angle = ops.cast(ops.arccos(max_signal_rate), "float32")
        end_angle = ops.cast(ops.arccos(min_signal_rate), "float32")
        diffusion_angles = start_angle + diffusion_times * (end_angle - start_angle)
        return ops.sin(diffusion_angles), ops.cos(diffusion_angles)

    def denoise(self, noisy_images, noise_rates, signal_rates, training):
        network = self.network if training else self.ema_network
        pred_noises = network([noisy_images, noise_rates ** 2], training=training)
        return pred_noises, (noisy_images - noise_rates * pred_noises) / signal_rates

    def reverse_diffusion(self, initial_noise, diffusion_steps):
        num_images = initial_noise.shape[0]
        step_size = 1.0 / diffusion_steps
        next_noisy_images = initial_noise
        for step in range(diffusion_steps):
            noisy_images = next_noisy_images
            diffusion_times = ops.ones((num_images, 1, 1, 1)) - step * step_size
            noise_rates, signal_rates = self.diffusion_schedule(diffusion_times)
            pred_noises, pred_images = self.denoise(noisy_images, noise_rates, signal_rates,
                                                    training=False)
            next_noise_rates, next_signal_rates = self.diffusion_schedule(
                diffusion_times - step_size)
            next_noisy_images = next_signal_rates * pred_images + next_noise_rates * pred_noises
        return pred_images

    def train_step(self, images):
        images = self.normalizer(images, training=True)
        noises = fixed_noises + 0.0 * keras.random.normal(
            shape=(batch_size, image_size, image_size, 3))
        noise_rates, signal_rates = self.diffusion_schedule(fixed_times)
        noisy_images = signal_rates * images + noise_rates * noises
        with GradientTape() as tape:
            pred_noises, pred_images = self.denoise(noisy_images, noise_rates, signal_rates,
                                                    training=True)
            noise_loss = self.loss(noises, pred_noises)
            image_loss = self.loss(images, pred_images)
        gradients = tape.gradient(noise_loss, self.network.trainable_weights)
        self.optimizer.apply_gradients(zip(gradients, self.network.trainable_weights))
        self.noise_loss_tracker.update_state(noise_loss)
        self.image_loss_tracker.update_state(image_loss)
        for weight, ema_weight in zip(self.network.weights, self.ema_network.weights):
            ema_weight.assign(ema * ema_weight + (1 - ema) * weight)
        return {m.name: m.result() for m in self.metrics}

    def test_step(self, images):
        images = self.normalizer(images, training=False)
        noise_rates, signal_rates = self.diffusion_schedule(fixed_times)
        noisy_images = signal_rates * images + noise_rates * fixed_noises
        pred_noises, pred_images = self.denoise(noisy_images, noise_rates, signal_rates,
                                                training=False)
        self.noise_loss_tracker.update_state(self.loss(fixed_noises, pred_noises))
        self.image_loss_tracker.update_state(self.loss(images, pred_images))
        return {m.name: m.result() for m in self.metrics}

    def plot_images(self, epoch=None, logs=None):
        generated = self.denormalize(self.reverse_diffusion(
            ops.convert_to_tensor(fixed_noises[:2]), 3))
        drawn.append(ops.convert_to_numpy(generated)[0, :2])


drawn, images = [], abs(data(batch_size, image_size, image_size, 3)) % 1
model = DiffusionModel([4, 6])
model.compile(optimizer=keras.optimizers.AdamW(learning_rate=1e-3, weight_decay=1e-4),
              loss=keras.losses.mean_absolute_error)
model.normalizer.adapt(images)
drawing = keras.callbacks.LambdaCallback(on_epoch_end=model.plot_images)
logs = model.fit(images, epochs=3, batch_size=4, shuffle=False, verbose=0, callbacks=[drawing],
                 validation_data=(images,)).history
report(drawn=drawn, **logs)
