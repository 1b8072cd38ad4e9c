"""keras.applications by their names. The numbers of weights are Keras 3.15.1's."""

import os
import tempfile
import unittest

import numpy as np

import cornu

# Without the classes' layer: weights, and the last layer.
NETWORKS = {"VGG16": (14714688, "block5_pool"), "ResNet50": (23587712, "conv5_block3_out"),
            "ResNet50V2": (23564800, "post_relu"), "MobileNet": (3228864, "conv_pw_13_relu"),
            "MobileNetV2": (2257984, "out_relu"), "DenseNet121": (7037504, "relu"),
            "Xception": (20861480, "block14_sepconv2_act"), "InceptionV3": (21802784, "mixed10"),
            "EfficientNetB0": (4049571, "top_activation")}


class Applications(unittest.TestCase):
    def test_weights_and_names(self):
        for name, (count, last) in NETWORKS.items():
            with self.subTest(name):
                model = getattr(cornu.applications, name)(
                    weights=None, include_top=False,
                    input_shape=(75, 75, 3) if name in ("Xception", "InceptionV3")
                    else (32, 32, 3))
                self.assertEqual(model.count_params(), count)
                self.assertEqual(model.layers[-1].name, last)
                self.assertEqual(model.name, {"MobileNet": "mobilenet_1.00_32",
                                              "MobileNetV2": "mobilenetv2_1.00_32",
                                              "InceptionV3": "inception_v3"}.get(
                                                  name, name.lower()))

    def test_on_a_tensor_with_weights_of_a_file(self):
        x = np.random.default_rng(0).uniform(0, 255, (2, 32, 32, 3)).astype(np.float32)
        net = cornu.applications.MobileNetV2((32, 32, 3), 0.35, weights=None, classes=7)
        self.assertEqual(net.output_shape, (None, 7))
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "net.safetensors")
            net.save_weights(path)
            again = cornu.applications.MobileNetV2((32, 32, 3), 0.35, weights=path, classes=7)
        np.testing.assert_array_equal(again.predict(x, verbose=0), net.predict(x, verbose=0))
        # A model on what was made of an input begins at that.
        inputs = cornu.Input((32, 32, 3))
        before = cornu.layers.Rescaling(1 / 127.5, offset=-1)(inputs)
        base = cornu.applications.MobileNet(input_tensor=before, weights=None, include_top=False,
                                            pooling="avg", alpha=0.25)
        base.trainable = False
        model = cornu.Model(inputs, cornu.layers.Dense(2)(base(inputs)))
        self.assertEqual(model.predict(x, verbose=0).shape, (2, 2))
        self.assertEqual(len(model.trainable_weights), 2)

    def test_preprocessing(self):
        x = np.array([[[[0, 127.5, 255]]]], np.float32)
        apply = cornu.applications
        np.testing.assert_allclose(apply.mobilenet.preprocess_input(x)[0, 0, 0], [-1, 0, 1])
        np.testing.assert_allclose(apply.vgg16.preprocess_input(x)[0, 0, 0],
                                   [255 - 103.939, 127.5 - 116.779, -123.68], rtol=1e-6)
        np.testing.assert_allclose(apply.densenet.preprocess_input(x)[0, 0, 0],
                                   [-0.485 / 0.229, (0.5 - 0.456) / 0.224, (1 - 0.406) / 0.225],
                                   rtol=1e-6)
        for network in (apply.vgg19, apply.mobilenet, apply.densenet):      # recorded, of a step
            np.testing.assert_allclose(cornu.function(network.preprocess_input)(x),
                                       network.preprocess_input(x), rtol=1e-5)
        self.assertIs(apply.efficientnet.preprocess_input(x), x)

    def test_errors(self):
        apply = cornu.applications
        for text, function in (
                ("weights is 'none', expected None, 'imagenet' or the path",
                 lambda: apply.VGG16(weights="none")),
                ("classes is 5 with the weights of ImageNet", lambda: apply.VGG16(classes=5)),
                ("input_shape is .* of at least 71 pixels", lambda: apply.Xception(
                    weights=None, input_shape=(32, 32, 3))),
                (r"the shape is \(2, 5\), expected \(N, 1000\)",
                 lambda: apply.resnet50.decode_predictions(np.zeros((2, 5))))):
            with self.assertRaisesRegex(ValueError, text):
                function()
        with self.assertRaisesRegex(AttributeError, "no NASNetLarge, which Keras has: a file"):
            apply.NASNetLarge

    def test_beside_keras(self):
        try:
            import keras
        except ImportError:
            self.skipTest("Keras: CORNU_PYTHON=an interpreter with keras")
        x = np.random.default_rng(0).uniform(0, 255, (2, 32, 32, 3)).astype(np.float32)
        for name in ("EfficientNetB0", "MobileNetV2"):
            theirs, ours = (getattr(k.applications, name)(weights=None, input_shape=(32, 32, 3),
                                                          classes=5) for k in (keras, cornu))
            self.assertEqual([w.path for w in ours.weights], [w.path for w in theirs.weights])
            ours.set_weights(theirs.get_weights())
            np.testing.assert_allclose(ours.predict(x, verbose=0), theirs.predict(x, verbose=0),
                                       atol=1e-5)


if __name__ == "__main__":
    unittest.main()
