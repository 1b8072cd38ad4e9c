"""The classes that the library describes, beside the constructors of Keras
(tests/golden/signatures)."""

import inspect
import json
import os
import unittest

import numpy as np

import cornu
from cornu._binding.described import described, snake_case

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
with open(os.path.join(ROOT, "tests", "golden", "signatures", "signatures.json")) as _file:
    KERAS = json.load(_file)
# Classes that Keras keeps for single networks.
OURS = {"CustomScaleLayer", "LayerScale", "PositionEmbedding", "StochasticDepth"}
# Where the values differ in form: RandomUniform is written out, and a network's own default.
OTHER_DEFAULTS = {("Embedding", "embeddings_initializer"),
                  ("ReversibleEmbedding", "embeddings_initializer"),
                  ("PReLU", "alpha_initializer")}


def simple(value):
    """A default in the form that both write: a rule of weights by its name, equal extents as one,
    a range from 0 as its end."""
    if isinstance(value, dict) and "class_name" in value:
        return snake_case(value["class_name"])
    while isinstance(value, list) and value and all(v == value[0] for v in value):
        value = value[0]
    if isinstance(value, list) and len(value) == 2 and value[0] == 0:
        return value[1]
    return value


class Signatures(unittest.TestCase):
    def each(self):
        for kind, arguments in KERAS.items():
            for entry in described[kind]:
                if entry["class_name"] not in OURS:
                    yield entry, arguments[entry["class_name"]], kind

    def test_positional_arguments_have_keras_order(self):
        count = 0
        for entry, arguments, kind in self.each():
            ours = [field["name"] for field in entry["fields"]]
            theirs = [argument[0] for argument in arguments]
            while theirs and theirs[-1] in ("name", "dtype"):
                theirs.pop()
            count += 1
            self.assertEqual(ours[:len(theirs)], theirs[:len(ours)],
                             "%s: nn/saving/orders.def" % entry["class_name"])
        self.assertGreater(count, 200)

    def test_defaults_are_keras(self):
        count = 0
        for entry, arguments, kind in self.each():
            theirs = {a[0]: a[1] for a in arguments if len(a) > 1}
            for field in entry["fields"]:
                name = field["name"]
                place = (entry["class_name"], name)
                if theirs.get(name) is None or "default" not in field or place in OTHER_DEFAULTS:
                    continue
                if field["default"] is None:    # the class' own, which files omit
                    self.assertIn(field["type"], ("integer_or_default", "number_or_default",
                                                  "classes"), place)
                    continue
                count += 1
                self.assertEqual(simple(field["default"]), simple(theirs[name]), place)
        self.assertGreater(count, 500)

    def test_required_arguments_are_keras(self):
        for kind in ("layers", "losses", "metrics"):
            for entry in described[kind]:
                theirs = dict((a[0], len(a)) for a in KERAS[kind].get(entry["class_name"], []))
                for field in entry["fields"]:
                    if field.get("required") and field["name"] in theirs and \
                            entry["class_name"] not in ("CategoryEncoding", "Discretization"):
                        self.assertEqual(theirs[field["name"]], 1,
                                         (entry["class_name"], field["name"]))

    def test_python_has_all(self):
        modules = {"layers": cornu.layers, "optimizers": cornu.optimizers,
                   "schedules": cornu.optimizers.schedules, "losses": cornu.losses,
                   "metrics": cornu.metrics, "initializers": cornu.initializers,
                   "regularizers": cornu.regularizers, "constraints": cornu.constraints}
        for kind, module in modules.items():
            for entry in described[kind]:
                made = getattr(module, entry["class_name"])
                self.assertIn(entry["class_name"], module.__all__)
                self.assertIn(entry["class_name"], made.__doc__)
        for entry, name in zip(described["operations"], described["names"]["operations"]):
            module = cornu.random if entry["module"] == "random" else cornu.ops
            self.assertTrue(callable(getattr(module, name)))
        signature = inspect.signature(cornu.layers.Dense)
        self.assertEqual(list(signature.parameters)[:3], ["units", "activation", "use_bias"])


