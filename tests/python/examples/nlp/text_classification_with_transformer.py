"""A block and an embedding as layers of one's own."""

from harness import data, fit, keras, report, start

layers, ops = keras.layers, keras.ops


class TransformerBlock(layers.Layer):
    def __init__(self, embed_dim, num_heads, ff_dim, rate=0.0):
        super().__init__()
        self.att = layers.MultiHeadAttention(num_heads=num_heads, key_dim=embed_dim)
        self.ffn = keras.Sequential([layers.Dense(ff_dim, activation="relu"),
                                     layers.Dense(embed_dim)])
        self.layernorm1 = layers.LayerNormalization(epsilon=1e-6)
        self.layernorm2 = layers.LayerNormalization(epsilon=1e-6)
        self.dropout1, self.dropout2 = layers.Dropout(rate), layers.Dropout(rate)

    def call(self, inputs):
        attention = self.dropout1(self.att(inputs, inputs))
        out1 = self.layernorm1(inputs + attention)
        return self.layernorm2(out1 + self.dropout2(self.ffn(out1)))


class TokenAndPositionEmbedding(layers.Layer):
    def __init__(self, maxlen, vocab_size, embed_dim):
        super().__init__()
        self.token_emb = layers.Embedding(input_dim=vocab_size, output_dim=embed_dim)
        self.pos_emb = layers.Embedding(input_dim=maxlen, output_dim=embed_dim)

    def call(self, x):
        maxlen = ops.shape(x)[-1]
        positions = ops.arange(start=0, stop=maxlen, step=1)
        return self.token_emb(x) + self.pos_emb(positions)


inputs = layers.Input(shape=(20,))
x = TransformerBlock(16, 2, 16)(TokenAndPositionEmbedding(20, 100, 16)(inputs))
x = layers.Dropout(0.0)(layers.GlobalAveragePooling1D()(x))
x = layers.Dropout(0.0)(layers.Dense(10, activation="relu")(x))
model = start(keras.Model(inputs=inputs, outputs=layers.Dense(2, activation="softmax")(x)))
model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
report(**fit(model, data(8, 20, classes=100), data(8, classes=2)))
