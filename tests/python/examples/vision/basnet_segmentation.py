"""Masks at several depths and a refinement of the last one, in one model that is a subclass; a loss
of them all in compute_loss, with TensorFlow's structural similarity. It runs on TensorFlow."""

import tensorflow as tf
from harness import data, fit, keras, report, start

layers, ops = keras.layers, keras.ops
IMAGE_SIZE, FILTERS = 16, 4


def convolution_block(x, filters, dilation=1):
    x = layers.Conv2D(filters, (3, 3), padding="same", dilation_rate=dilation)(x)
    x = layers.BatchNormalization(momentum=0.0)(x)
    return layers.Activation("relu")(x)


def segmentation_head(x, final_size):
    x = layers.Conv2D(1, kernel_size=(3, 3), padding="same")(x)
    return x if final_size is None else layers.Resizing(*final_size)(x)


def basnet_predict(input_shape):
    x_input = layers.Input(input_shape)
    first = convolution_block(x_input, FILTERS)
    second = convolution_block(layers.MaxPool2D()(first), FILTERS)
    bridge = convolution_block(second, FILTERS, dilation=2)
    x = layers.Resizing(second.shape[1] * 2, second.shape[2] * 2)(bridge)
    x = convolution_block(layers.concatenate([first, x], axis=-1), FILTERS)
    return keras.models.Model(inputs=[x_input], outputs=[
        segmentation_head(block, input_shape[:2]) for block in (x, bridge)])


def basnet_rrm(base_model):
    x_input = base_model.output[0]
    x = convolution_block(layers.Conv2D(FILTERS, (3, 3), padding="same")(x_input), FILTERS)
    return keras.models.Model(inputs=base_model.inputs[0], outputs=layers.Add()(
        [x_input, segmentation_head(x, None)]))


class BASNet(keras.Model):
    def __init__(self, input_shape):
        predict_model = basnet_predict(input_shape)
        refine_model = basnet_rrm(predict_model)
        output = refine_model.outputs
        output.extend(predict_model.output)
        output = [layers.Activation("sigmoid")(x) for x in output]
        super().__init__(inputs=predict_model.inputs[0], outputs=output)
        self.smooth = 1.0e-9
        self.cross_entropy_loss = keras.losses.BinaryCrossentropy()
        self.ssim_value = tf.image.ssim
        self.iou_value = self.calculate_iou

    def calculate_iou(self, y_true, y_pred):
        intersection = ops.sum(ops.abs(y_true * y_pred), axis=[1, 2, 3])
        union = ops.sum(y_true, [1, 2, 3]) + ops.sum(y_pred, [1, 2, 3]) - intersection
        return ops.mean((intersection + self.smooth) / (union + self.smooth), axis=0)

    def compute_loss(self, x, y_true, y_pred, sample_weight=None, training=False):
        total = 0.0
        for y_pred_i in y_pred:
            ssim_value = self.ssim_value(y_true, y_pred_i, max_val=1)
            total += (self.cross_entropy_loss(y_true, y_pred_i) +
                      ops.mean(1 - ssim_value + self.smooth, axis=0) +
                      1 - self.iou_value(y_true, y_pred_i))
        return total


model = start(BASNet(input_shape=[IMAGE_SIZE, IMAGE_SIZE, 3]))
model.compile(optimizer=keras.optimizers.Adam(learning_rate=1e-3, epsilon=1e-8))
images = abs(data(3, IMAGE_SIZE, IMAGE_SIZE, 3)) % 1
masks = (data(3, IMAGE_SIZE, IMAGE_SIZE, 1, seed=1) > 0).astype("float32")
logs = fit(model, images, masks)
report(refined=model.predict(images, verbose=0)[0], **logs)
