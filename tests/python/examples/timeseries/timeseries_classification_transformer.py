"""Attention by the functional interface."""

from harness import data, fit, keras, report, start

layers = keras.layers


def transformer_encoder(inputs, head_size, num_heads, ff_dim):
    x = layers.MultiHeadAttention(key_dim=head_size, num_heads=num_heads, dropout=0.0)(inputs,
                                                                                       inputs)
    x = layers.LayerNormalization(epsilon=1e-6)(layers.Dropout(0.0)(x))
    res = x + inputs
    x = layers.Conv1D(filters=ff_dim, kernel_size=1, activation="relu")(res)
    x = layers.Conv1D(filters=inputs.shape[-1], kernel_size=1)(layers.Dropout(0.0)(x))
    return layers.LayerNormalization(epsilon=1e-6)(x) + res


inputs = keras.Input(shape=(20, 1))
x = inputs
for _ in range(2):
    x = transformer_encoder(x, 8, 2, 4)
x = layers.GlobalAveragePooling1D(data_format="channels_last")(x)
x = layers.Dense(8, activation="relu")(x)
model = start(keras.Model(inputs, layers.Dense(2, activation="softmax")(x)))
model.compile(loss="sparse_categorical_crossentropy",
              optimizer=keras.optimizers.Adam(learning_rate=1e-4),
              metrics=["sparse_categorical_accuracy"])
report(**fit(model, data(8, 20, 1), data(8, classes=2)))
