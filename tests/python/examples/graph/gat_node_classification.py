"""Attention over the edges of a graph, with segment sums; a model with steps of its own, for
indices of nodes. Its segments are those of Keras on TensorFlow, whose number is found by itself."""

import numpy as np
from harness import data, keras, report

layers, ops = keras.layers, keras.ops
NODES, EDGES = 8, 20


class GraphAttention(layers.Layer):
    def __init__(self, units, **kwargs):
        super().__init__(**kwargs)
        self.units = units

    def build(self, input_shape):
        self.kernel = self.add_weight(shape=(input_shape[0][-1], self.units), trainable=True,
                                      initializer="glorot_uniform", name="kernel")
        self.kernel_attention = self.add_weight(shape=(self.units * 2, 1), trainable=True,
                                                initializer="glorot_uniform",
                                                name="kernel_attention")
        self.built = True

    def call(self, inputs):
        node_states, edges = inputs
        transformed = ops.matmul(node_states, self.kernel)
        expanded = ops.take(transformed, edges, axis=0)
        expanded = ops.reshape(expanded, (ops.shape(edges)[0], -1))
        scores = ops.leaky_relu(ops.matmul(expanded, self.kernel_attention))
        scores = ops.exp(ops.clip(ops.squeeze(scores, -1), -2, 2))
        sums = ops.segment_sum(scores, edges[:, 0], num_segments=NODES)
        normed = scores / ops.take(sums, edges[:, 0], axis=0)
        neighbors = ops.take(transformed, edges[:, 1], axis=0)
        return ops.segment_sum(neighbors * normed[:, None], edges[:, 0], num_segments=NODES)


class MultiHeadGraphAttention(layers.Layer):
    def __init__(self, units, num_heads=2, **kwargs):
        super().__init__(**kwargs)
        self.attention_layers = [GraphAttention(units) for _ in range(num_heads)]

    def call(self, inputs):
        features, edges = inputs
        outputs = [layer([features, edges]) for layer in self.attention_layers]
        return ops.relu(ops.concatenate(outputs, axis=-1))


class GraphAttentionNetwork(keras.Model):
    def __init__(self, node_states, edges, **kwargs):
        super().__init__(**kwargs)
        self.node_states, self.edges = node_states, edges
        self.preprocess = layers.Dense(8, activation="relu")
        self.attention = MultiHeadGraphAttention(4, 2)
        self.output_layer = layers.Dense(3)

    def call(self, indices):
        x = self.preprocess(self.node_states)
        x = self.attention([x, self.edges]) + x
        return ops.take(self.output_layer(x), indices, axis=0)


edges = np.sort(data(EDGES, 2, classes=NODES), axis=0)
edges[:NODES, 0] = np.arange(NODES)
edges = edges[np.argsort(edges[:, 0], kind="stable")]
model = GraphAttentionNetwork(data(NODES, 5), edges.astype("int32"))
indices, y = np.arange(6).astype("int32"), data(6, classes=3)
model(indices)
model.set_weights([np.random.default_rng(i).standard_normal(w.shape).astype("float32") * 0.3
                   for i, w in enumerate(model.weights)])
model.compile(loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
              optimizer=keras.optimizers.SGD(0.1), metrics=["accuracy"])
history = model.fit(indices, y, batch_size=6, epochs=3, shuffle=False, verbose=0).history
report(out=model(indices), **history)
