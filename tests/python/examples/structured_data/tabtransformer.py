"""Embeddings of columns under attention, inputs by name, weights of samples, lookups."""

import math

import numpy as np
from harness import data, fit, keras, report, start

layers, ops = keras.layers, keras.ops
NUMERIC, CATEGORICAL = ["age", "gain"], {"work": ["a", "b", "c"], "sex": ["f", "m"]}
embedding_dims, num_heads = 8, 2
inputs = {name: layers.Input(name=name, shape=(), dtype="float32") for name in NUMERIC}
inputs.update({name: layers.Input(name=name, shape=(), dtype="int32") for name in CATEGORICAL})


def create_mlp(hidden_units, dropout_rate, activation, normalization_layer, name=None):
    mlp_layers = []
    for units in hidden_units:
        mlp_layers.append(normalization_layer())
        mlp_layers.append(layers.Dense(units, activation=activation))
        mlp_layers.append(layers.Dropout(dropout_rate))
    return keras.Sequential(mlp_layers, name=name)


encoded_categorical, numerical = [], []
for name in inputs:
    if name in CATEGORICAL:
        embedding = layers.Embedding(input_dim=len(CATEGORICAL[name]), output_dim=embedding_dims)
        encoded_categorical.append(embedding(inputs[name]))
    else:
        numerical.append(ops.expand_dims(inputs[name], -1))
encoded = ops.stack(encoded_categorical, axis=1)
column_embedding = layers.Embedding(        # called on an array, it is a constant
    input_dim=encoded.shape[1], output_dim=embedding_dims,
    embeddings_initializer=keras.initializers.Constant(data(2, embedding_dims)))
column_indices = ops.arange(start=0, stop=encoded.shape[1], step=1)
encoded = encoded + column_embedding(column_indices)
for block_idx in range(2):
    attention_output = layers.MultiHeadAttention(
        num_heads=num_heads, key_dim=embedding_dims, dropout=0.0,
        name="multihead_attention_{}".format(block_idx))(encoded, encoded)
    x = layers.Add(name="skip_connection1_{}".format(block_idx))([attention_output, encoded])
    x = layers.LayerNormalization(name="layer_norm1_{}".format(block_idx), epsilon=1e-6)(x)
    feedforward_output = create_mlp(
        hidden_units=[embedding_dims], dropout_rate=0.0, activation=keras.activations.gelu,
        normalization_layer=lambda: layers.LayerNormalization(epsilon=1e-6),
        name="feedforward_{}".format(block_idx))(x)
    x = layers.Add(name="skip_connection2_{}".format(block_idx))([feedforward_output, x])
    encoded = layers.LayerNormalization(name="layer_norm2_{}".format(block_idx), epsilon=1e-6)(x)
categorical_features = layers.Flatten()(encoded)
numerical_features = layers.LayerNormalization(epsilon=1e-6)(layers.concatenate(numerical))
features = layers.concatenate([categorical_features, numerical_features])
mlp_hidden_units = [math.ceil(factor * features.shape[-1]) for factor in (2, 1)]
features = create_mlp(mlp_hidden_units, 0.0, keras.activations.selu, layers.BatchNormalization,
                      name="MLP")(features)
outputs = layers.Dense(units=1, activation="sigmoid", name="sigmoid")(features)
model = start(keras.Model(inputs=inputs, outputs=outputs))
model.compile(optimizer=keras.optimizers.AdamW(learning_rate=0.001, weight_decay=0.0001),
              loss=keras.losses.BinaryCrossentropy(),
              metrics=[keras.metrics.BinaryAccuracy(name="accuracy")])
x = {"age": data(8), "gain": data(8, seed=1)}
for name, words in CATEGORICAL.items():
    strings = np.array(words)[data(8, classes=len(words), seed=len(words))]
    lookup = layers.StringLookup(vocabulary=words, mask_token=None, num_oov_indices=0)
    x[name] = ops.convert_to_numpy(lookup(strings)).astype("int32")
report(**fit(model, x, data(8, 1, classes=2), sample_weight=abs(data(8, seed=2))))
