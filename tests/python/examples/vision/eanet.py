"""External attention: normalization over two axes by turns, in functions of layers and ops."""

from harness import data, fit, keras, report, start

layers, ops = keras.layers, keras.ops
DIM = 8


class PatchExtract(layers.Layer):
    def __init__(self, patch_size, **kwargs):
        super().__init__(**kwargs)
        self.patch_size = patch_size

    def call(self, x):
        B, C = ops.shape(x)[0], ops.shape(x)[-1]
        x = ops.image.extract_patches(x, self.patch_size)
        x = ops.reshape(x, (B, -1, self.patch_size * self.patch_size * C))
        return x


class PatchEmbedding(layers.Layer):
    def __init__(self, num_patch, embed_dim, **kwargs):
        super().__init__(**kwargs)
        self.num_patch = num_patch
        self.proj = layers.Dense(embed_dim)
        self.pos_embed = layers.Embedding(input_dim=num_patch, output_dim=embed_dim)

    def call(self, patch):
        pos = ops.arange(start=0, stop=self.num_patch, step=1)
        return self.proj(patch) + self.pos_embed(pos)


def external_attention(x, dim, num_heads, dim_coefficient=2):
    _, num_patch, channel = x.shape
    assert dim % num_heads == 0
    num_heads = num_heads * dim_coefficient
    x = layers.Dense(dim * dim_coefficient)(x)
    x = ops.reshape(x, (-1, num_patch, num_heads, dim * dim_coefficient // num_heads))
    x = ops.transpose(x, axes=[0, 2, 1, 3])
    attn = layers.Dense(dim // dim_coefficient)(x)
    attn = layers.Softmax(axis=2)(attn)
    attn = layers.Lambda(lambda attn: ops.divide(
        attn, ops.convert_to_tensor(1e-9) + ops.sum(attn, axis=-1, keepdims=True)))(attn)
    x = layers.Dense(dim * dim_coefficient // num_heads)(attn)
    x = ops.transpose(x, axes=[0, 2, 1, 3])
    x = ops.reshape(x, [-1, num_patch, dim * dim_coefficient])
    return layers.Dropout(0.0)(layers.Dense(dim)(x))


def transformer_encoder(x):
    residual_1 = x
    x = layers.LayerNormalization(epsilon=1e-5)(x)
    x = external_attention(x, DIM, 2)
    x = layers.add([x, residual_1])
    residual_2 = x
    x = layers.LayerNormalization(epsilon=1e-5)(x)
    x = layers.Dense(12, activation=ops.gelu)(x)
    x = layers.Dense(DIM)(x)
    return layers.add([x, residual_2])


inputs = layers.Input(shape=(8, 8, 3))
x = PatchEmbedding(16, DIM)(PatchExtract(2)(inputs))
for _ in range(2):
    x = transformer_encoder(x)
x = layers.GlobalAveragePooling1D()(x)
model = start(keras.Model(inputs=inputs, outputs=layers.Dense(5, activation="softmax")(x)))
model.compile(loss=keras.losses.CategoricalCrossentropy(label_smoothing=0.1),
              optimizer=keras.optimizers.AdamW(learning_rate=1e-3, weight_decay=1e-4),
              metrics=[keras.metrics.CategoricalAccuracy(name="accuracy"),
                       keras.metrics.TopKCategoricalAccuracy(2, name="top-2-accuracy")])
report(**fit(model, data(6, 8, 8, 3), keras.utils.to_categorical(data(6, classes=5), 5)))
