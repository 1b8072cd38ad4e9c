"""Networks with layers, losses and steps of their own (own_networks.py): beside what Keras computes
(tests/golden/own), and in files, with their classes and without."""

import json
import os
import shutil
import subprocess
import tempfile
import unittest

import numpy as np

import cornu

import own_networks

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
with open(os.path.join(ROOT, "tests", "golden", "own", "networks.json")) as _file:
    KERAS = json.load(_file)["programs"]


def listed(values):
    return values if isinstance(values, list) else [values]


def flat(value):
    return [x for v in value for x in flat(v)] if isinstance(value, list) else [value]


def made(name, noise=0.0):
    network = own_networks.NETWORKS[name](cornu, cornu.GradientTape, noise)
    own_networks.set_weights(network.models)
    return network


class Computes(unittest.TestCase):
    def test_what_keras_does(self):
        self.assertEqual(list(KERAS), sorted(KERAS, key=list(KERAS).index))
        self.assertEqual(set(KERAS), set(own_networks.NETWORKS))
        for name, wanted in KERAS.items():
            with self.subTest(name):
                found = own_networks.run(cornu, name, cornu.GradientTape)[1]
                for key, value in wanted.items():
                    np.testing.assert_allclose(flat(found[key]), flat(value), rtol=3e-5, atol=3e-6)

    def test_with_noise(self):
        """Draws differ from step to step, and the loss falls."""
        for name in own_networks.NETWORKS:
            with self.subTest(name):
                network = made(name, 1.0)
                steps = network.train(4)
                self.assertTrue(np.isfinite(flat(steps)).all())
        network = made("vae", 1.0)
        losses = [step[1] for step in network.train(60)]
        self.assertLess(np.mean(losses[-10:]), np.mean(losses[:10]))
        codes = [network.predictor(network.x)[2] for _ in range(2)]
        self.assertGreater(np.abs(codes[0] - codes[1]).max(), 1e-3)


def trained(name):
    network = made(name)
    network.train(2)
    return network, listed(network.predictor.predict(network.x, verbose=0))


