"""Times of trainings as Keras' users write them: Cornu, and Keras on JAX and on TensorFlow.

    make bench-keras-programs [ONLY='vae vit'] [SIDES='cornu jax'] PYTHON=...

Each program is one text for all sides, with layers, blocks and steps as in Keras' examples and at
their sizes, on random arrays. The sides take turns (sides.py): each builds its model and trains
the first step, which includes tracing and compiling; then each trains an epoch of STEPS steps,
ROUNDS times. A figure is the median; of a step, that of an epoch divided by its steps.
"""

import os
import sys

import numpy as np

from sides import Side, answer

SIDES = os.environ.get("SIDES", "cornu jax tensorflow").split()
STEPS, ROUNDS = 4, 3
RNG = np.random.default_rng(1)


def floats(*shape):
    return RNG.random(shape, dtype=np.float32)


def integers(below, *shape):
    return RNG.integers(0, below, shape).astype(np.int32)


class Program:
    """A model and its arrays, of STEPS batches."""

    def __init__(self, model, batch, x, y=None):
        self.model, self.batch, self.x, self.y = model, batch, x, y

    def first(self):
        x = ([column[:self.batch] for column in self.x] if isinstance(self.x, list)
             else self.x[:self.batch])
        y = None if self.y is None else self.y[:self.batch]
        self.model.fit(x, y, batch_size=self.batch, verbose=0)

    def epoch(self):
        self.model.fit(self.x, self.y, batch_size=self.batch, verbose=0, shuffle=False)


# ---- Images ----

def mnist_convnet(keras):
    layers = keras.layers
    model = keras.Sequential([
        keras.Input(shape=(28, 28, 1)),
        layers.Conv2D(32, 3, activation="relu"), layers.MaxPooling2D(2),
        layers.Conv2D(64, 3, activation="relu"), layers.MaxPooling2D(2),
        layers.Flatten(), layers.Dropout(0.5), layers.Dense(10, activation="softmax")])
    model.compile(loss="sparse_categorical_crossentropy", optimizer="adam", metrics=["accuracy"])
    return Program(model, 128, floats(128 * STEPS, 28, 28, 1), integers(10, 128 * STEPS))


def xception(keras):
    """Image classification from scratch: separable convolutions with residuals."""
    layers = keras.layers
    inputs = keras.Input(shape=(96, 96, 3))
    x = layers.Rescaling(1.0 / 255)(inputs)
    x = layers.Conv2D(64, 3, strides=2, padding="same")(x)
    x = previous = layers.Activation("relu")(layers.BatchNormalization()(x))
    for size in (128, 256, 512):
        for _ in range(2):
            x = layers.Activation("relu")(x)
            x = layers.SeparableConv2D(size, 3, padding="same")(x)
            x = layers.BatchNormalization()(x)
        x = layers.MaxPooling2D(3, strides=2, padding="same")(x)
        x = previous = layers.add([x, layers.Conv2D(size, 1, strides=2, padding="same")(previous)])
    x = layers.Dropout(0.25)(layers.GlobalAveragePooling2D()(x))
    model = keras.Model(inputs, layers.Dense(1, activation="sigmoid")(x))
    model.compile(optimizer=keras.optimizers.Adam(3e-4), loss="binary_crossentropy")
    return Program(model, 16, 255 * floats(16 * STEPS, 96, 96, 3), integers(2, 16 * STEPS, 1))


