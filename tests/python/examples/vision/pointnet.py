"""Clouds of points, with a regularizer of one's own and a matrix that a network predicts."""

import numpy as np
from harness import data, fit, keras, report, start

layers, ops = keras.layers, keras.ops


class OrthogonalRegularizer(keras.regularizers.Regularizer):
    def __init__(self, num_features, l2reg=0.001):
        self.num_features, self.l2reg = num_features, l2reg
        self.eye = ops.eye(num_features)

    def __call__(self, x):
        x = ops.reshape(x, (-1, self.num_features, self.num_features))
        xxt = ops.tensordot(x, x, axes=(2, 2))
        xxt = ops.reshape(xxt, (-1, self.num_features, self.num_features))
        return ops.sum(self.l2reg * ops.square(xxt - self.eye))


def conv_bn(x, filters):
    x = layers.Conv1D(filters, kernel_size=1, padding="valid")(x)
    return layers.Activation("relu")(layers.BatchNormalization(momentum=0.0)(x))


def dense_bn(x, filters):
    x = layers.BatchNormalization(momentum=0.0)(layers.Dense(filters)(x))
    return layers.Activation("relu")(x)


def tnet(inputs, num_features):
    bias = keras.initializers.Constant(np.eye(num_features).flatten())
    x = layers.GlobalMaxPooling1D()(conv_bn(inputs, 8))
    x = dense_bn(x, 8)
    x = layers.Dense(num_features * num_features, kernel_initializer="zeros",
                     bias_initializer=bias,
                     activity_regularizer=OrthogonalRegularizer(num_features))(x)
    return layers.Dot(axes=(2, 1))([inputs, layers.Reshape((num_features, num_features))(x)])


inputs = keras.Input(shape=(32, 3))
x = conv_bn(tnet(inputs, 3), 8)
x = layers.GlobalMaxPooling1D()(conv_bn(tnet(x, 8), 16))
x = layers.Dropout(0.0)(dense_bn(x, 16))
model = start(keras.Model(inputs=inputs, outputs=layers.Dense(4, activation="softmax")(x)))
model.compile(loss="sparse_categorical_crossentropy",
              optimizer=keras.optimizers.Adam(learning_rate=0.001),
              metrics=["sparse_categorical_accuracy"])
report(**fit(model, data(8, 32, 3), data(8, classes=4)))
