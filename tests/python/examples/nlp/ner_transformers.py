"""A subclassed model of own layers, and a loss of one's own that leaves out padding."""

from harness import data, fit, keras, report, start

layers, ops = keras.layers, keras.ops


class TransformerBlock(layers.Layer):
    def __init__(self, embed_dim, num_heads, ff_dim, rate=0.1):
        super().__init__()
        self.att = keras.layers.MultiHeadAttention(num_heads=num_heads, key_dim=embed_dim)
        self.ffn = keras.Sequential([keras.layers.Dense(ff_dim, activation="relu"),
                                     keras.layers.Dense(embed_dim)])
        self.layernorm1 = keras.layers.LayerNormalization(epsilon=1e-6)
        self.layernorm2 = keras.layers.LayerNormalization(epsilon=1e-6)
        self.dropout1, self.dropout2 = keras.layers.Dropout(rate), keras.layers.Dropout(rate)

    def call(self, inputs, training=False):
        attn_output = self.dropout1(self.att(inputs, inputs), training=training)
        out1 = self.layernorm1(inputs + attn_output)
        ffn_output = self.dropout2(self.ffn(out1), training=training)
        return self.layernorm2(out1 + ffn_output)


class TokenAndPositionEmbedding(layers.Layer):
    def __init__(self, maxlen, vocab_size, embed_dim):
        super().__init__()
        self.token_emb = keras.layers.Embedding(input_dim=vocab_size, output_dim=embed_dim)
        self.pos_emb = keras.layers.Embedding(input_dim=maxlen, output_dim=embed_dim)

    def call(self, inputs):
        maxlen = ops.shape(inputs)[-1]
        positions = ops.arange(start=0, stop=maxlen, step=1)
        return self.token_emb(inputs) + self.pos_emb(positions)


class NERModel(keras.Model):
    def __init__(self, num_tags, vocab_size, maxlen=8, embed_dim=8, num_heads=2, ff_dim=8):
        super().__init__()
        self.embedding_layer = TokenAndPositionEmbedding(maxlen, vocab_size, embed_dim)
        self.transformer_block = TransformerBlock(embed_dim, num_heads, ff_dim, rate=0.0)
        self.dropout1 = layers.Dropout(0.0)
        self.ff = layers.Dense(ff_dim, activation="relu")
        self.dropout2 = layers.Dropout(0.0)
        self.ff_final = layers.Dense(num_tags, activation="softmax")

    def call(self, inputs, training=False):
        x = self.transformer_block(self.embedding_layer(inputs))
        x = self.ff(self.dropout1(x, training=training))
        return self.ff_final(self.dropout2(x, training=training))


class CustomNonPaddingTokenLoss(keras.losses.Loss):
    def __init__(self, name="custom_ner_loss"):
        super().__init__(name=name)

    def call(self, y_true, y_pred):
        loss_fn = keras.losses.SparseCategoricalCrossentropy(from_logits=False, reduction=None)
        loss = loss_fn(y_true, y_pred)
        mask = ops.cast((y_true > 0), dtype="float32")
        loss = loss * mask
        return ops.sum(loss) / ops.sum(mask)


ner_model = NERModel(5, 30)
tokens = data(6, 8, classes=30)
ner_model(tokens)
start(ner_model)
ner_model.compile(optimizer="adam", loss=CustomNonPaddingTokenLoss())
logs = fit(ner_model, tokens, data(6, 8, classes=5))
report(output=ner_model.predict(tokens[:1], verbose=0), **logs)
