"""A box for each image by a transformer of its patches: patches in a layer with a config, positions
as an embedding, a loss of the corners, the best weights loaded again."""

import numpy as np
from harness import data, fit, keras, report, start

layers, ops = keras.layers, keras.ops
IMAGE_SIZE, PATCH_SIZE, PROJECTION_DIM, NUM_HEADS = 12, 4, 8, 2
NUM_PATCHES = (IMAGE_SIZE // PATCH_SIZE) ** 2


def mlp(x, hidden_units, dropout_rate):
    for units in hidden_units:
        x = layers.Dense(units, activation=keras.activations.gelu)(x)
        x = layers.Dropout(dropout_rate)(x)
    return x


class Patches(layers.Layer):
    def __init__(self, patch_size):
        super().__init__()
        self.patch_size = patch_size

    def call(self, images):
        batch_size, height, width, channels = ops.shape(images)
        patches = keras.ops.image.extract_patches(images, size=self.patch_size)
        return ops.reshape(patches, (
            batch_size, (height // self.patch_size) * (width // self.patch_size),
            self.patch_size * self.patch_size * channels))

    def get_config(self):
        config = super().get_config()
        config.update({"patch_size": self.patch_size})
        return config


class PatchEncoder(layers.Layer):
    def __init__(self, num_patches, projection_dim):
        super().__init__()
        self.num_patches = num_patches
        self.projection = layers.Dense(units=projection_dim)
        self.position_embedding = layers.Embedding(input_dim=num_patches,
                                                   output_dim=projection_dim)

    def call(self, patch):
        positions = ops.expand_dims(ops.arange(start=0, stop=self.num_patches, step=1), axis=0)
        return self.projection(patch) + self.position_embedding(positions)


def create_vit_object_detector(transformer_layers):
    inputs = keras.Input(shape=(IMAGE_SIZE, IMAGE_SIZE, 3))
    encoded_patches = PatchEncoder(NUM_PATCHES, PROJECTION_DIM)(Patches(PATCH_SIZE)(inputs))
    for _ in range(transformer_layers):
        x1 = layers.LayerNormalization(epsilon=1e-6)(encoded_patches)
        attention_output = layers.MultiHeadAttention(num_heads=NUM_HEADS, key_dim=PROJECTION_DIM,
                                                     dropout=0.0)(x1, x1)
        x2 = layers.Add()([attention_output, encoded_patches])
        x3 = layers.LayerNormalization(epsilon=1e-6)(x2)
        x3 = mlp(x3, [PROJECTION_DIM * 2, PROJECTION_DIM], 0.0)
        encoded_patches = layers.Add()([x3, x2])
    representation = layers.LayerNormalization(epsilon=1e-6)(encoded_patches)
    representation = layers.Flatten()(representation)
    features = mlp(representation, [16, 8], 0.0)
    return keras.Model(inputs=inputs, outputs=layers.Dense(4)(features))


images = abs(data(6, IMAGE_SIZE, IMAGE_SIZE, 3))
model = start(create_vit_object_detector(2))
optimizer = keras.optimizers.AdamW(learning_rate=0.001, weight_decay=0.0001)
model.compile(optimizer=optimizer, loss=keras.losses.MeanSquaredError())
logs = fit(model, images, abs(data(6, 4)))
patches = ops.convert_to_numpy(Patches(PATCH_SIZE)(np.expand_dims(images[0], axis=0)))
report(patches=patches, boxes=model.predict(images, verbose=0), **logs)
