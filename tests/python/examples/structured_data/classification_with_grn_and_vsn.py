"""Gated residual networks that select variables."""

from harness import data, fit, keras, report, start

layers, ops = keras.layers, keras.ops


class GatedLinearUnit(layers.Layer):
    def __init__(self, units):
        super().__init__()
        self.linear = layers.Dense(units)
        self.sigmoid = layers.Dense(units, activation="sigmoid")

    def call(self, inputs):
        return self.linear(inputs) * self.sigmoid(inputs)


class GatedResidualNetwork(layers.Layer):
    def __init__(self, units, dropout_rate):
        super().__init__()
        self.units = units
        self.elu_dense = layers.Dense(units, activation="elu")
        self.linear_dense = layers.Dense(units)
        self.dropout = layers.Dropout(dropout_rate)
        self.gated_linear_unit = GatedLinearUnit(units)
        self.layer_norm, self.project = layers.LayerNormalization(), layers.Dense(units)

    def call(self, inputs):
        x = self.dropout(self.linear_dense(self.elu_dense(inputs)))
        if inputs.shape[-1] != self.units:
            inputs = self.project(inputs)
        return self.layer_norm(inputs + self.gated_linear_unit(x))


class VariableSelection(layers.Layer):
    def __init__(self, num_features, units, dropout_rate):
        super().__init__()
        self.units = units
        self.grns = [GatedResidualNetwork(units, dropout_rate) for _ in range(num_features)]
        self.grn_concat = GatedResidualNetwork(units, dropout_rate)
        self.softmax = layers.Dense(units=num_features, activation="softmax")

    def call(self, inputs):
        concat_inputs = []
        for name in inputs:
            concat_inputs.append(inputs[name])
        v = layers.concatenate(concat_inputs)
        v = ops.expand_dims(self.softmax(self.grn_concat(v)), axis=-1)
        x = [self.grns[i](each) for i, each in enumerate(concat_inputs)]
        x = ops.stack(x, axis=1)
        return ops.squeeze(ops.matmul(ops.transpose(v, axes=[0, 2, 1]), x), axis=1)


names = ["age", "job", "pay"]
inputs = {name: keras.Input((4,), name=name) for name in names}
features = VariableSelection(3, 6, 0.0)(inputs)
model = start(keras.Model(inputs=inputs, outputs=layers.Dense(1, activation="sigmoid")(features)))
model.compile(optimizer=keras.optimizers.Adam(), loss=keras.losses.BinaryCrossentropy(),
              metrics=[keras.metrics.BinaryAccuracy(name="accuracy")])
report(**fit(model, {name: data(8, 4, seed=i) for i, name in enumerate(names)},
             data(8, 1, classes=2)))
