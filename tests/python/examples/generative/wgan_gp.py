"""A gradient penalty, the gradient of a gradient, in a step of one's own. Noise and the place
between images are constants here."""

from harness import GradientTape, data, keras, report, start

layers, ops = keras.layers, keras.ops
discriminator = start(keras.Sequential([
    keras.Input(shape=(8, 8, 1)), layers.Conv2D(4, 3, strides=2, padding="same"),
    layers.LeakyReLU(0.2), layers.Flatten(), layers.Dense(1)]))
generator = start(keras.Sequential([
    keras.Input(shape=(6,)), layers.Dense(4 * 4 * 4, use_bias=False), layers.Reshape((4, 4, 4)),
    layers.UpSampling2D((2, 2)), layers.Conv2D(1, 3, padding="same", activation="tanh")]))
noise = data(4, 6)


class WGAN(keras.Model):
    def __init__(self, discriminator, generator, gp_weight=10.0):
        super().__init__()
        self.discriminator, self.generator = discriminator, generator
        self.gp_weight = gp_weight

    def compile(self, d_optimizer, g_optimizer, d_loss_fn, g_loss_fn):
        super().compile()
        self.d_optimizer, self.g_optimizer = d_optimizer, g_optimizer
        self.d_loss_fn, self.g_loss_fn = d_loss_fn, g_loss_fn

    def gradient_penalty(self, real_images, fake_images):
        interpolated = real_images + 0.3 * (fake_images - real_images)
        with GradientTape() as gp_tape:
            gp_tape.watch(interpolated)
            pred = self.discriminator(interpolated, training=True)
        grads = gp_tape.gradient(pred, [interpolated])[0]
        norm = ops.sqrt(ops.sum(ops.square(grads), axis=[1, 2, 3]))
        return ops.mean((norm - 1.0) ** 2)

    def train_step(self, real_images):
        if isinstance(real_images, tuple):
            real_images = real_images[0]
        for _ in range(2):
            with GradientTape() as tape:
                fake_images = self.generator(noise, training=True)
                fake_logits = self.discriminator(fake_images, training=True)
                real_logits = self.discriminator(real_images, training=True)
                d_cost = self.d_loss_fn(real_img=real_logits, fake_img=fake_logits)
                gp = self.gradient_penalty(real_images, fake_images)
                d_loss = d_cost + gp * self.gp_weight
            d_gradient = tape.gradient(d_loss, self.discriminator.trainable_variables)
            self.d_optimizer.apply_gradients(
                zip(d_gradient, self.discriminator.trainable_variables))
        with GradientTape() as tape:
            logits = self.discriminator(self.generator(noise, training=True), training=True)
            g_loss = self.g_loss_fn(logits)
        gen_gradient = tape.gradient(g_loss, self.generator.trainable_variables)
        self.g_optimizer.apply_gradients(zip(gen_gradient, self.generator.trainable_variables))
        return {"d_loss": d_loss, "g_loss": g_loss}


wgan = WGAN(discriminator, generator)
wgan.compile(d_optimizer=keras.optimizers.Adam(0.0002, beta_1=0.5, beta_2=0.9),
             g_optimizer=keras.optimizers.Adam(0.0002, beta_1=0.5, beta_2=0.9),
             g_loss_fn=lambda fake_img: -ops.mean(fake_img),
             d_loss_fn=lambda real_img, fake_img: ops.mean(fake_img) - ops.mean(real_img))
report(**wgan.fit(data(4, 8, 8, 1), batch_size=4, epochs=3, shuffle=False, verbose=0).history)
