"""A model of an encoder and a decoder with a training step of its own. The sample is the mean here,
so that both sides compute the same."""

from harness import GradientTape, data, keras, report, start

layers, ops = keras.layers, keras.ops


class Sampling(layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.seed_generator = keras.random.SeedGenerator(1337)

    def call(self, inputs):
        z_mean, z_log_var = inputs
        batch, dim = ops.shape(z_mean)[0], ops.shape(z_mean)[1]
        epsilon = keras.random.normal(shape=(batch, dim), seed=self.seed_generator)
        return z_mean + 0.0 * ops.exp(0.5 * z_log_var) * epsilon


encoder_inputs = keras.Input(shape=(12, 12, 1))
x = layers.Conv2D(8, 3, activation="relu", strides=2, padding="same")(encoder_inputs)
x = layers.Dense(8, activation="relu")(layers.Flatten()(x))
z_mean, z_log_var = layers.Dense(2, name="z_mean")(x), layers.Dense(2, name="z_log_var")(x)
encoder = keras.Model(encoder_inputs, [z_mean, z_log_var, Sampling()([z_mean, z_log_var])])
latent_inputs = keras.Input(shape=(2,))
x = layers.Reshape((6, 6, 8))(layers.Dense(6 * 6 * 8, activation="relu")(latent_inputs))
x = layers.Conv2DTranspose(1, 3, activation="sigmoid", strides=2, padding="same")(x)
decoder = keras.Model(latent_inputs, x)


class VAE(keras.Model):
    def __init__(self, encoder, decoder, **kwargs):
        super().__init__(**kwargs)
        self.encoder, self.decoder = encoder, decoder
        self.total_loss_tracker = keras.metrics.Mean(name="total_loss")
        self.kl_loss_tracker = keras.metrics.Mean(name="kl_loss")

    @property
    def metrics(self):
        return [self.total_loss_tracker, self.kl_loss_tracker]

    def train_step(self, data):
        with GradientTape() as tape:
            z_mean, z_log_var, z = self.encoder(data)
            reconstruction = self.decoder(z)
            reconstruction_loss = ops.mean(ops.sum(keras.losses.binary_crossentropy(
                data, reconstruction), axis=(1, 2)))
            kl_loss = -0.5 * (1 + z_log_var - ops.square(z_mean) - ops.exp(z_log_var))
            kl_loss = ops.mean(ops.sum(kl_loss, axis=1))
            total_loss = reconstruction_loss + kl_loss
        grads = tape.gradient(total_loss, self.trainable_weights)
        self.optimizer.apply_gradients(zip(grads, self.trainable_weights))
        self.total_loss_tracker.update_state(total_loss)
        self.kl_loss_tracker.update_state(kl_loss)
        return {"loss": self.total_loss_tracker.result(),
                "kl_loss": self.kl_loss_tracker.result()}


start(encoder), start(decoder)
vae = VAE(encoder, decoder)
vae.compile(optimizer=keras.optimizers.Adam())
report(**vae.fit(abs(data(8, 12, 12, 1)) % 1, epochs=3, batch_size=8, shuffle=False,
                 verbose=0).history)