class Files(unittest.TestCase):
    def each(self, suffixes, check):
        """check(network, path, predictions) for a file of each network's."""
        for name in own_networks.NETWORKS:
            network, wanted = trained(name)
            for suffix in suffixes:
                with self.subTest(name + suffix), tempfile.TemporaryDirectory() as folder:
                    path = os.path.join(folder, name + suffix)
                    network.predictor.export(path)
                    check(network, path, wanted)

    def expect(self, model, network, wanted):
        for a, b in zip(wanted, listed(model.predict(network.x, verbose=0))):
            np.testing.assert_array_equal(a, b)

    def test_without_the_classes(self):
        """The same bits; and it trains."""
        def check(network, path, wanted):
            loaded = cornu.load(path)
            self.expect(loaded, network, wanted)
            loaded.compile(cornu.optimizers.SGD(0.01), "mse")
            loaded.fit(network.x, wanted, epochs=1, verbose=0)
        self.each((".safetensors", ".keras"), check)

    def test_with_the_classes(self):
        """Layers are of their classes again, with the weights of the file."""
        def check(network, path, wanted):
            classes = {kind.__name__: kind for kind in network.classes}
            with cornu.saving.custom_object_scope(classes):
                loaded = cornu.load(path)
                layers = loaded.layers
            if type(network.predictor) in network.classes:
                self.assertIs(type(loaded), type(network.predictor))
            for layer, before in zip(layers, network.predictor.layers):
                if type(before) in network.classes:
                    self.assertIs(type(layer), type(before))
                for a, b in zip(layer.weights, before.weights):
                    self.assertEqual(a.shape, b.shape)
                    np.testing.assert_array_equal(a.numpy(), b.numpy())
            self.expect(loaded, network, wanted)
            unnamed = cornu.load(path)
            for model in (loaded, unnamed):     # which train alike
                model.compile(cornu.optimizers.SGD(0.01), "mse")
                model.fit(network.x, wanted, epochs=1, shuffle=False, verbose=0)
            self.expect(loaded, network, listed(unnamed.predict(network.x, verbose=0)))
        self.each((".safetensors", ".keras"), check)

    def test_c_predicts_the_same_bits(self):
        """By a program that knows no class: predict.c."""
        compiler, library = shutil.which("cc"), os.environ.get("CORNU_LIBRARY", "")
        if not compiler or not os.path.isfile(library):
            self.skipTest("a C compiler, and CORNU_LIBRARY")
        with tempfile.TemporaryDirectory() as folder:
            program = os.path.join(folder, "predict")
            subprocess.run([compiler, "-std=c11", "-O1", "-o", program,
                            os.path.join(ROOT, "tests", "python", "predict.c"), library,
                            "-Wl,-rpath," + os.path.dirname(library)], check=True,
                           stderr=subprocess.PIPE)

            def check(network, path, wanted):
                xs = [np.asarray(x, "float32") for x in listed(network.x)]
                made = subprocess.run([program, path, str(len(xs[0]))], check=True,
                                      input=b"".join(x.tobytes() for x in xs),
                                      stdout=subprocess.PIPE).stdout
                self.assertEqual(made, b"".join(y.tobytes() for y in wanted))
            self.each((".safetensors", ".keras"), check)

    def test_classes_are_known_by_their_names(self):
        """Registered for the whole program, with weights of __init__ and layers made in build."""
        @cornu.saving.register_keras_serializable("tests", "Own")
        class Own(cornu.layers.Layer):
            def __init__(self, by, **kwargs):
                super().__init__(**kwargs)
                self.by = by
                self.first = self.add_weight(shape=(3,), initializer="ones", name="first")

            def build(self, input_shape):
                self.inner = [cornu.layers.Dense(3), cornu.Sequential([cornu.layers.Dense(2)])]

            def call(self, x):
                return self.inner[1](self.inner[0](x) * self.first * self.by)

        @cornu.saving.register_keras_serializable("tests")
        class Outer(cornu.Model):
            def __init__(self):
                super().__init__()
                self.own = Own(2.0)

            def call(self, x):
                return self.own(x)
        x, model = np.ones((4, 5), "float32"), Outer()
        wanted = model(x)
        for suffix in (".safetensors", ".keras"):
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "own" + suffix)
                model.save(path)
                loaded = cornu.load(path)
            self.assertEqual((type(loaded), type(loaded.own), loaded.own.by), (Outer, Own, 2.0))
            np.testing.assert_array_equal(loaded(x), wanted)
            loaded.own.first.assign(np.zeros(3))
            self.assertEqual(np.ptp(loaded(x), axis=0).max(), 0)
            self.assertFalse(np.array_equal(loaded(x), wanted))
            loaded.own.inner[1].layers[0].set_weights([np.zeros((3, 2)), np.ones(2)])
            np.testing.assert_array_equal(loaded(x), np.ones((4, 2)))
            loaded.own.by = None    # the call is not run again
            np.testing.assert_array_equal(loaded.predict(x, verbose=0), np.ones((4, 2)))

    def test_onnx(self):
        try:
            import onnxruntime
        except ImportError:
            self.skipTest("onnxruntime: CORNU_PYTHON=an interpreter with onnx and onnxruntime")
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3

        def check(network, path, wanted):
            session = onnxruntime.InferenceSession(path, options,
                                                   providers=["CPUExecutionProvider"])
            feeds = {of.name: np.asarray(x).astype("float32" if "float" in of.type else
                                                   "int64" if "64" in of.type else "int32")
                     for of, x in zip(session.get_inputs(), listed(network.x))}
            for a, b in zip(wanted, session.run(None, feeds)):
                np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
        self.each((".onnx",), check)


if __name__ == "__main__":
    unittest.main()