def unet(keras):
    """Segmentation: the network of the pets."""
    layers = keras.layers
    inputs = keras.Input(shape=(96, 96, 3))
    x = layers.Conv2D(32, 3, strides=2, padding="same")(inputs)
    x = previous = layers.Activation("relu")(layers.BatchNormalization()(x))
    for filters in (64, 128):
        for _ in range(2):
            x = layers.Activation("relu")(x)
            x = layers.BatchNormalization()(layers.SeparableConv2D(filters, 3, padding="same")(x))
        x = layers.MaxPooling2D(3, strides=2, padding="same")(x)
        previous = layers.Conv2D(filters, 1, strides=2, padding="same")(previous)
        x = previous = layers.add([x, previous])
    for filters in (128, 64, 32):
        for _ in range(2):
            x = layers.Activation("relu")(x)
            x = layers.BatchNormalization()(layers.Conv2DTranspose(filters, 3, padding="same")(x))
        x = layers.UpSampling2D(2)(x)
        previous = layers.Conv2D(filters, 1, padding="same")(layers.UpSampling2D(2)(previous))
        x = previous = layers.add([x, previous])
    model = keras.Model(inputs, layers.Conv2D(3, 3, activation="softmax", padding="same")(x))
    model.compile(optimizer=keras.optimizers.Adam(1e-4), loss="sparse_categorical_crossentropy")
    return Program(model, 8, floats(8 * STEPS, 96, 96, 3), integers(3, 8 * STEPS, 96, 96))