class Objects(unittest.TestCase):
    def test_layers_without_required_arguments_are_made(self):
        made = 0
        for entry in described["layers"]:
            if any(field.get("required") for field in entry["fields"]) or \
                    not any("default" in field for field in entry["fields"]):
                continue
            layer = getattr(cornu.layers, entry["class_name"])()
            again = type(layer).from_config(layer.get_config())
            self.assertEqual(again.get_config(), layer.get_config())
            made += 1
        self.assertGreater(made, 60)

    def test_positional_and_keyword_arguments_are_the_same(self):
        one = cornu.layers.Conv2D(8, 3, 2, "same", "channels_last", 1, 1, "relu", name="c")
        two = cornu.layers.Conv2D(filters=8, kernel_size=(3, 3), strides=[2, 2], padding="same",
                                  activation=cornu.activations.relu, name="c")
        self.assertEqual(one.get_config(), two.get_config())

    def test_arguments_that_are_objects(self):
        layer = cornu.layers.Dense(
            4, kernel_initializer=cornu.initializers.HeNormal(seed=3),
            kernel_regularizer=cornu.regularizers.L2(0.5),
            kernel_constraint=cornu.constraints.MaxNorm(3), activation=cornu.layers.PReLU())
        config = layer.get_config()
        self.assertEqual(config["kernel_initializer"]["config"]["seed"], 3)
        self.assertEqual(config["kernel_regularizer"]["config"], {"l2": 0.5})
        self.assertEqual(config["kernel_constraint"]["config"]["max_value"], 3)
        self.assertEqual(config["activation"]["class_name"], "PReLU")

    def test_wrong_arguments_are_refused(self):
        with self.assertRaisesRegex(TypeError, "given twice"):
            cornu.layers.Dense(3, units=4)
        with self.assertRaisesRegex(TypeError, "positional"):
            cornu.layers.Flatten(None, 2, 3)
        with self.assertRaisesRegex(ValueError, "padding"):
            cornu.layers.Conv2D(2, 3, padding="valied")
        with self.assertRaisesRegex(TypeError, "not a value"):
            cornu.layers.Dense(3, kernel_initializer=object())

    def test_none_is_kerass_none(self):
        self.assertEqual(cornu.layers.LSTM(2, activation=None).get_config()["activation"],
                         "linear")
        self.assertIsNone(cornu.layers.STFTSpectrogram(window=None).get_config()["window"])
        self.assertEqual(cornu.layers.STFTSpectrogram().get_config()["window"], "hann")

    def test_none_is_not_the_default(self):
        """Where Keras gives it a meaning it has that, or is refused."""
        data = np.array([[1.0, 2, 3], [5, 6, 7]], np.float32)
        layer = cornu.layers.Normalization(axis=None)
        layer.adapt(data)
        x = cornu.Input((3,))
        np.testing.assert_allclose(cornu.Model(x, layer(x)).predict(data, verbose=0),
                                   (data - data.mean()) / data.std(), rtol=1e-6)
        model = cornu.Sequential([x, cornu.layers.Dense(2, use_bias=None)])
        self.assertEqual(len(model.weights), 1)
        for name in ("MaxNorm", "UnitNorm", "MinMaxNorm"):
            with self.assertRaisesRegex(ValueError, "kernel_constraint: axis is not a list"):
                cornu.layers.Dense(2, kernel_constraint=getattr(cornu.constraints, name)(
                    axis=None)).get_config()
        with self.assertRaisesRegex(ValueError, "no axis 0 after the batch"):
            cornu.layers.Softmax(axis=None)(x)
        for name in ("softmax", "log_softmax", "sort", "argsort", "normalize"):
            with self.assertRaisesRegex(NotImplementedError, "the argument axis, null, is not"):
                getattr(cornu.ops, name)(x, axis=None)

    def test_padding_has_short_forms(self):
        for given, edges in ((1, ((1, 1), (1, 1))), ((1, 2), ((1, 1), (2, 2))),
                             (((1, 2), (3, 4)), ((1, 2), (3, 4))), (0, ((0, 0), (0, 0)))):
            layer = cornu.layers.ZeroPadding2D(given)
            self.assertEqual(layer.get_config()["padding"], edges)

    def test_extents_in_configs_are_tuples(self):
        config = cornu.layers.DepthwiseConv2D(kernel_size=5).get_config()
        self.assertEqual((config["kernel_size"], config["strides"]), ((5, 5), (1, 1)))
        self.assertEqual(cornu.layers.ZeroPadding2D([1, 2]).get_config()["padding"],
                         ((1, 1), (2, 2)))
        layer = cornu.layers.Discretization(bin_boundaries=[0.5, 1.5])
        self.assertEqual(layer.get_config()["bin_boundaries"], [0.5, 1.5])

    def test_optimizers_keep_the_defaults_of_their_class(self):
        model = cornu.Sequential([cornu.Input((2,)), cornu.layers.Dense(1)])
        for optimizer, rate in ((cornu.optimizers.AdamW(), 0.001), (cornu.optimizers.SGD(), 0.01),
                                (cornu.optimizers.SGD(0.5), 0.5), ("adadelta", 0.001)):
            model.compile(optimizer, "mse")
            self.assertAlmostEqual(model.optimizer.learning_rate, rate, 6)
        model.optimizer.learning_rate = 0.25
        self.assertEqual(model.optimizer.learning_rate, 0.25)


if __name__ == "__main__":
    unittest.main()
