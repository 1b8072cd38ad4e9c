"""A layer that quantizes, with gradients that pass it by and losses that it adds, within a model
with a step of its own; and its codes."""

import numpy as np
from harness import GradientTape, data, keras, report, start

layers, ops = keras.layers, keras.ops


class VectorQuantizer(layers.Layer):
    def __init__(self, num_embeddings, embedding_dim, beta=0.25, **kwargs):
        super().__init__(**kwargs)
        self.embedding_dim, self.num_embeddings, self.beta = embedding_dim, num_embeddings, beta
        self.embeddings = self.add_weight(shape=(embedding_dim, num_embeddings), trainable=True,
                                          initializer="random_uniform", name="embeddings_vqvae")

    def call(self, x):
        input_shape = ops.shape(x)
        flattened = ops.reshape(x, [-1, self.embedding_dim])
        encodings = ops.one_hot(self.get_code_indices(flattened), self.num_embeddings)
        quantized = ops.matmul(encodings, ops.transpose(self.embeddings))
        quantized = ops.reshape(quantized, input_shape)
        commitment_loss = ops.mean((ops.stop_gradient(quantized) - x) ** 2)
        codebook_loss = ops.mean((quantized - ops.stop_gradient(x)) ** 2)
        self.add_loss(self.beta * commitment_loss + codebook_loss)
        return x + ops.stop_gradient(quantized - x)

    def get_code_indices(self, flattened_inputs):
        similarity = ops.matmul(flattened_inputs, self.embeddings)
        distances = (ops.sum(flattened_inputs ** 2, axis=1, keepdims=True)
                     + ops.sum(self.embeddings ** 2, axis=0) - 2 * similarity)
        return ops.argmin(distances, axis=1)


def get_encoder(latent_dim):
    encoder_inputs = keras.Input(shape=(12, 12, 1))
    x = layers.Conv2D(4, 3, activation="relu", strides=2, padding="same")(encoder_inputs)
    return keras.Model(encoder_inputs, layers.Conv2D(latent_dim, 1, padding="same")(x),
                       name="encoder")


def get_decoder(latent_dim):
    latent_inputs = keras.Input(shape=get_encoder(latent_dim).output.shape[1:])
    x = layers.Conv2DTranspose(4, 3, activation="relu", strides=2, padding="same")(latent_inputs)
    return keras.Model(latent_inputs, layers.Conv2DTranspose(1, 3, padding="same")(x),
                       name="decoder")


def get_vqvae(latent_dim, num_embeddings):
    vq_layer = VectorQuantizer(num_embeddings, latent_dim, name="vector_quantizer")
    encoder, decoder = get_encoder(latent_dim), get_decoder(latent_dim)
    inputs = keras.Input(shape=(12, 12, 1))
    return keras.Model(inputs, decoder(vq_layer(encoder(inputs))), name="vq_vae")


class VQVAETrainer(keras.models.Model):
    def __init__(self, train_variance, latent_dim, num_embeddings, **kwargs):
        super().__init__(**kwargs)
        self.train_variance = train_variance
        self.vqvae = start(get_vqvae(latent_dim, num_embeddings))
        self.total_loss_tracker = keras.metrics.Mean(name="total_loss")
        self.reconstruction_loss_tracker = keras.metrics.Mean(name="reconstruction_loss")
        self.vq_loss_tracker = keras.metrics.Mean(name="vq_loss")

    @property
    def metrics(self):
        return [self.total_loss_tracker, self.reconstruction_loss_tracker, self.vq_loss_tracker]

    def train_step(self, x):
        with GradientTape() as tape:
            reconstructions = self.vqvae(x)
            reconstruction_loss = ops.mean((x - reconstructions) ** 2) / self.train_variance
            total_loss = reconstruction_loss + sum(self.vqvae.losses)
        grads = tape.gradient(total_loss, self.vqvae.trainable_variables)
        self.optimizer.apply_gradients(zip(grads, self.vqvae.trainable_variables))
        self.total_loss_tracker.update_state(total_loss)
        self.reconstruction_loss_tracker.update_state(reconstruction_loss)
        self.vq_loss_tracker.update_state(sum(self.vqvae.losses))
        return {"loss": self.total_loss_tracker.result(),
                "reconstruction_loss": self.reconstruction_loss_tracker.result(),
                "vqvae_loss": self.vq_loss_tracker.result()}


images = data(6, 12, 12, 1)
trainer = VQVAETrainer(float(np.var(images)), latent_dim=4, num_embeddings=7)
trainer.compile(optimizer=keras.optimizers.Adam())
logs = trainer.fit(images, epochs=3, batch_size=6, shuffle=False, verbose=0).history
encoder, quantizer = (trainer.vqvae.get_layer(n) for n in ("encoder", "vector_quantizer"))
encoded_outputs = encoder.predict(images, verbose=0)
codes = quantizer.get_code_indices(encoded_outputs.reshape(-1, encoded_outputs.shape[-1]))
report(codes=ops.convert_to_numpy(codes), **logs)
