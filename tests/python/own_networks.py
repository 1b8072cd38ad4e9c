"""Networks as users of Keras write them, with layers, losses and steps of their own, for Keras and
for Cornu alike. Each function gets the package, GradientTape and the factor of all noise (0: none),
and returns a Network. tests/golden/make_own.py keeps what Keras makes of them."""

import numpy as np

from own_programs import numbers


class Network:
    """A program: its models, whose weights are set; train(steps), which returns numbers; and the
    model that predicts, its data, and the classes that a file of it names."""

    def __init__(self, models, train, predictor, x, classes=()):
        self.models, self.train = models, train
        self.predictor, self.x, self.classes = predictor, x, classes


def _fit(model, x, y, batch_size, **given):
    """Steps by fit, of which an epoch has one for each batch."""
    def train(epochs):
        history = model.fit(x, y, epochs=epochs, batch_size=batch_size, shuffle=False, verbose=0,
                            **given).history
        return [[float(history[name][i]) for name in sorted(history)] for i in range(epochs)]
    return train


def _images(count, size, seed):
    return np.random.default_rng(seed).uniform(0, 1, (count, size, size, 1)).astype("float32")


# ---- Variational autoencoders ----

def _sampling(keras, noise):
    layers, ops = keras.layers, keras.ops

    class Sampling(layers.Layer):
        """Draws a code from the normal distribution of an image."""

        def __init__(self, noise=1.0, **kwargs):
            super().__init__(**kwargs)
            self.noise = noise
            self.seed_generator = keras.random.SeedGenerator(1337)

        def call(self, inputs):
            z_mean, z_log_var = inputs
            batch, dim = ops.shape(z_mean)[0], ops.shape(z_mean)[1]
            epsilon = keras.random.normal(shape=(batch, dim), seed=self.seed_generator)
            return z_mean + self.noise * ops.exp(0.5 * z_log_var) * epsilon

        def get_config(self):
            return {**super().get_config(), "noise": self.noise}

    return Sampling


def vae(keras, tape, noise=1.0):
    """An encoder and a decoder, trained by a train_step with a tape."""
    layers, ops = keras.layers, keras.ops
    Sampling = _sampling(keras, noise)

    image = keras.Input((8, 8, 1))
    x = layers.Conv2D(4, 3, activation="relu", strides=2, padding="same")(image)
    x = layers.Dense(8, activation="relu")(layers.Flatten()(x))
    z_mean, z_log_var = layers.Dense(2, name="z_mean")(x), layers.Dense(2, name="z_log_var")(x)
    encoder = keras.Model(image, [z_mean, z_log_var, Sampling(noise)([z_mean, z_log_var])])
    code = keras.Input((2,))
    x = layers.Reshape((4, 4, 2))(layers.Dense(32, activation="relu")(code))
    x = layers.Conv2DTranspose(4, 3, activation="relu", strides=2, padding="same")(x)
    decoder = keras.Model(code, layers.Conv2DTranspose(1, 3, activation="sigmoid",
                                                       padding="same")(x))

    class VAE(keras.Model):
        def __init__(self, encoder, decoder, **kwargs):
            super().__init__(**kwargs)
            self.encoder = encoder
            self.decoder = decoder
            self.total_loss_tracker = keras.metrics.Mean(name="loss")
            self.reconstruction_loss_tracker = keras.metrics.Mean(name="reconstruction_loss")
            self.kl_loss_tracker = keras.metrics.Mean(name="kl_loss")

        @property
        def metrics(self):
            return [self.total_loss_tracker, self.reconstruction_loss_tracker,
                    self.kl_loss_tracker]

        def train_step(self, data):
            with tape() as t:
                z_mean, z_log_var, z = self.encoder(data)
                reconstruction = self.decoder(z)
                reconstruction_loss = ops.mean(ops.sum(
                    keras.losses.binary_crossentropy(data, reconstruction), axis=(1, 2)))
                kl_loss = -0.5 * (1 + z_log_var - ops.square(z_mean) - ops.exp(z_log_var))
                kl_loss = ops.mean(ops.sum(kl_loss, axis=1))
                total_loss = reconstruction_loss + kl_loss
            grads = t.gradient(total_loss, self.trainable_weights)
            self.optimizer.apply_gradients(zip(grads, self.trainable_weights))
            self.total_loss_tracker.update_state(total_loss)
            self.reconstruction_loss_tracker.update_state(reconstruction_loss)
            self.kl_loss_tracker.update_state(kl_loss)
            return {"loss": self.total_loss_tracker.result(),
                    "reconstruction_loss": self.reconstruction_loss_tracker.result(),
                    "kl_loss": self.kl_loss_tracker.result()}

    model = VAE(encoder, decoder)
    model.compile(optimizer=keras.optimizers.Adam(0.01))
    images = _images(16, 8, 30)
    return Network([encoder, decoder], _fit(model, images, None, 16), encoder, images, (Sampling,))