def vit(keras):
    """A vision transformer with layers of its own for patches and their places."""
    layers, ops = keras.layers, keras.ops

    class Patches(layers.Layer):
        def __init__(self, size):
            super().__init__()
            self.size = size

        def call(self, images):
            patches = ops.image.extract_patches(images, size=self.size)
            batch, rows, columns, depth = ops.shape(patches)
            return ops.reshape(patches, (batch, rows * columns, depth))

    class PatchEncoder(layers.Layer):
        def __init__(self, count, units):
            super().__init__()
            self.count = count
            self.projection = layers.Dense(units)
            self.position = layers.Embedding(count, units)

        def call(self, patch):
            positions = ops.expand_dims(ops.arange(0, self.count, 1), 0)
            return self.projection(patch) + self.position(positions)

    inputs = keras.Input(shape=(72, 72, 3))
    x = PatchEncoder(144, 64)(Patches(6)(inputs))
    for _ in range(4):
        y = layers.LayerNormalization(epsilon=1e-6)(x)
        y = layers.MultiHeadAttention(num_heads=4, key_dim=64, dropout=0.1)(y, y)
        x = layers.Add()([y, x])
        y = layers.LayerNormalization(epsilon=1e-6)(x)
        for units in (128, 64):
            y = layers.Dropout(0.1)(layers.Dense(units, activation="gelu")(y))
        x = layers.Add()([y, x])
    x = layers.Dropout(0.5)(layers.Flatten()(layers.LayerNormalization(epsilon=1e-6)(x)))
    for units in (512, 256):
        x = layers.Dropout(0.5)(layers.Dense(units, activation="gelu")(x))
    model = keras.Model(inputs, layers.Dense(100)(x))
    model.compile(optimizer=keras.optimizers.AdamW(1e-3, weight_decay=1e-4),
                  loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return Program(model, 32, floats(32 * STEPS, 72, 72, 3), integers(100, 32 * STEPS))


def conv_lstm(keras):
    layers = keras.layers
    inputs = keras.Input(shape=(10, 32, 32, 1))
    x = inputs
    for size in (5, 3, 1):
        x = layers.ConvLSTM2D(16, size, padding="same", return_sequences=True, activation="relu")(x)
        x = layers.BatchNormalization()(x)
    model = keras.Model(inputs, layers.Conv3D(1, 3, activation="sigmoid", padding="same")(x))
    model.compile(loss="binary_crossentropy", optimizer="adam")
    return Program(model, 5, floats(5 * STEPS, 10, 32, 32, 1), floats(5 * STEPS, 10, 32, 32, 1))


# ---- Models of one's own ----

def dcgan(keras):
    """Two networks and two optimizers in a step of tapes, which Keras on JAX has not."""
    layers, ops = keras.layers, keras.ops
    if keras.__name__ == "cornu":
        Tape = keras.GradientTape
    else:
        from tensorflow import GradientTape as Tape

    def convolutions(widths, layer, **options):
        found = []
        for width in widths:
            found += [layer(width, 4, strides=2, padding="same"), layers.LeakyReLU(**options)]
        return found

    class GAN(keras.Model):
        def __init__(self):
            super().__init__()
            self.discriminator = keras.Sequential(
                [keras.Input((64, 64, 3))] + convolutions((64, 128, 128), layers.Conv2D)
                + [layers.Flatten(), layers.Dropout(0.2), layers.Dense(1, activation="sigmoid")])
            self.generator = keras.Sequential(
                [keras.Input((128,)), layers.Dense(8 * 8 * 128), layers.Reshape((8, 8, 128))]
                + convolutions((128, 256, 512), layers.Conv2DTranspose)
                + [layers.Conv2D(3, 5, padding="same", activation="sigmoid")])
            self.seeds = keras.random.SeedGenerator(1337)
            self.losses_of = [keras.metrics.Mean(name="d_loss"), keras.metrics.Mean(name="g_loss")]

        def compile(self):
            super().compile()
            self.optimizers = [keras.optimizers.Adam(1e-4) for _ in range(2)]
            self.loss_of = keras.losses.BinaryCrossentropy()

        @property
        def metrics(self):
            return self.losses_of

        def train_step(self, images):
            batch = ops.shape(images)[0]
            made = self.generator(keras.random.normal((batch, 128), seed=self.seeds))
            both = ops.concatenate([made, images], axis=0)
            labels = ops.concatenate([ops.ones((batch, 1)), ops.zeros((batch, 1))], axis=0)
            noise = keras.random.normal((batch, 128), seed=self.seeds)
            found = []
            for network, compute in (
                    (self.discriminator,
                     lambda: self.loss_of(labels, self.discriminator(both))),
                    (self.generator,
                     lambda: self.loss_of(ops.zeros((batch, 1)),
                                          self.discriminator(self.generator(noise))))):
                with Tape() as tape:
                    loss = compute()
                weights = network.trainable_weights
                optimizer = self.optimizers[len(found)]
                optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
                found.append(loss)
            for metric, loss in zip(self.losses_of, found):
                metric.update_state(loss)
            return {metric.name: metric.result() for metric in self.losses_of}

    model = GAN()
    model.compile()
    return Program(model, 8, floats(8 * STEPS, 64, 64, 3))


def vae(keras):
    """The variational autoencoder, whose losses are added in its call."""
    layers, ops = keras.layers, keras.ops

    class Sampling(layers.Layer):
        def __init__(self):
            super().__init__()
            self.seed_generator = keras.random.SeedGenerator(1337)

        def call(self, inputs):
            mean, log_variance = inputs
            epsilon = keras.random.normal(ops.shape(mean), seed=self.seed_generator)
            return mean + ops.exp(0.5 * log_variance) * epsilon

    class VAE(keras.Model):
        def __init__(self):
            super().__init__()
            self.encoder = [layers.Conv2D(32, 3, activation="relu", strides=2, padding="same"),
                            layers.Conv2D(64, 3, activation="relu", strides=2, padding="same"),
                            layers.Flatten(), layers.Dense(16, activation="relu")]
            self.mean, self.log_variance = layers.Dense(2), layers.Dense(2)
            self.sampling = Sampling()
            self.decoder = [
                layers.Dense(7 * 7 * 64, activation="relu"), layers.Reshape((7, 7, 64)),
                layers.Conv2DTranspose(64, 3, activation="relu", strides=2, padding="same"),
                layers.Conv2DTranspose(32, 3, activation="relu", strides=2, padding="same"),
                layers.Conv2DTranspose(1, 3, activation="sigmoid", padding="same")]

        def call(self, inputs):
            x = inputs
            for layer in self.encoder:
                x = layer(x)
            mean, log_variance = self.mean(x), self.log_variance(x)
            x = self.sampling([mean, log_variance])
            for layer in self.decoder:
                x = layer(x)
            kl = -0.5 * (1 + log_variance - ops.square(mean) - ops.exp(log_variance))
            self.add_loss(ops.mean(ops.sum(kl, axis=1)))
            return x

    model = VAE()
    model.compile(optimizer="adam", loss="binary_crossentropy")
    x = floats(128 * STEPS, 28, 28, 1)
    return Program(model, 128, x, x)


# ---- Sequences ----

def bidirectional_lstm(keras):
    layers = keras.layers
    inputs = keras.Input(shape=(None,), dtype="int32")
    x = layers.Embedding(20000, 128)(inputs)
    x = layers.Bidirectional(layers.LSTM(64, return_sequences=True))(x)
    x = layers.Bidirectional(layers.LSTM(64))(x)
    model = keras.Model(inputs, layers.Dense(1, activation="sigmoid")(x))
    model.compile("adam", "binary_crossentropy", metrics=["accuracy"])
    return Program(model, 32, integers(20000, 32 * STEPS, 200), integers(2, 32 * STEPS, 1))


def transformer_layers(keras, causal):
    """(embedding of tokens and places, block), both layers of one's own."""
    layers, ops = keras.layers, keras.ops

    class Embedding(layers.Layer):
        def __init__(self, length, words, units):
            super().__init__()
            self.token = layers.Embedding(words, units)
            self.position = layers.Embedding(length, units)

        def call(self, x):
            return self.token(x) + self.position(ops.arange(0, ops.shape(x)[-1], 1))

    class Block(layers.Layer):
        def __init__(self, units, heads, inner, rate=0.1):
            super().__init__()
            self.attention = layers.MultiHeadAttention(num_heads=heads, key_dim=units)
            self.network = keras.Sequential([layers.Dense(inner, activation="relu"),
                                             layers.Dense(units)])
            self.norms = [layers.LayerNormalization(epsilon=1e-6) for _ in range(2)]
            self.dropouts = [layers.Dropout(rate) for _ in range(2)]

        def call(self, x, training=None):
            y = self.attention(x, x, use_causal_mask=causal)
            x = self.norms[0](x + self.dropouts[0](y, training=training))
            y = self.dropouts[1](self.network(x), training=training)
            return self.norms[1](x + y)

    return Embedding, Block


def text_transformer(keras):
    layers = keras.layers
    Embedding, Block = transformer_layers(keras, causal=False)
    inputs = keras.Input(shape=(200,), dtype="int32")
    x = Block(32, 2, 32)(Embedding(200, 20000, 32)(inputs))
    x = layers.Dropout(0.1)(layers.GlobalAveragePooling1D()(x))
    x = layers.Dropout(0.1)(layers.Dense(20, activation="relu")(x))
    model = keras.Model(inputs, layers.Dense(2, activation="softmax")(x))
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    return Program(model, 32, integers(20000, 32 * STEPS, 200), integers(2, 32 * STEPS))


def miniature_gpt(keras):
    layers = keras.layers
    Embedding, Block = transformer_layers(keras, causal=True)
    inputs = keras.Input(shape=(80,), dtype="int32")
    x = Block(256, 2, 256)(Embedding(80, 20000, 256)(inputs))
    model = keras.Model(inputs, layers.Dense(20000)(x))
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return Program(model, 32, integers(20000, 32 * STEPS, 80), integers(20000, 32 * STEPS, 80))


def own_cell(keras):
    """A recurrent cell of one's own over 100 steps."""
    layers, ops = keras.layers, keras.ops

    class MinimalCell(layers.Layer):
        def __init__(self, units):
            super().__init__()
            self.units = self.state_size = units

        def build(self, shape):
            self.kernel = self.add_weight(shape=(shape[-1], self.units))
            self.recurrent = self.add_weight(shape=(self.units, self.units))

        def call(self, inputs, states):
            h = ops.tanh(ops.matmul(inputs, self.kernel) + ops.matmul(states[0], self.recurrent))
            return h, [h]

    inputs = keras.Input(shape=(100, 16))
    x = layers.RNN(MinimalCell(128))(inputs)
    model = keras.Model(inputs, layers.Dense(1)(x))
    model.compile("rmsprop", "mse")
    return Program(model, 64, floats(64 * STEPS, 100, 16), floats(64 * STEPS, 1))


def traffic(keras):
    """Convolutions along time with residuals: classification of series."""
    layers = keras.layers
    inputs = keras.Input(shape=(500, 1))
    x = inputs
    for _ in range(3):
        x = layers.Conv1D(64, 3, padding="same")(x)
        x = layers.ReLU()(layers.BatchNormalization()(x))
    x = layers.GlobalAveragePooling1D()(x)
    model = keras.Model(inputs, layers.Dense(2, activation="softmax")(x))
    model.compile("adam", "sparse_categorical_crossentropy")
    return Program(model, 32, floats(32 * STEPS, 500, 1), integers(2, 32 * STEPS))


def gated_table(keras):
    """A table of columns through gated residual networks."""
    layers = keras.layers

    class GatedResidual(layers.Layer):
        def __init__(self, units):
            super().__init__()
            self.first = layers.Dense(units, activation="elu")
            self.second, self.gate = layers.Dense(units), layers.Dense(units, activation="sigmoid")
            self.project, self.norm = layers.Dense(units), layers.LayerNormalization()

        def call(self, x):
            y = self.second(self.first(x))
            return self.norm(self.project(x) + self.gate(y) * y)

    inputs = [keras.Input(shape=(1,)) for _ in range(40)]
    columns = [GatedResidual(16)(layers.Dense(16)(one)) for one in inputs]
    x = layers.Dropout(0.15)(GatedResidual(16)(layers.concatenate(columns)))
    model = keras.Model(inputs, layers.Dense(1, activation="sigmoid")(x))
    model.compile(keras.optimizers.Adam(1e-3), "binary_crossentropy", metrics=["accuracy"])
    columns = [floats(256 * STEPS, 1) for _ in inputs]
    return Program(model, 256, columns, integers(2, 256 * STEPS, 1))


PROGRAMS = {function.__name__: function for function in (
    mnist_convnet, xception, unet, vit, conv_lstm, vae, dcgan, bidirectional_lstm, text_transformer,
    miniature_gpt, own_cell, traffic, gated_table)}


def work():
    at = {}

    def prepare(side):
        if side == "cornu":
            import cornu as keras
        else:
            import keras
        at["keras"] = keras

    def first(task):
        at["program"] = PROGRAMS[task["name"]](at["keras"])
        at["program"].first()

    answer(prepare, {"first": first, "epoch": lambda task: at["program"].epoch()})


def bench(name, core):
    sides = {side: Side(__file__, side, core) for side in SIDES
             if side != "jax" or name != "dcgan"}
    for side in sides.values():
        side.time("first", {"do": "first", "name": name})
        side.ask({"do": "epoch"})
    for _ in range(ROUNDS):
        for side in sides.values():
            side.time("epoch", {"do": "epoch"})
    return {side: worker.end() for side, worker in sides.items()}


def row(name, found):
    cells = [" / ".join(f"{found[side][key] * scale:{form}}" if side in found else "-"
                        for side in SIDES)
             for key, scale, form in (("first", 1, ".2f"), ("epoch", 1e3 / STEPS, ".1f"),
                                      ("MiB", 1, ".0f"))]
    return f"| {name} | " + " | ".join(cells) + " |"


def main():
    if sys.argv[1:2] == ["--work"]:
        return work()
    core = max(os.sched_getaffinity(0))
    print(f"{', '.join(SIDES)}; medians\n")
    print("| program | first step, s | step, ms | memory, MiB |\n| --- | --- | --- | --- |",
          flush=True)
    for name in sys.argv[1:] or PROGRAMS:
        print(row(name, bench(name, core)), flush=True)


if __name__ == "__main__":
    main()
