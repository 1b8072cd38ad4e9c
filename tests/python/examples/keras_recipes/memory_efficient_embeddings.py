"""Embeddings of quotients and remainders, and of a mixed dimension, as own layers."""

from harness import data, fit, keras, report, start

layers, ops = keras.layers, keras.ops
USERS, MOVIES, DIM = 30, 24, 6


class QREmbedding(keras.layers.Layer):
    def __init__(self, vocabulary, embedding_dim, num_buckets, name=None):
        super().__init__(name=name)
        self.num_buckets = num_buckets
        self.index_lookup = layers.IntegerLookup(vocabulary=vocabulary, mask_token=None,
                                                 num_oov_indices=0)
        self.q_embeddings = layers.Embedding(num_buckets, embedding_dim)
        self.r_embeddings = layers.Embedding(num_buckets, embedding_dim)

    def call(self, inputs):
        embedding_index = inputs
        quotient_index = ops.floor_divide(embedding_index, self.num_buckets)
        remainder_index = ops.mod(embedding_index, self.num_buckets)
        quotient_embedding = self.q_embeddings(quotient_index)
        remainder_embedding = self.r_embeddings(remainder_index)
        return quotient_embedding * remainder_embedding


class MDEmbedding(keras.layers.Layer):
    def __init__(self, blocks_vocabulary, blocks_embedding_dims, base_embedding_dim, name=None):
        super().__init__(name=name)
        self.num_blocks = len(blocks_vocabulary)
        keys, block_indices = [], []
        for block_idx, block_vocab in enumerate(blocks_vocabulary):
            keys.extend(block_vocab)
            block_indices.extend([block_idx] * len(block_vocab))
        self.vocab_to_block = block_indices
        self.block_embedding_encoders = [
            layers.Embedding(len(keys), dim) for dim in blocks_embedding_dims]
        self.block_embedding_projectors = [layers.Dense(units=base_embedding_dim)
                                           for _ in blocks_embedding_dims]

    def call(self, inputs):
        block_indicies = ops.take(ops.convert_to_tensor(self.vocab_to_block), inputs)
        embeddings = ops.zeros(shape=(ops.shape(inputs)[0], DIM))
        for idx in range(self.num_blocks):
            block_embeddings = self.block_embedding_encoders[idx](inputs)
            block_embeddings = self.block_embedding_projectors[idx](block_embeddings)
            mask = ops.expand_dims(ops.cast(block_indicies == idx, "float32"), 1)
            embeddings += block_embeddings * mask
        return embeddings


user_input = layers.Input(name="user_id", shape=(), dtype="int32")
user_embedding = QREmbedding(list(range(USERS)), DIM, 6, name="user_embedding")(user_input)
movie_input = layers.Input(name="movie_id", shape=(), dtype="int32")
movie_embedding = MDEmbedding([list(range(8)), list(range(8, MOVIES))], [4, 2], DIM,
                              name="movie_embedding")(movie_input)
logits = layers.Dot(axes=1, name="dot_similarity")([user_embedding, movie_embedding])
prediction = keras.activations.sigmoid(logits) * 5
model = start(keras.Model(inputs=[user_input, movie_input], outputs=prediction, name="efficient"))
model.compile(optimizer=keras.optimizers.Adam(0.01), loss=keras.losses.MeanSquaredError(),
              metrics=[keras.metrics.MeanAbsoluteError(name="mae")])
report(**fit(model, {"user_id": data(10, classes=USERS), "movie_id": data(10, classes=MOVIES)},
             abs(data(10, 1))))