def vae_of_layers(keras, tape, noise=1.0):
    """The same idea as one subclass whose call adds the divergence to the loss."""
    layers, ops = keras.layers, keras.ops
    Sampling = _sampling(keras, noise)

    class Encoder(layers.Layer):
        def __init__(self, latent_dim=2, width=8, **kwargs):
            super().__init__(**kwargs)
            self.dense_proj = layers.Dense(width, activation="relu")
            self.dense_mean = layers.Dense(latent_dim)
            self.dense_log_var = layers.Dense(latent_dim)
            self.sampling = Sampling(noise)

        def call(self, inputs):
            x = self.dense_proj(inputs)
            z_mean = self.dense_mean(x)
            z_log_var = self.dense_log_var(x)
            z = self.sampling((z_mean, z_log_var))
            return z_mean, z_log_var, z

    class Decoder(layers.Layer):
        def __init__(self, original_dim, width=8, **kwargs):
            super().__init__(**kwargs)
            self.dense_proj = layers.Dense(width, activation="relu")
            self.dense_output = layers.Dense(original_dim, activation="sigmoid")

        def call(self, inputs):
            return self.dense_output(self.dense_proj(inputs))

    class AutoEncoder(keras.Model):
        def __init__(self, original_dim, **kwargs):
            super().__init__(**kwargs)
            self.original_dim = original_dim
            self.encoder = Encoder()
            self.decoder = Decoder(original_dim)

        def call(self, inputs):
            z_mean, z_log_var, z = self.encoder(inputs)
            reconstructed = self.decoder(z)
            kl_loss = -0.5 * ops.mean(z_log_var - ops.square(z_mean) - ops.exp(z_log_var) + 1)
            self.add_loss(kl_loss)
            return reconstructed

    model, x = AutoEncoder(12), np.abs(numbers((12, 12), 31))
    model(x[:1])
    model.compile(keras.optimizers.Adam(0.01), loss=keras.losses.MeanSquaredError())
    return Network([model], _fit(model, x, x, 4), model, x, (Sampling, Encoder, Decoder,
                                                            AutoEncoder))


# ---- A generative adversarial network ----

