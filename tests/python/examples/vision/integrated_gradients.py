"""Vision/integrated_gradients and vision/grad_cam, generative/deep_dream: gradients with respect to
images and activations."""

import numpy as np
from harness import GradientTape, data, keras, report, start

layers, ops = keras.layers, keras.ops
inputs = keras.Input((10, 10, 3))
x = layers.Conv2D(6, 3, activation="relu", name="last_conv")(inputs)
outputs = layers.Dense(4)(layers.GlobalAveragePooling2D()(x))
model = start(keras.Model(inputs, outputs))


def get_gradients(images, top):
    images = ops.cast(images, "float32")
    with GradientTape() as tape:
        tape.watch(images)
        top_class = model(images)[:, top]
    return tape.gradient(top_class, images)


image, steps = data(10, 10, 3), 6
path = np.stack([image * (i / steps) for i in range(steps + 1)])
grads = np.asarray(get_gradients(path, 2))
integrated = np.mean((grads[:-1] + grads[1:]) / 2.0, axis=0) * image

grad_model = keras.models.Model(model.inputs, [model.get_layer("last_conv").output, model.output])
batch = ops.convert_to_tensor(image[None])
with GradientTape() as tape:
    last_conv_layer_output, preds = grad_model(batch)
    tape.watch(last_conv_layer_output)
    class_channel = preds[:, 1]
cam = None
dream = image[None]
for _ in range(3):
    g = np.asarray(get_gradients(dream, 0))
    dream = dream + 0.1 * g / max(np.mean(np.abs(g)), 1e-6)
report(integrated=integrated, dream=dream, features=last_conv_layer_output, preds=preds)
