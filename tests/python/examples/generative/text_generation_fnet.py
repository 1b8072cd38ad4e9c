"""Fourier transforms in place of attention in an encoder, and a decoder with a causal mask."""

from harness import data, fit, keras, report, start

layers, ops = keras.layers, keras.ops


class FNetEncoder(layers.Layer):
    def __init__(self, embed_dim, dense_dim, **kwargs):
        super().__init__(**kwargs)
        self.dense_proj = keras.Sequential([layers.Dense(dense_dim, activation="relu"),
                                            layers.Dense(embed_dim)])
        self.layernorm_1 = layers.LayerNormalization()
        self.layernorm_2 = layers.LayerNormalization()

    def call(self, inputs):
        real, _ = ops.fft2((inputs, ops.zeros_like(inputs)))
        proj_input = self.layernorm_1(inputs + real)
        return self.layernorm_2(proj_input + self.dense_proj(proj_input))


class PositionalEmbedding(layers.Layer):
    def __init__(self, sequence_length, vocab_size, embed_dim, **kwargs):
        super().__init__(**kwargs)
        self.token_embeddings = layers.Embedding(vocab_size, embed_dim)
        self.position_embeddings = layers.Embedding(sequence_length, embed_dim)

    def call(self, inputs):
        positions = ops.arange(0, ops.shape(inputs)[-1], 1)
        return self.token_embeddings(inputs) + self.position_embeddings(positions)

    def compute_mask(self, inputs, mask=None):
        return ops.not_equal(inputs, 0)


class FNetDecoder(layers.Layer):
    def __init__(self, embed_dim, latent_dim, num_heads, **kwargs):
        super().__init__(**kwargs)
        self.attention_1 = layers.MultiHeadAttention(num_heads, embed_dim)
        self.attention_2 = layers.MultiHeadAttention(num_heads, embed_dim)
        self.dense_proj = keras.Sequential([layers.Dense(latent_dim, activation="relu"),
                                            layers.Dense(embed_dim)])
        self.layernorm_1 = layers.LayerNormalization()
        self.layernorm_2 = layers.LayerNormalization()
        self.layernorm_3 = layers.LayerNormalization()
        self.supports_masking = True

    def call(self, inputs, encoder_outputs, mask=None):
        causal_mask = self.get_causal_attention_mask(inputs)
        out_1 = self.layernorm_1(inputs + self.attention_1(inputs, inputs, inputs,
                                                           attention_mask=causal_mask))
        out_2 = self.attention_2(out_1, encoder_outputs, encoder_outputs)
        out_2 = self.layernorm_2(out_1 + out_2)
        return self.layernorm_3(out_2 + self.dense_proj(out_2))

    def get_causal_attention_mask(self, inputs):
        batch_size, length = ops.shape(inputs)[0], ops.shape(inputs)[1]
        i = ops.arange(length)[:, None]
        mask = ops.cast(i >= ops.arange(length), "int32")
        mask = ops.reshape(mask, (1, length, length))
        return ops.tile(mask, (batch_size, 1, 1))


encoder_inputs = keras.Input(shape=(None,), dtype="int32", name="encoder_inputs")
x = PositionalEmbedding(8, 20, 12)(encoder_inputs)
encoder_outputs = FNetEncoder(12, 16)(x)
decoder_inputs = keras.Input(shape=(None,), dtype="int32", name="decoder_inputs")
x = PositionalEmbedding(8, 20, 12)(decoder_inputs)
x = FNetDecoder(12, 16, 2)(x, encoder_outputs)
decoder_outputs = layers.Dense(20, activation="softmax")(layers.Dropout(0.0)(x))
fnet = start(keras.Model([encoder_inputs, decoder_inputs], decoder_outputs, name="fnet"))
fnet.compile("adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
report(**fit(fnet, {"encoder_inputs": data(6, 8, classes=19) + 1,
                    "decoder_inputs": data(6, 8, classes=19, seed=1) + 1},
             data(6, 8, classes=20)))
