"""Programs whose classes override what layers of Keras compute, for Keras and for Cornu alike, as
those of own_programs.py."""

from own_programs import numbers, run as run_of


def dense_call(keras):
    """A call around the library's, and another class around that one."""
    layers, ops = keras.layers, keras.ops

    class Scaled(layers.Dense):
        def __init__(self, units, by=2.0, **kwargs):
            super().__init__(units, **kwargs)
            self.by = by

        def call(self, inputs):
            return super().call(inputs) * self.by

        def get_config(self):
            return {**super().get_config(), "by": self.by}

    class Shifted(Scaled):
        def call(self, inputs):
            return ops.tanh(super().call(inputs)) + 0.25

    x = keras.Input((3,))
    y = Shifted(2, by=0.5)(Scaled(4, by=3.0, activation="relu")(x))
    return keras.Model(x, y), numbers((10, 3), 1), numbers((10, 2), 2)


def dense_build(keras):
    """Weights beside the library's, which its own call reads."""
    layers = keras.layers

    class Gated(layers.Dense):
        def build(self, input_shape):
            super().build(input_shape)
            self.gate = self.add_weight(shape=(self.units,), name="gate", initializer="ones")

        def call(self, inputs):
            return super().call(inputs) * self.gate

    x = keras.Input((3,))
    return keras.Model(x, Gated(2)(Gated(4)(x))), numbers((10, 3), 3), numbers((10, 2), 4)


def dense_read(keras):
    """A call that reads the library's weights, and does not call it."""
    layers, ops = keras.layers, keras.ops

    class Standard(layers.Dense):
        def call(self, inputs):
            kernel = self.kernel / (1e-6 + ops.sqrt(ops.mean(ops.square(self.kernel), axis=0)))
            return self.activation(ops.matmul(inputs, kernel) + self.bias)

    x = keras.Input((3,))
    y = Standard(2)(Standard(4, activation="tanh")(x))
    return keras.Model(x, y), numbers((10, 3), 5), numbers((10, 2), 6)


def convolution(keras):
    """The convolution of a kernel that is standardized."""
    layers, ops = keras.layers, keras.ops

    class Standard(layers.Conv2D):
        def convolution_op(self, inputs, kernel):
            mean = ops.mean(kernel, axis=(0, 1, 2), keepdims=True)
            return super().convolution_op(inputs, (kernel - mean) * 2.0)

    x = keras.Input((6, 5, 2))
    y = Standard(3, 3, padding="same", activation="relu")(x)
    y = layers.Flatten()(Standard(2, (2, 3), strides=2, use_bias=False)(y))
    return keras.Model(x, y), numbers((8, 6, 5, 2), 7), numbers((8, 12), 8)


def attention(keras):
    """Attention whose scores and results are changed."""
    layers, ops = keras.layers, keras.ops

    class Near(layers.MultiHeadAttention):
        def _compute_attention_mask(self, query, value, **kwargs):
            mask = super()._compute_attention_mask(query, value, **kwargs)
            near = abs(ops.expand_dims(ops.arange(4), 1) - ops.arange(4)) < 2
            return ops.logical_and(mask, ops.expand_dims(near, 0))

        def _masked_softmax(self, attention_scores, attention_mask=None):
            return super()._masked_softmax(attention_scores * 1.5, attention_mask)

    class Offset(layers.MultiHeadAttention):
        def _compute_attention(self, query, key, value, attention_mask=None, *args):
            made, scores = super()._compute_attention(query, ops.tanh(key), value, attention_mask,
                                                      *args)
            return made + 0.5 * query, scores

    class Additive(layers.Attention):
        def _calculate_scores(self, query, key):
            return super()._calculate_scores(query, key) + 0.25 * ops.sum(query, -1, keepdims=True)

        def _apply_scores(self, scores, value, scores_mask=None, training=False):
            return super()._apply_scores(ops.tanh(scores), value, scores_mask, training)

    class Joined(layers.MultiHeadAttention):
        def call(self, query, value, key=None, **kwargs):
            return super().call(query, value, key, **kwargs) + self._value_dense(value)[:, :, 0, :1]

    x = keras.Input((4, 6))
    y = Additive(use_scale=True)([x, x], use_causal_mask=True)
    y, scores = Near(2, 3)(y, x, attention_mask=ops.ones((1, 4, 4), dtype="bool"),
                           return_attention_scores=True)
    y = y + ops.mean(ops.square(scores))
    y = Offset(2, 3)(y, x, use_causal_mask=True)
    y = Joined(2, 3)(y, x)
    return keras.Model(x, y), numbers((6, 4, 6), 9), numbers((6, 4, 6), 10)


