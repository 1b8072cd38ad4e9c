"""Tokens by convolutions, positions by an own weight, stochastic depth, and sequence pooling."""

from harness import data, fit, keras, report, start

layers, ops = keras.layers, keras.ops
NUM_HEADS, DIM = 2, 8


class CCTTokenizer(layers.Layer):
    def __init__(self, kernel_size=3, stride=1, padding=1, num_output_channels=(4, DIM), **kwargs):
        super().__init__(**kwargs)
        self.conv_model = keras.Sequential()
        for filters in num_output_channels:
            self.conv_model.add(layers.Conv2D(filters, kernel_size, stride, padding="valid",
                                              use_bias=False, activation="relu",
                                              kernel_initializer="he_normal"))
            self.conv_model.add(layers.ZeroPadding2D(padding))
            self.conv_model.add(layers.MaxPooling2D(3, 2, "same"))

    def call(self, images):
        outputs = self.conv_model(images)
        return ops.reshape(outputs, (-1, ops.shape(outputs)[1] * ops.shape(outputs)[2],
                                     ops.shape(outputs)[-1]))


class PositionEmbedding(layers.Layer):
    def __init__(self, sequence_length, initializer="glorot_uniform", **kwargs):
        super().__init__(**kwargs)
        self.sequence_length = int(sequence_length)
        self.initializer = keras.initializers.get(initializer)

    def get_config(self):
        config = super().get_config()
        config.update({"sequence_length": self.sequence_length,
                       "initializer": keras.initializers.serialize(self.initializer)})
        return config

    def build(self, input_shape):
        self.position_embeddings = self.add_weight(
            name="embeddings", shape=[self.sequence_length, input_shape[-1]],
            initializer=self.initializer, trainable=True)
        super().build(input_shape)

    def call(self, inputs, start_index=0):
        shape = ops.shape(inputs)
        embeddings = ops.convert_to_tensor(self.position_embeddings)
        embeddings = ops.slice(embeddings, (start_index, 0), (shape[-2], shape[-1]))
        return ops.broadcast_to(embeddings, shape)

    def compute_output_shape(self, input_shape):
        return input_shape


class SequencePooling(layers.Layer):
    def __init__(self):
        super().__init__()
        self.attention = layers.Dense(1)

    def call(self, x):
        attention_weights = ops.softmax(self.attention(x), axis=1)
        attention_weights = ops.transpose(attention_weights, axes=(0, 2, 1))
        return ops.squeeze(ops.matmul(attention_weights, x), -2)


class StochasticDepth(layers.Layer):
    def __init__(self, drop_prob, **kwargs):
        super().__init__(**kwargs)
        self.drop_prob = drop_prob
        self.seed_generator = keras.random.SeedGenerator(1337)

    def call(self, x, training=None):
        if training:
            keep_prob = 1 - self.drop_prob
            shape = (ops.shape(x)[0],) + (1,) * (len(x.shape) - 1)
            random_tensor = keep_prob + keras.random.uniform(shape, 0, 1, seed=self.seed_generator)
            return (x / keep_prob) * ops.floor(random_tensor)
        return x


def mlp(x, hidden_units, dropout_rate):
    for units in hidden_units:
        x = layers.Dense(units, activation=ops.gelu)(x)
        x = layers.Dropout(dropout_rate)(x)
    return x


inputs = layers.Input((16, 16, 3))
augmented = keras.Sequential([layers.Rescaling(scale=1.0 / 255)], name="data_augmentation")(inputs)
tokenizer = CCTTokenizer()
encoded_patches = tokenizer(augmented)
encoded_patches += PositionEmbedding(sequence_length=encoded_patches.shape[1])(encoded_patches)
for rate in (0.0, 0.0):
    x1 = layers.LayerNormalization(epsilon=1e-5)(encoded_patches)
    attention_output = layers.MultiHeadAttention(num_heads=NUM_HEADS, key_dim=DIM,
                                                 dropout=0.0)(x1, x1)
    x2 = layers.Add()([StochasticDepth(rate)(attention_output), encoded_patches])
    x3 = mlp(layers.LayerNormalization(epsilon=1e-5)(x2), [DIM, DIM], 0.0)
    encoded_patches = layers.Add()([StochasticDepth(rate)(x3), x2])
representation = layers.LayerNormalization(epsilon=1e-5)(encoded_patches)
logits = layers.Dense(4)(SequencePooling()(representation))
model = start(keras.Model(inputs=inputs, outputs=logits))
model.compile(optimizer=keras.optimizers.AdamW(learning_rate=0.001, weight_decay=0.0001),
              loss=keras.losses.CategoricalCrossentropy(from_logits=True, label_smoothing=0.1),
              metrics=[keras.metrics.CategoricalAccuracy(name="accuracy"),
                       keras.metrics.TopKCategoricalAccuracy(2, name="top")])
y = keras.utils.to_categorical(data(6, 1, classes=4), 4)
report(**fit(model, 100 * data(6, 16, 16, 3), y))