def gan(keras, tape, noise=1.0):
    layers, ops = keras.layers, keras.ops
    latent_dim = 4
    discriminator = keras.Sequential([
        keras.Input((8, 8, 1)),
        layers.Conv2D(4, 3, strides=2, padding="same"), layers.LeakyReLU(negative_slope=0.2),
        layers.Conv2D(6, 3, strides=2, padding="same"), layers.LeakyReLU(negative_slope=0.2),
        layers.GlobalMaxPooling2D(), layers.Dense(1)], name="discriminator")
    generator = keras.Sequential([
        keras.Input((latent_dim,)),
        layers.Dense(4 * 4 * 3), layers.LeakyReLU(negative_slope=0.2), layers.Reshape((4, 4, 3)),
        layers.Conv2DTranspose(4, 4, strides=2, padding="same"),
        layers.LeakyReLU(negative_slope=0.2),
        layers.Conv2D(1, 3, padding="same", activation="sigmoid")], name="generator")
    fixed = numbers((8, latent_dim), 40, 1.0)

    class GAN(keras.Model):
        def __init__(self, discriminator, generator, latent_dim):
            super().__init__()
            self.discriminator = discriminator
            self.generator = generator
            self.latent_dim = latent_dim
            self.seed_generator = keras.random.SeedGenerator(1337)

        def compile(self, d_optimizer, g_optimizer, loss_fn):
            super().compile()
            self.d_optimizer = d_optimizer
            self.g_optimizer = g_optimizer
            self.loss_fn = loss_fn
            self.d_loss_metric = keras.metrics.Mean(name="d_loss")
            self.g_loss_metric = keras.metrics.Mean(name="g_loss")

        @property
        def metrics(self):
            return [self.d_loss_metric, self.g_loss_metric]

        def draw(self, batch_size):
            drawn = keras.random.normal((batch_size, self.latent_dim), seed=self.seed_generator)
            return noise * drawn + (1 - noise) * fixed

        def train_step(self, real_images):
            batch_size = ops.shape(real_images)[0]
            generated_images = self.generator(self.draw(batch_size))
            combined_images = ops.concatenate([generated_images, real_images], axis=0)
            labels = ops.concatenate([ops.ones((batch_size, 1)), ops.zeros((batch_size, 1))],
                                     axis=0)
            labels += noise * 0.05 * keras.random.uniform(ops.shape(labels),
                                                          seed=self.seed_generator)
            with tape() as t:
                predictions = self.discriminator(combined_images)
                d_loss = self.loss_fn(labels, predictions)
            grads = t.gradient(d_loss, self.discriminator.trainable_weights)
            self.d_optimizer.apply_gradients(zip(grads, self.discriminator.trainable_weights))

            latent = self.draw(batch_size)
            misleading_labels = ops.zeros((batch_size, 1))
            with tape() as t:
                predictions = self.discriminator(self.generator(latent))
                g_loss = self.loss_fn(misleading_labels, predictions)
            grads = t.gradient(g_loss, self.generator.trainable_weights)
            self.g_optimizer.apply_gradients(zip(grads, self.generator.trainable_weights))

            self.d_loss_metric.update_state(d_loss)
            self.g_loss_metric.update_state(g_loss)
            return {"d_loss": self.d_loss_metric.result(), "g_loss": self.g_loss_metric.result()}

    model = GAN(discriminator, generator, latent_dim)
    model.compile(d_optimizer=keras.optimizers.Adam(learning_rate=0.003),
                  g_optimizer=keras.optimizers.Adam(learning_rate=0.002),
                  loss_fn=keras.losses.BinaryCrossentropy(from_logits=True))
    return Network([discriminator, generator], _fit(model, _images(8, 8, 41), None, 8), generator,
                   fixed)


# ---- A siamese network ----

def siamese(keras, tape, noise=1.0):
    layers, ops = keras.layers, keras.ops

    class Distance(layers.Layer):
        def call(self, x, y):
            squared = ops.sum(ops.square(x - y), axis=1, keepdims=True)
            return ops.sqrt(ops.maximum(squared, keras.config.epsilon()))

    def contrastive(margin=1.0):
        def contrastive_loss(y_true, y_pred):
            square_pred = ops.square(y_pred)
            margin_square = ops.square(ops.maximum(margin - y_pred, 0))
            return ops.mean((1 - y_true) * square_pred + y_true * margin_square)
        return contrastive_loss

    given = keras.Input((8, 8, 1))
    x = layers.BatchNormalization()(given)
    x = layers.Conv2D(4, (3, 3), activation="tanh")(x)
    x = layers.AveragePooling2D(pool_size=(2, 2))(x)
    x = layers.BatchNormalization()(layers.Flatten()(x))
    embedding = keras.Model(given, layers.Dense(5, activation="tanh")(x))
    left, right = keras.Input((8, 8, 1)), keras.Input((8, 8, 1))
    merged = Distance()(embedding(left), embedding(right))
    model = keras.Model(inputs=[left, right],
                        outputs=layers.Dense(1, activation="sigmoid")(
                            layers.BatchNormalization()(merged)))
    model.compile(loss=contrastive(margin=1.0), optimizer=keras.optimizers.RMSprop(0.002),
                  metrics=["accuracy"])
    pairs = [_images(12, 8, 50), _images(12, 8, 51)]
    labels = (np.arange(12) % 2).astype("float32")
    return Network([model], _fit(model, pairs, labels, 6), model, pairs, (Distance,))


# ---- Text classification by a transformer ----

