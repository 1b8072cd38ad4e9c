"""A layer of a graph with three networks, whose nodes are taken by index, within a subclassed model
that holds the graph."""

import numpy as np
from harness import data, fit, keras, report, start

layers, ops = keras.layers, keras.ops
NODES, EDGES, FEATURES, CLASSES = 8, 16, 5, 3


def create_ffn(hidden_units, dropout_rate, name=None):
    fnn_layers = []
    for units in hidden_units:
        fnn_layers.append(layers.BatchNormalization())
        fnn_layers.append(layers.Dropout(dropout_rate))
        fnn_layers.append(layers.Dense(units, activation="gelu"))
    return keras.Sequential(fnn_layers, name=name)


class GraphConvLayer(layers.Layer):
    def __init__(self, hidden_units, dropout_rate=0.2, aggregation_type="mean",
                 combination_type="concat", normalize=False, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.aggregation_type, self.combination_type = aggregation_type, combination_type
        self.normalize = normalize
        self.ffn_prepare = create_ffn(hidden_units, dropout_rate)
        if self.combination_type == "gru":
            self.update_fn = layers.GRU(units=hidden_units, activation="tanh",
                                        recurrent_activation="sigmoid", dropout=dropout_rate,
                                        return_state=True, recurrent_dropout=dropout_rate)
        else:
            self.update_fn = create_ffn(hidden_units, dropout_rate)

    def prepare(self, node_repesentations, weights=None):
        messages = self.ffn_prepare(node_repesentations)
        if weights is not None:
            messages = messages * ops.expand_dims(weights, -1)
        return messages

    def aggregate(self, node_indices, neighbour_messages, node_repesentations):
        num_nodes = node_repesentations.shape[0]
        return ops.segment_sum(neighbour_messages, node_indices, num_segments=num_nodes)

    def update(self, node_repesentations, aggregated_messages):
        if self.combination_type == "concat":
            h = ops.concatenate([node_repesentations, aggregated_messages], axis=1)
        else:
            h = node_repesentations + aggregated_messages
        node_embeddings = self.update_fn(h)
        if self.normalize:
            node_embeddings = ops.normalize(node_embeddings, axis=-1)
        return node_embeddings

    def call(self, inputs):
        node_repesentations, edges, edge_weights = inputs
        node_indices, neighbour_indices = edges[0], edges[1]
        neighbour_repesentations = ops.take(node_repesentations, neighbour_indices, axis=0)
        neighbour_messages = self.prepare(neighbour_repesentations, edge_weights)
        aggregated_messages = self.aggregate(node_indices, neighbour_messages,
                                             node_repesentations)
        return self.update(node_repesentations, aggregated_messages)


class GNNNodeClassifier(keras.Model):
    def __init__(self, graph_info, num_classes, hidden_units, dropout_rate=0.2, *args, **kwargs):
        super().__init__(*args, **kwargs)
        node_features, edges, edge_weights = graph_info
        self.node_features, self.edges, self.edge_weights = node_features, edges, edge_weights
        if self.edge_weights is None:
            self.edge_weights = ops.ones(shape=edges.shape[1])
        self.edge_weights = self.edge_weights / ops.sum(self.edge_weights)
        self.preprocess = create_ffn(hidden_units, dropout_rate, name="preprocess")
        self.conv1 = GraphConvLayer(hidden_units, dropout_rate, "sum", "concat", False,
                                    name="graph_conv1")
        self.conv2 = GraphConvLayer(hidden_units, dropout_rate, "sum", "add", True,
                                    name="graph_conv2")
        self.postprocess = create_ffn(hidden_units, dropout_rate, name="postprocess")
        self.compute_logits = layers.Dense(units=num_classes, name="logits")

    def call(self, input_node_indices):
        x = self.preprocess(self.node_features)
        x = self.conv1((x, self.edges, self.edge_weights)) + x
        x = self.conv2((x, self.edges, self.edge_weights)) + x
        x = self.postprocess(x)
        node_embeddings = ops.take(x, input_node_indices, axis=0)
        return self.compute_logits(node_embeddings)


graph_info = (ops.convert_to_tensor(data(NODES, FEATURES)),
              np.stack([data(EDGES, classes=NODES), data(EDGES, classes=NODES, seed=1)]), None)
gnn_model = GNNNodeClassifier(graph_info, CLASSES, [6, 6], 0.0, name="gnn_model")
indices = np.array([1, 4, 6, 2], "int32")
gnn_model(indices)
start(gnn_model)
gnn_model.compile(optimizer=keras.optimizers.Adam(learning_rate=0.01),
                  loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
                  metrics=[keras.metrics.SparseCategoricalAccuracy(name="acc")])
logs = fit(gnn_model, indices, data(4, classes=CLASSES))
report(logits=gnn_model.predict(indices, verbose=0), **logs)
