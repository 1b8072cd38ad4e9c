"""Own layers that cut images into patches and add positions."""

from harness import data, fit, keras, report, start

layers, ops = keras.layers, keras.ops


class Patches(layers.Layer):
    def __init__(self, patch_size):
        super().__init__()
        self.patch_size = patch_size

    def call(self, images):
        shape = ops.shape(images)
        down, across = shape[1] // self.patch_size, shape[2] // self.patch_size
        patches = keras.ops.image.extract_patches(images, size=self.patch_size)
        return ops.reshape(patches, (shape[0], down * across,
                                     self.patch_size * self.patch_size * shape[3]))


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


inputs = keras.Input(shape=(16, 16, 3))
encoded = PatchEncoder(16, 12)(Patches(4)(inputs))
for _ in range(2):
    x1 = layers.LayerNormalization(epsilon=1e-6)(encoded)
    attention = layers.MultiHeadAttention(num_heads=2, key_dim=12, dropout=0.0)(x1, x1)
    x2 = layers.Add()([attention, encoded])
    x3 = layers.LayerNormalization(epsilon=1e-6)(x2)
    for units in (24, 12):
        x3 = layers.Dense(units, activation=keras.activations.gelu)(x3)
        x3 = layers.Dropout(0.0)(x3)
    encoded = layers.Add()([x3, x2])
y = layers.Flatten()(layers.LayerNormalization(epsilon=1e-6)(encoded))
model = start(keras.Model(inputs, layers.Dense(10)(y)))
model.compile(optimizer=keras.optimizers.AdamW(learning_rate=0.001, weight_decay=0.0001),
              loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
              metrics=[keras.metrics.SparseTopKCategoricalAccuracy(5, name="top-5")])
report(**fit(model, data(8, 16, 16, 3), data(8, 1, classes=10)))