def recurrent_cell(keras):
    layers = keras.layers

    class Residual(layers.LSTMCell):
        def call(self, inputs, states, training=False):
            made, states = super().call(inputs, states, training=training)
            return made + 0.5 * inputs, states

    class Slow(layers.GRUCell):
        def call(self, inputs, states, training=False):
            made, after = super().call(inputs, states, training=training)
            before = states[0] if isinstance(states, (list, tuple)) else states
            return 0.5 * (made + before), [0.5 * (made + before)]

    x = keras.Input((4, 3))
    y = layers.RNN(Residual(3), return_sequences=True)(x)
    y = layers.RNN(Slow(2))(y)
    return keras.Model(x, y), numbers((6, 4, 3), 11), numbers((6, 2), 12)


def recurrent_layer(keras):
    """Masks that layers make and take."""
    layers, ops = keras.layers, keras.ops

    class Tokens(layers.Embedding):
        def call(self, inputs):
            return super().call(inputs) * 2.0

    class Memory(layers.LSTM):
        def call(self, sequences, initial_state=None, mask=None, training=False):
            return super().call(sequences, initial_state=initial_state, mask=mask,
                                training=training) * 3.0

    x = keras.Input((4,), dtype="int32")
    y = Memory(3, return_sequences=True)(Tokens(5, 3, mask_zero=True)(x))
    y = layers.Dense(2)(Memory(3)(y))
    data = ops.convert_to_numpy(ops.cast(abs(numbers((6, 4), 13, 3)), "int32")) % 5
    return keras.Model(x, y), data, numbers((6, 2), 14)


def normalized(keras):
    """What differs in training."""
    layers = keras.layers

    class Residual(layers.BatchNormalization):
        def call(self, inputs, training=None):
            return super().call(inputs, training=training) + 0.5 * inputs

    x = keras.Input((3,))
    y = layers.Dense(2)(Residual(momentum=0.8)(layers.Dense(4)(x)))
    return keras.Model(x, y), numbers((12, 3), 15), numbers((12, 2), 16)


def wrapper(keras):
    layers = keras.layers

    class Residual(layers.Wrapper):
        def call(self, inputs):
            return inputs + self.layer(inputs)

        def compute_output_shape(self, input_shape):
            return input_shape

    class Steps(layers.TimeDistributed):
        def call(self, inputs, training=None, mask=None):
            return super().call(inputs, training=training, mask=mask) + 1.0

    x = keras.Input((4, 3))
    y = Steps(Residual(layers.Dense(3, activation="tanh")))(x)
    return keras.Model(x, y), numbers((6, 4, 3), 17), numbers((6, 4, 3), 18)


def sequential(keras):
    class Residual(keras.Sequential):
        def call(self, inputs, training=None, mask=None):
            return super().call(inputs, training=training) + inputs

    layers = keras.layers
    model = Residual([keras.Input((3,)), layers.Dense(4, activation="tanh"), layers.Dense(3)])
    return model, numbers((8, 3), 19), numbers((8, 3), 20)


def functional(keras):
    layers = keras.layers

    class Doubled(keras.Model):
        def __init__(self, units=2):
            x = keras.Input((3,))
            super().__init__(x, layers.Dense(units)(layers.Dense(4, activation="relu")(x)))
            self.by = 2.0

        def call(self, inputs, training=None, mask=None):
            return super().call(inputs, training=training) * self.by

    return Doubled(), numbers((8, 3), 21), numbers((8, 2), 22)


PROGRAMS = {each.__name__: each for each in (
    dense_call, dense_build, dense_read, convolution, attention, recurrent_cell, recurrent_layer,
    normalized, wrapper, sequential, functional)}


def run(keras, name):
    return run_of(keras, name, PROGRAMS)


# ---- Losses, metrics and optimizers ----

def metrics(keras):
    """Metrics that override what Keras' compute, or consist of such."""
    ops, metrics = keras.ops, keras.metrics

    class SparseIoU(metrics.MeanIoU):
        def update_state(self, y_true, y_pred, sample_weight=None):
            return super().update_state(y_true, ops.argmax(y_pred, axis=-1), sample_weight)

    class F1(metrics.Metric):
        def __init__(self, name="f1", **kwargs):
            super().__init__(name=name, **kwargs)
            self.precision, self.recall = metrics.Precision(), metrics.Recall()

        def update_state(self, y_true, y_pred, sample_weight=None):
            y_true = ops.cast(ops.squeeze(y_true, -1) == 1, "float32")
            for metric in (self.precision, self.recall):
                metric.update_state(y_true, y_pred[:, 1] * 1.5, sample_weight)

        def result(self):
            p, r = self.precision.result(), self.recall.result()
            return 2 * p * r / (p + r + 1e-7)

        def reset_state(self):
            self.precision.reset_state()
            self.recall.reset_state()

    class SparseF1(metrics.F1Score):
        """Whose states depend on the shapes that the library's gets."""

        def update_state(self, y_true, y_pred, sample_weight=None):
            labels = ops.one_hot(ops.cast(ops.squeeze(y_true, -1), "int32"), 3)
            super().update_state(labels, y_pred, sample_weight)

    class Half(metrics.SparseCategoricalAccuracy):
        def result(self):
            return super().result() * 0.5

    class Size(metrics.Mean):
        def update_state(self, y_true, y_pred, sample_weight=None):
            super().update_state(ops.square(y_pred), None)

    class ClassRecall(metrics.Recall):
        def __init__(self, number, **kwargs):
            super().__init__(**kwargs)
            self.number = number

        def update_state(self, y_true, y_pred, sample_weight=None):
            y_true = ops.cast(ops.equal(y_true, self.number), "float32")
            return super().update_state(y_true, y_pred[:, self.number:self.number + 1],
                                        sample_weight)

    def distance(y_true, y_pred, by=1.0):
        return ops.mean(ops.abs(ops.cast(y_true, "float32") - y_pred) * by, axis=-1)

    return [SparseIoU(3, name="iou"), F1(), SparseF1(average="macro", name="sparse_f1"),
            Half(name="half"), Size(name="size"), ClassRecall(1, name="recall_1", thresholds=0.3),
            metrics.MeanMetricWrapper(distance, name="wrapped", by=2.0)]