def transformer(keras, tape, noise=1.0):
    layers, ops = keras.layers, keras.ops

    class TransformerBlock(layers.Layer):
        def __init__(self, embed_dim, num_heads, ff_dim, rate=0.1, **kwargs):
            super().__init__(**kwargs)
            self.att = layers.MultiHeadAttention(num_heads=num_heads, key_dim=embed_dim)
            self.ffn = keras.Sequential([layers.Dense(ff_dim, activation="relu"),
                                         layers.Dense(embed_dim)])
            self.layernorm1 = layers.LayerNormalization(epsilon=1e-6)
            self.layernorm2 = layers.LayerNormalization(epsilon=1e-6)
            self.dropout1 = layers.Dropout(rate)
            self.dropout2 = layers.Dropout(rate)

        def call(self, inputs, training=False):
            attn_output = self.att(inputs, inputs)
            attn_output = self.dropout1(attn_output, training=training)
            out1 = self.layernorm1(inputs + attn_output)
            ffn_output = self.dropout2(self.ffn(out1), training=training)
            return self.layernorm2(out1 + ffn_output)

    class TokenAndPositionEmbedding(layers.Layer):
        def __init__(self, maxlen, vocab_size, embed_dim, **kwargs):
            super().__init__(**kwargs)
            self.token_emb = layers.Embedding(input_dim=vocab_size, output_dim=embed_dim)
            self.pos_emb = layers.Embedding(input_dim=maxlen, output_dim=embed_dim)

        def call(self, x):
            maxlen = ops.shape(x)[-1]
            positions = ops.arange(start=0, stop=maxlen, step=1)
            return self.token_emb(x) + self.pos_emb(positions)

    inputs = keras.Input(shape=(10,))
    x = TokenAndPositionEmbedding(10, 30, 8)(inputs)
    x = TransformerBlock(8, 2, 12, rate=0.1 * noise)(x)
    x = layers.GlobalAveragePooling1D()(x)
    x = layers.Dense(6, activation="relu")(layers.Dropout(0.1 * noise)(x))
    model = keras.Model(inputs, layers.Dense(2, activation="softmax")(x))
    model.compile(optimizer=keras.optimizers.Adam(0.003), loss="sparse_categorical_crossentropy",
                  metrics=["accuracy"])
    words = np.random.default_rng(60).integers(0, 30, (12, 10))
    return Network([model], _fit(model, words, np.arange(12) % 2, 4), model, words,
                   (TransformerBlock, TokenAndPositionEmbedding))


# ---- Grad-CAM ----

