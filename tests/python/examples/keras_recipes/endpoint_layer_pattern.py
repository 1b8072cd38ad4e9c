"""Layers that compute the loss themselves: of labels and weights that are inputs, and a model that
returns predictions alone when it has no labels."""

from harness import data, keras, report, start

layers, ops = keras.layers, keras.ops


class LogisticEndpoint(layers.Layer):
    def __init__(self, name=None):
        super().__init__(name=name)
        self.loss_fn = keras.losses.BinaryCrossentropy(from_logits=True)

    def call(self, logits, targets=None, sample_weight=None):
        if targets is not None:
            loss = self.loss_fn(targets, logits, sample_weight)
            self.add_loss(loss)
        return ops.nn.softmax(logits)


inputs = keras.Input((6,), name="inputs")
logits = layers.Dense(2)(inputs)
targets = keras.Input((2,), name="targets")
sample_weight = keras.Input((), name="sample_weight")
preds = LogisticEndpoint()(logits, targets, sample_weight)
model = start(keras.Model([inputs, targets, sample_weight], preds))
x = {"inputs": data(8, 6), "targets": abs(data(8, 2)) % 1, "sample_weight": abs(data(8))}
model.compile(keras.optimizers.Adam(1e-2))
history = model.fit(x, epochs=3, batch_size=8, shuffle=False, verbose=0).history
inference = keras.Model(inputs, LogisticEndpoint()(logits))
report(predicted=inference.predict(x["inputs"], verbose=0), **history)
