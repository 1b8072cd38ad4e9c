"""A class for each point of a cloud of any length: transformations that learn to be orthogonal by a
regularizer of activities, global features tiled beside those of points, a schedule called."""

import numpy as np
from harness import data, fit, keras, report, start

layers = keras.layers
NUM_POINTS, NUM_CLASSES = 16, 3


def conv_block(x, filters, name):
    x = layers.Conv1D(filters, kernel_size=1, padding="valid", name=f"{name}_conv")(x)
    x = layers.BatchNormalization(momentum=0.0, name=f"{name}_batch_norm")(x)
    return layers.Activation("relu", name=f"{name}_relu")(x)


def mlp_block(x, filters, name):
    x = layers.Dense(filters, name=f"{name}_dense")(x)
    x = layers.BatchNormalization(momentum=0.0, name=f"{name}_batch_norm")(x)
    return layers.Activation("relu", name=f"{name}_relu")(x)


class OrthogonalRegularizer(keras.regularizers.Regularizer):
    def __init__(self, num_features, l2reg=0.001):
        self.num_features = num_features
        self.l2reg = l2reg
        self.identity = keras.ops.eye(num_features)

    def __call__(self, x):
        x = keras.ops.reshape(x, (-1, self.num_features, self.num_features))
        xxt = keras.ops.tensordot(x, x, axes=(2, 2))
        xxt = keras.ops.reshape(xxt, (-1, self.num_features, self.num_features))
        return keras.ops.sum(self.l2reg * keras.ops.square(xxt - self.identity))


def transformation_block(inputs, num_features, name):
    x = conv_block(inputs, filters=8, name=f"{name}_1")
    x = layers.GlobalMaxPooling1D()(x)
    x = mlp_block(x, filters=6, name=f"{name}_2")
    x = layers.Dense(num_features * num_features, kernel_initializer="zeros",
                     bias_initializer=keras.initializers.Constant(
                         np.eye(num_features).flatten()),
                     activity_regularizer=OrthogonalRegularizer(num_features),
                     name=f"{name}_final")(x)
    x = layers.Reshape((num_features, num_features))(x)
    return layers.Dot(axes=(2, 1), name=f"{name}_mm")([inputs, x])


input_points = keras.Input(shape=(None, 3))
transformed_inputs = transformation_block(input_points, 3, "input_transformation")
features = conv_block(transformed_inputs, filters=6, name="features")
transformed = transformation_block(features, 6, "transformed_features")
wide = conv_block(transformed, filters=10, name="pre_maxpool_block")
global_features = layers.MaxPool1D(pool_size=NUM_POINTS, name="global_features")(wide)
global_features = keras.ops.tile(global_features, [1, NUM_POINTS, 1])
x = layers.Concatenate(name="segmentation_input")([features, transformed, wide, global_features])
x = conv_block(x, filters=8, name="segmentation_features")
outputs = layers.Conv1D(NUM_CLASSES, kernel_size=1, activation="softmax",
                        name="segmentation_head")(x)
model = start(keras.Model(input_points, outputs))

lr_schedule = keras.optimizers.schedules.ExponentialDecay(
    initial_learning_rate=0.003, decay_steps=2, decay_rate=0.5, staircase=True)
rates = [float(lr_schedule(step)) for step in range(5)]
model.compile(optimizer=keras.optimizers.Adam(learning_rate=lr_schedule),
              loss=keras.losses.CategoricalCrossentropy(), metrics=["accuracy"])
points = data(5, NUM_POINTS, 3)
logs = fit(model, points, keras.utils.to_categorical(data(5, NUM_POINTS, classes=3), 3))
report(rates=rates, predicted=model.predict(points, verbose=0), **logs)
