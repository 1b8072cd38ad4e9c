"""Convolution on a graph by segments of its edges, then an LSTM, in two own layers."""

import numpy as np
from harness import data, fit, keras, report, start

layers, ops = keras.layers, keras.ops
NODES, STEPS, FORECAST = 5, 6, 2


class GraphInfo:
    def __init__(self, edges, num_nodes):
        self.edges, self.num_nodes = edges, num_nodes


class GraphConv(layers.Layer):
    def __init__(self, in_feat, out_feat, graph_info, aggregation_type="mean",
                 combination_type="concat", activation=None, **kwargs):
        super().__init__(**kwargs)
        self.in_feat, self.out_feat, self.graph_info = in_feat, out_feat, graph_info
        self.aggregation_type, self.combination_type = aggregation_type, combination_type
        self.weight = self.add_weight(initializer=keras.initializers.GlorotUniform(),
                                      shape=(in_feat, out_feat), dtype="float32", trainable=True)
        self.activation = layers.Activation(activation)

    def aggregate(self, neighbour_representations):
        aggregation_func = {"sum": ops.segment_sum, "max": ops.segment_max}.get(
            self.aggregation_type)
        return aggregation_func(neighbour_representations, self.graph_info.edges[0],
                                num_segments=self.graph_info.num_nodes)

    def compute_nodes_representation(self, features):
        return ops.matmul(features, self.weight)

    def compute_aggregated_messages(self, features):
        neighbour_representations = ops.take(features, self.graph_info.edges[1], axis=0)
        aggregated_messages = self.aggregate(neighbour_representations)
        return ops.matmul(aggregated_messages, self.weight)

    def update(self, nodes_representation, aggregated_messages):
        if self.combination_type == "concat":
            h = ops.concatenate([nodes_representation, aggregated_messages], axis=-1)
        elif self.combination_type == "add":
            h = nodes_representation + aggregated_messages
        else:
            raise ValueError(f"Invalid combination type: {self.combination_type}.")
        return self.activation(h)

    def call(self, features):
        nodes_representation = self.compute_nodes_representation(features)
        aggregated_messages = self.compute_aggregated_messages(features)
        return self.update(nodes_representation, aggregated_messages)


class LSTMGC(layers.Layer):
    def __init__(self, in_feat, out_feat, lstm_units, input_seq_len, output_seq_len, graph_info,
                 graph_conv_params=None, **kwargs):
        super().__init__(**kwargs)
        if graph_conv_params is None:
            graph_conv_params = {"aggregation_type": "sum", "combination_type": "concat",
                                 "activation": None}
        self.graph_conv = GraphConv(in_feat, out_feat, graph_info, **graph_conv_params)
        self.lstm = layers.LSTM(lstm_units, activation="relu")
        self.dense = layers.Dense(output_seq_len)
        self.input_seq_len, self.output_seq_len = input_seq_len, output_seq_len

    def call(self, inputs):
        inputs = ops.transpose(inputs, [2, 0, 1, 3])
        gcn_out = self.graph_conv(inputs)
        shape = ops.shape(gcn_out)
        num_nodes, batch_size, input_seq_len, out_feat = shape[0], shape[1], shape[2], shape[3]
        gcn_out = ops.reshape(gcn_out, (batch_size * num_nodes, input_seq_len, out_feat))
        lstm_out = self.lstm(gcn_out)
        dense_output = self.dense(lstm_out)
        output = ops.reshape(dense_output, (num_nodes, batch_size, self.output_seq_len))
        return ops.transpose(output, [1, 2, 0])


edges = (np.array([0, 0, 1, 2, 2, 3, 4], "int32"), np.array([1, 2, 0, 3, 4, 2, 0], "int32"))
st_gcn = LSTMGC(1, 4, 6, STEPS, FORECAST, GraphInfo(edges, NODES),
                {"aggregation_type": "sum", "combination_type": "concat", "activation": "relu"})
inputs = layers.Input((STEPS, NODES, 1))
model = start(keras.models.Model(inputs, st_gcn(inputs)))
model.compile(optimizer=keras.optimizers.RMSprop(learning_rate=0.0002),
              loss=keras.losses.MeanSquaredError())
x = data(4, STEPS, NODES, 1)
logs = fit(model, x, data(4, FORECAST, NODES))
report(predicted=model.predict(x, verbose=0), **logs)
