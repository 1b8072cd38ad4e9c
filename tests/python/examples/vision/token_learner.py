"""Tokens that attention maps of convolutions pick, between blocks of a transformer."""

from harness import data, fit, keras, report, start

layers, ops = keras.layers, keras.ops
NUM_TOKENS, DIM = 3, 8


def position_embedding(projected_patches, num_patches, projection_dim):
    positions = ops.arange(0, num_patches, 1)
    encoded_positions = layers.Embedding(       # called on an array, it is a constant
        input_dim=num_patches, output_dim=projection_dim,
        embeddings_initializer=keras.initializers.Constant(data(num_patches, projection_dim)))(
            positions)
    encoded_positions = ops.expand_dims(encoded_positions, 0)
    return projected_patches + encoded_positions


def mlp(x, dropout_rate, hidden_units):
    for units in hidden_units:
        x = layers.Dense(units, activation=ops.gelu)(x)
        x = layers.Dropout(dropout_rate)(x)
    return x


def token_learner(inputs, number_of_tokens=NUM_TOKENS):
    x = layers.LayerNormalization(epsilon=1e-6)(inputs)
    attention_maps = keras.Sequential([
        layers.Conv2D(filters=number_of_tokens, kernel_size=(3, 3), activation=ops.gelu,
                      padding="same", use_bias=False),
        layers.Conv2D(filters=number_of_tokens, kernel_size=(3, 3), activation=ops.gelu,
                      padding="same", use_bias=False),
        layers.Conv2D(filters=number_of_tokens, kernel_size=(3, 3), activation="sigmoid",
                      padding="same", use_bias=False),
        layers.Reshape((-1, number_of_tokens)), layers.Permute((2, 1))])(x)
    num_filters = inputs.shape[-1]
    inputs = layers.Reshape((1, -1, num_filters))(inputs)
    attended_inputs = (ops.expand_dims(attention_maps, axis=-1) * inputs)
    return ops.mean(attended_inputs, axis=2)


def transformer(encoded_patches):
    x1 = layers.LayerNormalization(epsilon=1e-6)(encoded_patches)
    attention_output = layers.MultiHeadAttention(num_heads=2, key_dim=DIM, dropout=0.0)(x1, x1)
    x2 = layers.Add()([attention_output, encoded_patches])
    x3 = mlp(layers.LayerNormalization(epsilon=1e-6)(x2), 0.0, [12, DIM])
    return layers.Add()([x3, x2])


inputs = layers.Input(shape=(12, 12, 3))
projected_patches = layers.Conv2D(DIM, kernel_size=(3, 3), strides=(3, 3), padding="VALID")(inputs)
_, h, w, c = projected_patches.shape
projected_patches = layers.Reshape((h * w, c))(projected_patches)
encoded_patches = position_embedding(projected_patches, h * w, DIM)
encoded_patches = layers.Dropout(0.0)(encoded_patches)
encoded_patches = transformer(encoded_patches)
encoded_patches = layers.Reshape((h, w, c))(encoded_patches)
encoded_patches = transformer(token_learner(encoded_patches))
representation = layers.LayerNormalization(epsilon=1e-6)(encoded_patches)
representation = layers.GlobalAvgPool1D()(representation)
model = start(keras.Model(inputs, layers.Dense(4, activation="softmax")(representation)))
model.compile(optimizer=keras.optimizers.AdamW(learning_rate=1e-3, weight_decay=1e-4),
              loss="sparse_categorical_crossentropy",
              metrics=[keras.metrics.SparseCategoricalAccuracy(name="accuracy"),
                       keras.metrics.SparseTopKCategoricalAccuracy(2, name="top-2-accuracy")])
report(**fit(model, data(6, 12, 12, 3), data(6, classes=4)))
