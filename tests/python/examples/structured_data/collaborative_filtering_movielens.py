"""A model as a class, of two tables and their product."""

from harness import data, fit, keras, report, start

layers, ops = keras.layers, keras.ops


class RecommenderNet(keras.Model):
    def __init__(self, num_users, num_movies, embedding_size, **kwargs):
        super().__init__(**kwargs)
        options = {"embeddings_initializer": "he_normal",
                   "embeddings_regularizer": keras.regularizers.l2(1e-6)}
        self.user_embedding = layers.Embedding(num_users, embedding_size, **options)
        self.user_bias = layers.Embedding(num_users, 1)
        self.movie_embedding = layers.Embedding(num_movies, embedding_size, **options)
        self.movie_bias = layers.Embedding(num_movies, 1)

    def call(self, inputs):
        user, movie = self.user_embedding(inputs[:, 0]), self.movie_embedding(inputs[:, 1])
        dot = ops.tensordot(user, movie, 2)
        return ops.nn.sigmoid(dot + self.user_bias(inputs[:, 0]) + self.movie_bias(inputs[:, 1]))


x = data(16, 2, classes=20)
model = RecommenderNet(20, 20, 6)
model(x)
start(model)
model.compile(loss=keras.losses.BinaryCrossentropy(),
              optimizer=keras.optimizers.Adam(learning_rate=0.001))
logs = fit(model, x, abs(data(16)) % 1)
report(ratings=ops.convert_to_numpy(model.predict(x, verbose=0)), **logs)