def grad_cam(keras, tape, noise=1.0):
    """Where a classifier looks: gradients by the output of its last convolution."""
    layers, ops = keras.layers, keras.ops

    class Squeeze(layers.Layer):
        """Channels by their means (a squeeze-and-excitation block)."""

        def build(self, input_shape):
            self.gate = layers.Dense(input_shape[-1], activation="sigmoid")

        def call(self, x):
            return x * self.gate(ops.mean(x, axis=(1, 2), keepdims=True))

    image = keras.Input((8, 8, 1))
    x = layers.Conv2D(4, 3, activation="relu", name="first")(image)
    x = layers.Conv2D(5, 3, activation="relu", name="last_conv")(Squeeze()(x))
    x = layers.Dense(3, name="predictions")(layers.GlobalAveragePooling2D()(x))
    model = keras.Model(image, x)
    model.compile(keras.optimizers.SGD(0.1),
                  keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    images = _images(6, 8, 70)

    def heatmap(img_array, last_conv_layer_name, pred_index=None):
        grad_model = keras.Model(model.inputs, [model.get_layer(last_conv_layer_name).output,
                                                model.output])
        with tape() as t:
            last_conv_layer_output, preds = grad_model(img_array)
            if pred_index is None:
                pred_index = int(np.argmax(preds[0]))
            class_channel = preds[:, pred_index]
        grads = t.gradient(class_channel, last_conv_layer_output)
        pooled_grads = ops.mean(grads, axis=(0, 1, 2))
        last_conv_layer_output = last_conv_layer_output[0]
        made = last_conv_layer_output @ pooled_grads[..., np.newaxis]
        made = ops.squeeze(made)
        made = ops.maximum(made, 0) / ops.max(ops.abs(made))
        return ops.convert_to_numpy(made)

    fit = _fit(model, images, np.arange(6) % 3, 6)

    def train(steps):
        return fit(steps) + heatmap(images[:1], "last_conv").tolist() + \
            heatmap(images[1:2], "last_conv", 2).tolist()
    return Network([model], train, model, images, (Squeeze,))


# ---- A recurrent cell ----

def cells(keras, tape, noise=1.0):
    """A cell with two states and a mask, both directions."""
    layers, ops = keras.layers, keras.ops

    class PeepholeCell(layers.Layer):
        def __init__(self, units, **kwargs):
            super().__init__(**kwargs)
            self.units = units
            self.state_size = [units, units]
            self.output_size = units

        def build(self, input_shape):
            self.kernel = self.add_weight(shape=(input_shape[-1], 3 * self.units), name="kernel",
                                          initializer="glorot_uniform")
            self.recurrent = self.add_weight(shape=(self.units, 3 * self.units), name="recurrent",
                                             initializer="orthogonal")
            self.peep = self.add_weight(shape=(self.units,), name="peep", initializer="ones")
            self.built = True

        def call(self, inputs, states):
            h, c = states
            z = ops.matmul(inputs, self.kernel) + ops.matmul(h, self.recurrent)
            f, i, o = ops.split(z, 3, axis=-1)
            f = ops.sigmoid(f + self.peep * c)
            c = f * c + (1.0 - f) * ops.tanh(i)
            h = ops.sigmoid(o) * ops.tanh(c)
            return h, [h, c]

        def get_config(self):
            return {**super().get_config(), "units": self.units}

    inputs = keras.Input((6, 3))
    x = layers.Masking()(inputs)
    x = layers.RNN(PeepholeCell(4), return_sequences=True)(x)
    x = layers.RNN(PeepholeCell(3), go_backwards=True)(x)
    model = keras.Model(inputs, layers.Dense(1)(x))
    model.compile(keras.optimizers.SGD(0.2, momentum=0.9), "mse")
    x = numbers((8, 6, 3), 80, 1.0)
    x[2:4, 4:] = 0
    return Network([model], _fit(model, x, numbers((8, 1), 81), 4), model, x, (PeepholeCell,))


# ---- Actor and critic ----

class Walk:
    """An environment: stand near the middle of a line; the state is the place and the speed."""

    def reset(self, seed):
        self.place = 0.3 if seed % 2 else -0.3
        self.speed = 0.0
        return np.array([self.place, self.speed])

    def step(self, action):
        self.speed = 0.8 * self.speed + (0.1 if action == 1 else -0.1)
        self.place += self.speed
        return (np.array([self.place, self.speed]), 1.0 - abs(self.place),
                bool(abs(self.place) > 1.0))


def actor_critic(keras, tape, noise=1.0):
    layers, ops = keras.layers, keras.ops
    gamma, num_actions, max_steps = 0.99, 2, 10
    eps = np.finfo(np.float32).eps.item()

    class Scaled(layers.Layer):
        def build(self, input_shape):
            self.scale = self.add_weight(shape=(input_shape[-1],), initializer="ones",
                                         name="scale")

        def call(self, x):
            return ops.tanh(x * self.scale)

    inputs = layers.Input(shape=(2,))
    common = layers.Dense(8, activation="relu")(Scaled()(inputs))
    action = layers.Dense(num_actions, activation="softmax")(common)
    model = keras.Model(inputs=inputs, outputs=[action, layers.Dense(1)(common)])
    optimizer, huber_loss = keras.optimizers.Adam(learning_rate=0.01), keras.losses.Huber()
    env, generator = Walk(), np.random.RandomState(90)

    def episode(number):
        action_probs_history, critic_value_history, rewards_history = [], [], []
        state = env.reset(number)
        with tape() as t:
            for _ in range(max_steps):
                state = ops.convert_to_tensor(state, dtype="float32")
                state = ops.expand_dims(state, 0)
                action_probs, critic_value = model(state)
                critic_value_history.append(critic_value[0, 0])
                action = generator.choice(num_actions, p=_normal(np.squeeze(action_probs)))
                action_probs_history.append(ops.log(action_probs[0, action]))
                state, reward, done = env.step(action)
                rewards_history.append(reward)
                if done:
                    break
            returns, discounted_sum = [], 0
            for r in rewards_history[::-1]:
                discounted_sum = r + gamma * discounted_sum
                returns.insert(0, discounted_sum)
            returns = np.array(returns)
            returns = (returns - np.mean(returns)) / (np.std(returns) + eps)
            actor_losses, critic_losses = [], []
            for log_prob, value, ret in zip(action_probs_history, critic_value_history,
                                            returns.tolist()):
                diff = ret - value
                actor_losses.append(-log_prob * diff)
                critic_losses.append(huber_loss(ops.expand_dims(value, 0),
                                                ops.expand_dims(ret, 0)))
            loss_value = sum(actor_losses) + sum(critic_losses)
        grads = t.gradient(loss_value, model.trainable_variables)
        optimizer.apply_gradients(zip(grads, model.trainable_variables))
        return [float(loss_value), float(np.sum(rewards_history))]

    return Network([model], lambda steps: [episode(i) for i in range(steps)], model,
                   numbers((4, 2), 91), (Scaled,))


def _normal(p):
    p = np.asarray(p, np.float64)
    return p / p.sum()


# ---- Connectionist temporal classification ----

def ctc(keras, tape, noise=1.0):
    layers, ops = keras.layers, keras.ops

    class CTCLayer(layers.Layer):
        def call(self, y_true, y_pred):
            batch_len = ops.shape(y_true)[0]
            input_length = ops.shape(y_pred)[1] * ops.ones((batch_len,), dtype="int32")
            label_length = ops.shape(y_true)[1] * ops.ones((batch_len,), dtype="int32")
            loss = ops.ctc_loss(y_true, y_pred, label_length, input_length, mask_index=0)
            self.add_loss(ops.mean(loss))
            return y_pred

    input_img = layers.Input(shape=(12, 6, 1), name="image")
    labels = layers.Input(name="label", shape=(4,), dtype="int32")
    x = layers.Conv2D(4, (3, 3), activation="relu", padding="same", name="Conv1")(input_img)
    x = layers.MaxPooling2D((1, 2), name="pool1")(x)
    x = layers.Reshape(target_shape=(12, 12), name="reshape")(x)
    x = layers.Dense(8, activation="relu", name="dense1")(x)
    x = layers.Bidirectional(layers.LSTM(4, return_sequences=True))(x)
    x = layers.Dense(6, name="dense2")(x)
    output = CTCLayer(name="ctc_loss")(labels, x)
    model = keras.Model(inputs=[input_img, labels], outputs=output, name="ocr_model_v1")
    model.compile(optimizer=keras.optimizers.Adam(0.01))
    images = np.random.default_rng(92).uniform(0, 1, (6, 12, 6, 1)).astype("float32")
    texts = np.random.default_rng(93).integers(1, 6, (6, 4)).astype("int32")
    predictor = keras.Model(model.input[0], model.get_layer(name="dense2").output)
    return Network([model], _fit(model, {"image": images, "label": texts}, None, 3), predictor,
                   images, (CTCLayer,))


NETWORKS = {each.__name__: each for each in (vae, vae_of_layers, gan, siamese, transformer, grad_cam,
                                             cells, actor_critic, ctc)}
TAPES = ("vae", "gan", "grad_cam", "actor_critic")      # which need TensorFlow's GradientTape


def set_weights(models):
    for m, model in enumerate(models):
        model.set_weights([abs(numbers(w.shape, 200 + 50 * m + i)) + 0.5 if "variance" in w.path
                           else numbers(w.shape, 200 + 50 * m + i)
                           for i, w in enumerate(model.weights)])


def run(keras, name, tape, steps=3):
    """What a network computes without noise: predictions, the numbers of three steps, and
    predictions after them."""
    network = NETWORKS[name](keras, tape, 0.0)
    set_weights(network.models)
    before = predict(network.predictor, network.x)
    numbers_of = network.train(steps)
    return network, {"before": before, "steps": numbers_of,
                     "after": predict(network.predictor, network.x)}


def predict(model, x):
    made = model.predict(x, verbose=0)
    return [np.asarray(v, "float32").tolist() for v in
            (made if isinstance(made, list) else [made])]
