"""Copies of models, and what messages and help() say."""

import copy
import io
import pickle
import pydoc
import unittest

import numpy as np

import cornu
from cornu import layers as L
from cornu._binding.described import described
from cornu._binding.spelling import spelt

RNG = np.random.default_rng(0)
X, Y = RNG.random((16, 2)).astype(np.float32), np.arange(16) % 3


def small():
    cornu.set_random_seed(3)
    model = cornu.Sequential([cornu.Input((2,)), L.Dense(8, "relu"), L.Dense(3, "softmax")])
    model.compile(cornu.optimizers.Adam(0.02), "sparse_categorical_crossentropy",
                  metrics=["accuracy"])
    return model


class Copies(unittest.TestCase):
    def test_training_goes_on(self):
        """With the optimizer's variables, by the bits of the original."""
        model = small()
        model.fit(X, Y, epochs=3, verbose=0)
        model.optimizer.learning_rate = 0.5
        copies = [pickle.loads(pickle.dumps(model)), copy.deepcopy(model)]
        expected = model.fit(X, Y, epochs=2, shuffle=False, verbose=0).history
        for made in copies:
            self.assertEqual(made.optimizer.learning_rate, 0.5)
            self.assertEqual(made.fit(X, Y, epochs=2, shuffle=False, verbose=0).history, expected)
            self.assertIsInstance(made, cornu.Sequential)
            self.assertEqual(made.name, model.name)
        for a, b in zip(copies[0].get_weights(), model.get_weights()):
            np.testing.assert_array_equal(a, b)

    def test_copies_are_apart(self):
        model = small()
        made = copy.deepcopy(model)
        made.fit(X, Y, verbose=0)
        self.assertFalse(np.array_equal(made.get_weights()[0], model.get_weights()[0]))
        model = cornu.Sequential([cornu.Input((2,)), L.Dense(3)])
        made = copy.deepcopy(model)
        made.add(L.Dense(1))
        self.assertEqual((made.output_shape, model.output_shape), ((None, 1), (None, 3)))

    def test_models_with_names_and_without_shapes(self):
        x = cornu.Input((3,))
        model = copy.deepcopy(cornu.Model({"a": x}, {"b": L.Dense(2)(x), "c": x}))
        self.assertEqual((model.input_names, model.output_names), (["a"], ["b", "c"]))
        model = cornu.Sequential([L.Dense(3, "softmax")])
        model.compile("sgd", "sparse_categorical_crossentropy")
        made = pickle.loads(pickle.dumps(model))
        self.assertFalse(made.built)
        self.assertEqual(len(made.fit(X, Y, verbose=0).history["loss"]), 1)

    def test_layers_and_objects(self):
        layer = copy.deepcopy(L.Dense(3, "relu", name="own"))
        self.assertEqual((layer.name, layer.get_config()["units"]), ("own", 3))
        words = L.TextVectorization()
        words.adapt(["a b", "a"])
        self.assertEqual(copy.deepcopy(words).get_vocabulary(), ["", "[UNK]", "a", "b"])
        loss = pickle.loads(pickle.dumps(cornu.losses.Huber(2.0)))
        self.assertEqual(loss.get_config(), {"delta": 2.0})
        with self.assertRaisesRegex(TypeError, "with its model"):
            copy.deepcopy(small().layers[0])
        with self.assertRaisesRegex(TypeError, "models, and layers without weights, can"):
            pickle.dumps(cornu.Input((3,)))


class Messages(unittest.TestCase):
    """In Python's spelling."""

    def test_arguments(self):
        model = small()
        for message, call in (
                (r"dense: units is -1, expected at least 1", lambda: L.Dense(-1, name="dense")),
                (r"fit: validation_split is 2,", lambda: model.fit(X, Y, validation_split=2)),
                (r"learning_rate is -1", lambda: model.compile(cornu.optimizers.SGD(-1), "mse")),
                (r"expected mode='min' or 'max'", lambda: model.fit(
                    X, Y, verbose=0, callbacks=[cornu.callbacks.EarlyStopping("val_los")]))):
            with self.assertRaisesRegex(ValueError, r"(?<!\.)" + message):
                call()
        with self.assertRaisesRegex(TypeError, "Dense: missing a required argument: 'units'"):
            L.Dense()

    def test_words(self):
        for text, expected in (
                ("fit: both .xs_by_name and other data", "fit: both x and other data"),
                ("expected CORNU_AUTO, CORNU_SILENT, CORNU_BAR or CORNU_LINES",
                 "expected 'auto', 0, 1 or 2"),
                ("expected CORNU_MEAN or CORNU_SUM", "expected 'mean' or 'sum'"),
                ("cornu_adapt before cornu_compile", "adapt before compile"),
                ("load it by cornu_model_load", "load it by load"),
                ("Compile with .debug_nans", "Compile with debug_nans"),
                ("both .loss and .losses, .output_metrics", "both loss and loss, metrics"),
                (".means and .variances, or .ngram_sizes", "mean and variance, or ngrams"),
                ("cornu_predictor_predict and cornu_predict_on_batch run it",
                 "Predictor.predict and predict_on_batch run it"),
                ("cornu_train_on_batch_many: 3 arrays", "train_on_batch: 3 arrays"),
                ("expected one of .safetensors .keras .onnx", None), ("model.data.name", None),
                ("see CORNU_MAX_MEMORY", None), (".weights.h5 or .npz", None), ("/a/.name", None)):
            self.assertEqual(spelt(text), expected or text)


class Help(unittest.TestCase):
    def test_defaults_are_as_python_writes_them(self):
        text = pydoc.plain(pydoc.render_doc(L.Conv2D))
        for line in ("strides=(1, 1), padding='valid'", "kernel_initializer='glorot_uniform'",
                     "strides: int or two of them; default (1, 1)", "use_bias: bool; default True",
                     "padding: one of 'valid', 'same', 'causal'; default 'valid'"):
            self.assertIn(line, text)
        self.assertIn("backward_layer=None", pydoc.render_doc(L.Bidirectional))

    def test_no_default_is_json(self):
        modules = {"layers": L, "optimizers": cornu.optimizers, "losses": cornu.losses,
                   "metrics": cornu.metrics, "initializers": cornu.initializers}
        for kind, module in modules.items():
            for entry in described[kind]:
                text = io.StringIO()
                pydoc.Helper(output=text)(getattr(module, entry["class_name"]))
                for word in ("class_name':", "registered_name", "= true", "=null", "=["):
                    self.assertNotIn(word, text.getvalue().partition("Method resolution")[0],
                                     entry["class_name"])


if __name__ == "__main__":
    unittest.main()
