"""A loss of one's own of labels and normed embeddings, then a classifier on the frozen encoder."""

from harness import data, fit, keras, report, start

layers, ops = keras.layers, keras.ops


def npairs_loss(y_true, y_pred):
    """As TensorFlow Addons' npairs, which the example has written out."""
    y_pred = ops.cast(y_pred, "float32")
    y_true = ops.cast(y_true, y_pred.dtype)
    y_true = ops.cast(ops.equal(y_true, ops.transpose(y_true)), y_pred.dtype)
    y_true /= ops.sum(y_true, 1, keepdims=True)
    return ops.mean(ops.categorical_crossentropy(y_true, y_pred, from_logits=True))


class SupervisedContrastiveLoss(keras.losses.Loss):
    def __init__(self, temperature=1, name=None):
        super().__init__(name=name)
        self.temperature = temperature

    def __call__(self, labels, feature_vectors, sample_weight=None):
        normalized = keras.utils.normalize(feature_vectors, axis=1, order=2)
        logits = ops.divide(ops.matmul(normalized, ops.transpose(normalized)), self.temperature)
        return npairs_loss(ops.reshape(labels, (-1, 1)), logits)


inputs = keras.Input(shape=(8, 8, 3))
x = layers.GlobalAveragePooling2D()(layers.Conv2D(8, 3, activation="relu")(inputs))
encoder = start(keras.Model(inputs, x, name="encoder"))
outputs = layers.Dense(6, activation="relu")(encoder(inputs))
projected = start(keras.Model(inputs, outputs, name="encoder_with_projection-head"))
projected.compile(optimizer=keras.optimizers.Adam(0.001), loss=SupervisedContrastiveLoss(0.05))
images, labels = data(8, 8, 8, 3), data(8, 1, classes=3)
first = fit(projected, images, labels)
for layer in encoder.layers:
    layer.trainable = False
features = layers.Dropout(0.0)(encoder(inputs))
classifier = start(keras.Model(inputs, layers.Dense(3, activation="softmax")(features)))
classifier.compile(optimizer=keras.optimizers.Adam(0.001),
                   loss=keras.losses.SparseCategoricalCrossentropy(),
                   metrics=[keras.metrics.SparseCategoricalAccuracy()])
report(contrastive=first["loss"], **fit(classifier, images, labels))
