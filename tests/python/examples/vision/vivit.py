"""Tubelets of videos by convolution, positions that a layer builds, and blocks of a transformer."""

from harness import data, fit, keras, report, start

layers, ops = keras.layers, keras.ops


class TubeletEmbedding(layers.Layer):
    def __init__(self, embed_dim, patch_size, **kwargs):
        super().__init__(**kwargs)
        self.projection = layers.Conv3D(filters=embed_dim, kernel_size=patch_size,
                                        strides=patch_size, padding="VALID")
        self.flatten = layers.Reshape(target_shape=(-1, embed_dim))

    def call(self, videos):
        projected_patches = self.projection(videos)
        return self.flatten(projected_patches)


class PositionalEncoder(layers.Layer):
    def __init__(self, embed_dim, **kwargs):
        super().__init__(**kwargs)
        self.embed_dim = embed_dim

    def build(self, input_shape):
        _, num_tokens, _ = input_shape
        self.position_embedding = layers.Embedding(input_dim=num_tokens,
                                                   output_dim=self.embed_dim)
        self.positions = ops.arange(start=0, stop=num_tokens, step=1)

    def call(self, encoded_tokens):
        encoded_positions = self.position_embedding(self.positions)
        return encoded_tokens + encoded_positions


def create_vivit_classifier(tubelet_embedder, positional_encoder, input_shape, transformer_layers,
                            num_heads, embed_dim, layer_norm_eps, num_classes):
    inputs = layers.Input(shape=input_shape)
    encoded_patches = positional_encoder(tubelet_embedder(inputs))
    for _ in range(transformer_layers):
        x1 = layers.LayerNormalization(epsilon=1e-6)(encoded_patches)
        attention_output = layers.MultiHeadAttention(
            num_heads=num_heads, key_dim=embed_dim // num_heads, dropout=0.0)(x1, x1)
        x2 = layers.Add()([attention_output, encoded_patches])
        x3 = layers.LayerNormalization(epsilon=1e-6)(x2)
        x3 = keras.Sequential([layers.Dense(units=embed_dim * 2, activation=keras.ops.gelu),
                               layers.Dense(units=embed_dim, activation=keras.ops.gelu)])(x3)
        encoded_patches = layers.Add()([x3, x2])
    representation = layers.LayerNormalization(epsilon=layer_norm_eps)(encoded_patches)
    representation = layers.GlobalAvgPool1D()(representation)
    outputs = layers.Dense(units=num_classes, activation="softmax")(representation)
    return keras.Model(inputs=inputs, outputs=outputs)


model = start(create_vivit_classifier(
    tubelet_embedder=TubeletEmbedding(embed_dim=8, patch_size=(4, 4, 4)),
    positional_encoder=PositionalEncoder(embed_dim=8), input_shape=(8, 8, 8, 1),
    transformer_layers=2, num_heads=2, embed_dim=8, layer_norm_eps=1e-6, num_classes=3))
model.compile(optimizer=keras.optimizers.Adam(learning_rate=1e-4),
              loss="sparse_categorical_crossentropy",
              metrics=[keras.metrics.SparseCategoricalAccuracy(name="accuracy"),
                       keras.metrics.SparseTopKCategoricalAccuracy(2, name="top-2-accuracy")])
report(**fit(model, data(4, 8, 8, 8, 1), data(4, classes=3)))