def losses(keras):
    """Losses that override what Keras' compute."""
    ops, losses = keras.ops, keras.losses

    class Scaled(losses.SparseCategoricalCrossentropy):
        def call(self, y_true, y_pred):
            return super().call(y_true, y_pred) * 3.0

    def distance(y_true, y_pred, by=1.0):
        return ops.mean(ops.square(y_true - y_pred) * by, axis=-1)

    # Keras has it, but exports no name.
    wrapper = getattr(losses, "LossFunctionWrapper", None) or \
        keras.src.losses.losses.LossFunctionWrapper
    return [Scaled(), wrapper(distance, by=2.0, name="distance"),
            wrapper(distance, reduction="sum", name="total")]


def optimizers(keras):
    """Optimizers of the program's own, and such that override what Keras' do."""
    ops, optimizers = keras.ops, keras.optimizers

    class Momentum(optimizers.Optimizer):
        def __init__(self, learning_rate=0.01, momentum=0.9, **kwargs):
            super().__init__(learning_rate=learning_rate, **kwargs)
            self.momentum = momentum

        def build(self, variables):
            if self.built:      # as Keras' do
                return
            super().build(variables)
            self.moments = [self.add_variable_from_reference(v, name="moment") for v in variables]

        def update_step(self, gradient, variable, learning_rate):
            moment = self.moments[self._get_variable_index(variable)]
            self.assign(moment, ops.subtract(ops.multiply(moment, self.momentum),
                                             ops.multiply(gradient, learning_rate)))
            self.assign_add(variable, moment)

    class Clipped(optimizers.Adam):
        def update_step(self, gradient, variable, learning_rate):
            super().update_step(ops.clip(gradient, -0.05, 0.05), variable, learning_rate)

    class Central(optimizers.Adam):
        def apply(self, grads, trainable_variables=None):
            return super().apply([g - ops.mean(g) for g in grads], trainable_variables)

    class Bounded(optimizers.SGD):
        def update_step(self, gradient, variable, learning_rate):
            super().update_step(gradient, variable, learning_rate)
            self.assign(variable, ops.clip(variable, -0.4, 0.4))

    decay = optimizers.schedules.ExponentialDecay(0.1, 2, 0.5)
    return [Momentum(0.05), Momentum(0.05, clipnorm=0.1, weight_decay=0.01),
            Momentum(decay, global_clipnorm=0.2), Momentum(0.05, clipvalue=0.02), Clipped(0.05),
            Central(0.05), Bounded(0.1, momentum=0.5)]


def fitted(keras, loss, weighted=False, rows=22, optimizer=None, **compiled):
    """The logs of two epochs, of which the last batch is smaller."""
    layers = keras.layers
    model = keras.Sequential([keras.Input((4,)), layers.Dense(3, activation="softmax")])
    model.set_weights([numbers(w.shape, 200 + i, 1.0) for i, w in enumerate(model.weights)])
    model.compile(optimizer or keras.optimizers.SGD(0.1), loss, **compiled)
    x, y = numbers((rows, 4), 201, 1.0), (abs(numbers((rows, 1), 202, 3.0)) % 3).astype("int32")
    weight = 1.0 + (abs(numbers((rows,), 203, 3.0)) % 2).astype("int32") if weighted else None
    made = model.fit(x, y, sample_weight=weight, epochs=2, batch_size=8, shuffle=False, verbose=0)
    return {key: [float(v) for v in values] for key, values in made.history.items()}


def parts(keras):
    """What the losses, metrics and optimizers above log."""
    loss = "sparse_categorical_crossentropy"
    made = {"metrics": fitted(keras, loss, metrics=metrics(keras)),
            "weighted": fitted(keras, loss, True, weighted_metrics=metrics(keras))}
    made.update(("loss %d" % i, fitted(keras, each)) for i, each in enumerate(losses(keras)))
    made.update(("optimizer %d" % i, fitted(keras, loss, optimizer=each, metrics=["accuracy"]))
                for i, each in enumerate(optimizers(keras)))
    return made
