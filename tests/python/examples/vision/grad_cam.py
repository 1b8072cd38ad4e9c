"""Gradients of a class with respect to the activations of a layer, which are an output, too."""

import numpy as np
from harness import GradientTape, data, keras, report, start

layers, ops = keras.layers, keras.ops
inputs = keras.Input((12, 12, 3))
x = layers.SeparableConv2D(6, 3, padding="same", name="last_conv")(inputs)
x = layers.Activation("relu", name="last_conv_act")(x)
outputs = layers.Dense(4, activation="softmax", name="predictions")(
    layers.GlobalAveragePooling2D()(x))
model = start(keras.Model(inputs, outputs))


def make_gradcam_heatmap(img_array, model, last_conv_layer_name, pred_index=None):
    grad_model = keras.models.Model(
        model.inputs, [model.get_layer(last_conv_layer_name).output, model.output])
    with GradientTape() as tape:
        last_conv_layer_output, preds = grad_model(img_array)
        if pred_index is None:
            pred_index = int(ops.argmax(preds[0]))
        class_channel = preds[:, pred_index]
    grads = tape.gradient(class_channel, last_conv_layer_output)
    pooled_grads = ops.mean(grads, axis=(0, 1, 2))
    last_conv_layer_output = last_conv_layer_output[0]
    heatmap = last_conv_layer_output @ pooled_grads[..., np.newaxis]
    heatmap = ops.squeeze(heatmap)
    heatmap = ops.maximum(heatmap, 0) / ops.max(heatmap)
    return ops.convert_to_numpy(heatmap)


img_array = keras.applications.xception.preprocess_input(100 + 50 * data(1, 12, 12, 3))
model.layers[-1].activation = None
preds = model.predict(img_array, verbose=0)
report(preds=preds, heatmap=make_gradcam_heatmap(img_array, model, "last_conv_act"),
       second=make_gradcam_heatmap(img_array, model, "last_conv_act", pred_index=1))
