"""Two networks with an optimizer each. The noise is a constant here, so that both sides compute the
same."""

from harness import GradientTape, data, keras, report, start

layers, ops = keras.layers, keras.ops
discriminator = start(keras.Sequential([
    keras.Input(shape=(8, 8, 3)), layers.Conv2D(8, kernel_size=4, strides=2, padding="same"),
    layers.LeakyReLU(negative_slope=0.2), layers.Flatten(), layers.Dropout(0.0),
    layers.Dense(1, activation="sigmoid")]))
generator = start(keras.Sequential([
    keras.Input(shape=(6,)), layers.Dense(4 * 4 * 6), layers.Reshape((4, 4, 6)),
    layers.Conv2DTranspose(8, kernel_size=4, strides=2, padding="same"),
    layers.LeakyReLU(negative_slope=0.2),
    layers.Conv2D(3, kernel_size=5, padding="same", activation="sigmoid")]))


class GAN(keras.Model):
    def __init__(self, discriminator, generator, latent_dim):
        super().__init__()
        self.discriminator, self.generator = discriminator, generator
        self.noise = data(4, latent_dim)

    def compile(self, d_optimizer, g_optimizer, loss_fn):
        super().compile()
        self.d_optimizer, self.g_optimizer, self.loss_fn = d_optimizer, g_optimizer, loss_fn
        self.d_loss_metric = keras.metrics.Mean(name="d_loss")
        self.g_loss_metric = keras.metrics.Mean(name="g_loss")

    @property
    def metrics(self):
        return [self.d_loss_metric, self.g_loss_metric]

    def train_step(self, real_images):
        batch_size = ops.shape(real_images)[0]
        combined = ops.concatenate([self.generator(self.noise), real_images], axis=0)
        labels = ops.concatenate([ops.ones((batch_size, 1)), ops.zeros((batch_size, 1))], axis=0)
        with GradientTape() as tape:
            d_loss = self.loss_fn(labels, self.discriminator(combined))
        weights = self.discriminator.trainable_weights
        self.d_optimizer.apply_gradients(zip(tape.gradient(d_loss, weights), weights))
        with GradientTape() as tape:
            predictions = self.discriminator(self.generator(self.noise))
            g_loss = self.loss_fn(ops.zeros((batch_size, 1)), predictions)
        weights = self.generator.trainable_weights
        self.g_optimizer.apply_gradients(zip(tape.gradient(g_loss, weights), weights))
        self.d_loss_metric.update_state(d_loss)
        self.g_loss_metric.update_state(g_loss)
        return {"d_loss": self.d_loss_metric.result(), "g_loss": self.g_loss_metric.result()}


gan = GAN(discriminator, generator, 6)
gan.compile(d_optimizer=keras.optimizers.Adam(learning_rate=0.0001),
            g_optimizer=keras.optimizers.Adam(learning_rate=0.0001),
            loss_fn=keras.losses.BinaryCrossentropy())
report(**gan.fit(abs(data(4, 8, 8, 3)) % 1, epochs=3, batch_size=4, shuffle=False,
                 verbose=0).history)
