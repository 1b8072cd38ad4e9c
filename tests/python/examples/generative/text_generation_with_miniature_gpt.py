"""A causal mask by ops, two outputs of which one has a loss."""

from harness import data, fit, keras, report, start

layers, ops = keras.layers, keras.ops


def causal_attention_mask(n_dest, n_src, dtype):
    i = ops.arange(n_dest)[:, None]
    j = ops.arange(n_src)
    return ops.reshape(ops.cast(i >= j - n_src + n_dest, dtype), [1, n_dest, n_src])


class TransformerBlock(layers.Layer):
    def __init__(self, embed_dim, num_heads, ff_dim, rate=0.0):
        super().__init__()
        self.att = layers.MultiHeadAttention(num_heads, embed_dim)
        self.ffn = keras.Sequential([layers.Dense(ff_dim, activation="relu"),
                                     layers.Dense(embed_dim)])
        self.layernorm1 = layers.LayerNormalization(epsilon=1e-6)
        self.layernorm2 = layers.LayerNormalization(epsilon=1e-6)

    def call(self, inputs):
        shape = ops.shape(inputs)
        mask = causal_attention_mask(shape[1], shape[1], "bool")
        out1 = self.layernorm1(inputs + self.att(inputs, inputs, attention_mask=mask))
        return self.layernorm2(out1 + self.ffn(out1))


class TokenAndPositionEmbedding(layers.Layer):
    def __init__(self, maxlen, vocab_size, embed_dim):
        super().__init__()
        self.token_emb = layers.Embedding(vocab_size, embed_dim)
        self.pos_emb = layers.Embedding(maxlen, embed_dim)

    def call(self, x):
        return self.token_emb(x) + self.pos_emb(ops.arange(0, ops.shape(x)[-1], 1))


inputs = layers.Input(shape=(10,), dtype="int32")
x = TransformerBlock(12, 2, 12)(TokenAndPositionEmbedding(10, 30, 12)(inputs))
model = start(keras.Model(inputs=inputs, outputs=[layers.Dense(30)(x), x]))
model.compile("adam", loss=[keras.losses.SparseCategoricalCrossentropy(from_logits=True), None])
report(**fit(model, data(8, 10, classes=30), data(8, 10, classes=30, seed=4)))
