"""Labels beside images and noise. The noise is a constant here, so that both sides compute the
same."""

from harness import GradientTape, data, keras, report, start

layers, ops = keras.layers, keras.ops
batch_size, image_size, num_classes, latent_dim = 4, 8, 3, 5
discriminator = start(keras.Sequential([
    keras.layers.InputLayer((image_size, image_size, 1 + num_classes)),
    layers.Conv2D(4, (3, 3), strides=(2, 2), padding="same"), layers.LeakyReLU(negative_slope=0.2),
    layers.GlobalMaxPooling2D(), layers.Dense(1)], name="discriminator"))
generator = start(keras.Sequential([
    keras.layers.InputLayer((latent_dim + num_classes,)),
    layers.Dense(4 * 4 * (latent_dim + num_classes)), layers.LeakyReLU(negative_slope=0.2),
    layers.Reshape((4, 4, latent_dim + num_classes)),
    layers.Conv2DTranspose(4, (4, 4), strides=(2, 2), padding="same"),
    layers.LeakyReLU(negative_slope=0.2),
    layers.Conv2D(1, (3, 3), padding="same", activation="sigmoid")], name="generator"))
noise = data(batch_size, latent_dim)


class ConditionalGAN(keras.Model):
    def __init__(self, discriminator, generator, latent_dim):
        super().__init__()
        self.discriminator, self.generator, self.latent_dim = discriminator, generator, latent_dim
        self.seed_generator = keras.random.SeedGenerator(1337)
        self.gen_loss_tracker = keras.metrics.Mean(name="generator_loss")
        self.disc_loss_tracker = keras.metrics.Mean(name="discriminator_loss")

    @property
    def metrics(self):
        return [self.gen_loss_tracker, self.disc_loss_tracker]

    def compile(self, d_optimizer, g_optimizer, loss_fn):
        super().compile()
        self.d_optimizer, self.g_optimizer, self.loss_fn = d_optimizer, g_optimizer, loss_fn

    def train_step(self, data):
        real_images, one_hot_labels = data
        image_one_hot_labels = one_hot_labels[:, :, None, None]
        image_one_hot_labels = ops.repeat(image_one_hot_labels,
                                          repeats=[image_size * image_size], axis=2)
        image_one_hot_labels = ops.reshape(
            image_one_hot_labels, (-1, image_size, image_size, num_classes))
        batch_size = ops.shape(real_images)[0]
        random_latent_vectors = noise + 0.0 * keras.random.normal(
            shape=(batch_size, self.latent_dim), seed=self.seed_generator)
        random_vector_labels = ops.concatenate([random_latent_vectors, one_hot_labels], axis=1)
        generated_images = self.generator(random_vector_labels)
        fake_image_and_labels = ops.concatenate([generated_images, image_one_hot_labels], -1)
        real_image_and_labels = ops.concatenate([real_images, image_one_hot_labels], -1)
        combined_images = ops.concatenate([fake_image_and_labels, real_image_and_labels], axis=0)
        labels = ops.concatenate([ops.ones((batch_size, 1)), ops.zeros((batch_size, 1))], axis=0)
        with GradientTape() as tape:
            predictions = self.discriminator(combined_images)
            d_loss = self.loss_fn(labels, predictions)
        grads = tape.gradient(d_loss, self.discriminator.trainable_weights)
        self.d_optimizer.apply_gradients(zip(grads, self.discriminator.trainable_weights))
        misleading_labels = ops.zeros((batch_size, 1))
        with GradientTape() as tape:
            fake_images = self.generator(random_vector_labels)
            fake_image_and_labels = ops.concatenate([fake_images, image_one_hot_labels], -1)
            predictions = self.discriminator(fake_image_and_labels)
            g_loss = self.loss_fn(misleading_labels, predictions)
        grads = tape.gradient(g_loss, self.generator.trainable_weights)
        self.g_optimizer.apply_gradients(zip(grads, self.generator.trainable_weights))
        self.gen_loss_tracker.update_state(g_loss)
        self.disc_loss_tracker.update_state(d_loss)
        return {"g_loss": self.gen_loss_tracker.result(),
                "d_loss": self.disc_loss_tracker.result()}


cond_gan = ConditionalGAN(discriminator, generator, latent_dim)
cond_gan.compile(d_optimizer=keras.optimizers.Adam(learning_rate=0.0003),
                 g_optimizer=keras.optimizers.Adam(learning_rate=0.0003),
                 loss_fn=keras.losses.BinaryCrossentropy(from_logits=True))
labels = keras.utils.to_categorical(data(4, classes=num_classes), num_classes)
report(**cond_gan.fit(abs(data(4, 8, 8, 1)) % 1, labels, batch_size=batch_size, epochs=3,
                      shuffle=False, verbose=0).history)
