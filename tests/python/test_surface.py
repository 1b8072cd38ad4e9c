"""Keras' surface: names, aliases, what is said of missing ones, and modules of helpers."""

import collections
import copy
import gc
import os
import re
import tempfile
import unittest
from unittest import mock

import numpy as np

import cornu
from cornu._surface import missing
from cornu._surface.hints import HINTS
from cornu._surface.names import NAMES

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


class Names(unittest.TestCase):
    def test_every_way_to_import(self):
        for line in ("import cornu as keras", "from cornu import layers, ops",
                     "import cornu.layers", "from cornu.layers import Dense, MaxPool2D",
                     "from cornu.models import Sequential", "from cornu.datasets import mnist",
                     "import cornu.optimizers.schedules", "from cornu.datasets.cifar10 import "
                     "load_data", "from cornu.preprocessing.image import load_img",
                     "from cornu.ops import image"):
            with self.subTest(line):
                exec(line, {})      # noqa: S102

    def test_aliases_are_what_they_stand_for(self):
        for path in ("layers.MaxPool2D=MaxPooling2D", "layers.Convolution2D=Conv2D",
                     "layers.GlobalAvgPool1D=GlobalAveragePooling1D", "regularizers.l2=L2",
                     "regularizers.l1_l2=L1L2", "initializers.glorot_uniform=GlorotUniform",
                     "initializers.zeros=Zeros", "constraints.max_norm=MaxNorm",
                     "activations.swish=silu", "utils.Sequence=PyDataset"):
            module, _, names = path.partition(".")
            alias, _, first = names.partition("=")
            module = getattr(cornu, module)
            with self.subTest(path):
                self.assertIs(getattr(module, alias), getattr(module, first))
                self.assertIn(alias, module.__all__)
        self.assertIs(cornu.optimizers.legacy.Adam, cornu.optimizers.Adam)
        self.assertIs(cornu.KerasTensor, cornu.Tensor)

    def test_what_a_program_exports_exists(self):
        for module in [cornu] + [m for m in vars(cornu).values() if hasattr(m, "__all__")]:
            for name in module.__all__:
                self.assertTrue(hasattr(module, name), "%s.%s" % (module.__name__, name))

    def test_losses_and_metrics_as_functions(self):
        model = cornu.Sequential([cornu.Input((3,)), cornu.layers.Dense(2)])
        for function, name in ((cornu.losses.mse, "MeanSquaredError"),
                               (cornu.losses.categorical_crossentropy, "CategoricalCrossentropy"),
                               (cornu.losses.kld, "KLDivergence")):
            model.compile("sgd", function, metrics=[cornu.metrics.mean_absolute_error])
            self.assertEqual(model.get_compile_config()["loss"]["class_name"], name)

    def test_registries(self):
        for module, name, kind in (("losses", "MeanSquaredError", "MeanSquaredError"),
                                   ("optimizers", "adam", "Adam"),
                                   ("initializers", "he_normal", "HeNormal"),
                                   ("regularizers", "l2", "L2"),
                                   ("constraints", "non_neg", "NonNeg"),
                                   ("metrics", "AUC", "AUC")):
            module = getattr(cornu, module)
            found = module.get(name)
            self.assertEqual(type(found).__name__, kind)
            again = module.deserialize(module.serialize(found))
            self.assertEqual((type(again), again.get_config()),
                             (type(found), found.get_config()))
            self.assertIs(module.get(found), found)
            self.assertIsNone(module.get(None))
        self.assertIs(cornu.activations.get("relu"), cornu.activations.relu)
        self.assertIs(cornu.activations.get(None), cornu.activations.linear)
        self.assertEqual(cornu.activations.serialize(cornu.activations.tanh), "tanh")
        layer = cornu.layers.Dense(4, "relu", name="d")
        again = cornu.layers.deserialize(cornu.layers.serialize(layer))
        self.assertEqual(again.get_config(), layer.get_config())
        with self.assertRaisesRegex(ValueError, "nearest name is Adam"):
            cornu.optimizers.get("Adamm")


class Missing(unittest.TestCase):
    def fails(self, kind, text, function):
        with self.assertRaisesRegex(kind, text):
            function()

    def test_what_keras_has_says_what_to_use(self):
        self.fails(AttributeError, "cornu.layers has no TFSMLayer, which Keras has: a SavedModel "
                   "exported to .onnx", lambda: cornu.layers.TFSMLayer)
        self.fails(AttributeError, "cornu has no visualization, which Keras has: matplotlib",
                   lambda: cornu.visualization)
        self.assertIs(cornu.ops.nn.ctc_decode, cornu.ops.ctc_decode)
        self.assertIs(cornu.ops.numpy.nanargmax, cornu.ops.nanargmax)
        self.fails(AttributeError, "cornu.ops.image has no ssim, which Keras has: ",
                   lambda: cornu.ops.image.ssim)
        self.fails(AttributeError, "cornu.preprocessing has no text: cornu.layers.TextVec",
                   lambda: cornu.preprocessing.text)

    def test_names_of_other_modules_are_other_things(self):
        with mock.patch.dict(vars(cornu.initializers), {"segment_sum": None}), \
                mock.patch.dict(NAMES, {"initializers": NAMES["initializers"] + " segment_sum"}):
            said = missing.message("ops", "segment_sum", {})
            self.assertIn("cornu.ops has no segment_sum, which Keras has: ", said)
            said = missing.message("optimizers", "segment_sum", {})
            self.assertIn("it is cornu.initializers.segment_sum", said)

    def test_an_import_says_the_same(self):
        def program():
            from cornu.layers import TFSMLayer
            return TFSMLayer
        self.fails(ImportError, "cornu.layers has no TFSMLayer, which Keras has: a Saved", program)

    def test_what_neither_has_gets_the_nearest_name(self):
        self.fails(AttributeError, "cornu.layers has no Dens; the nearest name is Dense",
                   lambda: cornu.layers.Dens)
        self.fails(AttributeError, "cornu.layers has no to_categorical; it is "
                   "cornu.utils.to_categorical", lambda: cornu.layers.to_categorical)
        self.fails(AttributeError, "cornu.utils has no zzz, and neither has Keras",
                   lambda: cornu.utils.zzz)
        self.assertFalse(hasattr(cornu.layers, "__path__"))

    def test_attributes_of_objects(self):
        x = cornu.Input((3,))
        model = cornu.Model(x, cornu.layers.Dense(2, name="d")(x))
        self.fails(AttributeError,
                   "Model has no get_state_tree, which Keras has: model.get_weights",
                   lambda: model.get_state_tree)
        self.fails(AttributeError, "Dense has no quantize, which Keras has: dtype=",
                   lambda: model.get_layer("d").quantize)
        self.fails(AttributeError, "Adam has no load_own_variables, which Keras has",
                   lambda: cornu.optimizers.Adam().load_own_variables)
        self.fails(AttributeError, "'Model' object has no attribute 'nothing'",
                   lambda: model.nothing)
        self.fails(AttributeError, "has no attribute 'nothing'",
                   lambda: cornu.losses.Huber().nothing)
        self.fails(AttributeError, "the layer has not been called",
                   lambda: cornu.layers.Dense(2).output)
        self.assertFalse(hasattr(model, "quantized_call"))
        copy.deepcopy(cornu.optimizers.Adam())

    def test_hints_name_what_there_is(self):
        for path, hint in HINTS.items():
            for name in re.findall(r"cornu\.([a-zA-Z_0-9.]+\w)", hint):
                at = cornu
                for part in name.split("."):
                    self.assertTrue(hasattr(at, part), "%s: cornu.%s" % (path, name))
                    at = getattr(at, part)

    def test_coverage_is_what_the_readme_says(self):
        lines = []
        cornu.coverage(print_fn=lines.append)
        quoted = "".join("    %s\n" % line for line in lines)
        with open(os.path.join(ROOT, "nn", "python", "README.md"), encoding="utf-8") as file:
            self.assertTrue(quoted in file.read(), "nn/python/README.md should quote\n" + quoted)
        self.assertIn("layers", NAMES)

    def test_coverage_of_a_module_lists_what_is_missing(self):
        lines = []
        cornu.coverage("layers", lines.append)
        self.assertTrue(any("TFSMLayer: a SavedModel" in line for line in lines))
        with self.assertRaisesRegex(ValueError, "not a module of Keras"):
            cornu.coverage("layer")


class Settings(unittest.TestCase):
    def test_backend_and_config(self):
        self.assertEqual(cornu.backend.backend(), "cornu")
        self.assertEqual(cornu.config.floatx(), "float32")
        self.assertEqual(cornu.backend.image_data_format(), "channels_last")
        self.assertEqual(cornu.backend.epsilon(), 1e-7)
        cornu.config.set_floatx("float32")
        for function, value in ((cornu.config.set_floatx, "float64"),
                                (cornu.config.set_epsilon, 1e-3)):
            with self.assertRaisesRegex(ValueError, "is not supported"):
                function(value)
        with self.assertRaisesRegex(ValueError, "expected 'channels_last' or 'channels_first'"):
            cornu.backend.set_image_data_format("middle")
        self.assertEqual([cornu.backend.get_uid("a b") for _ in range(2)], [1, 2])
        self.assertTrue(cornu.backend.is_keras_tensor(cornu.Input((2,))))
        self.assertEqual([cornu.backend.standardize_dtype(d) for d in
                          (None, "int", np.float32, np.dtype("uint8"), bool)],
                         ["float32", "int32", "float32", "uint8", "bool"])
        self.assertTrue(cornu.backend.is_int_dtype("uint8"))
        self.assertTrue(cornu.backend.is_float_dtype("bfloat16"))

    def test_names_of_keras_2(self):
        with self.assertWarnsRegex(UserWarning, "the argument alpha is deprecated, use negative_s"):
            layer = cornu.layers.LeakyReLU(alpha=0.1)
        self.assertAlmostEqual(layer.get_config()["negative_slope"], 0.1)

    def test_ctc_of_tf_keras_backend(self):
        rng = np.random.default_rng(0)
        y_pred = cornu.ops.softmax(rng.normal(size=(2, 6, 4)).astype("float32"))
        y_true, steps, labels = np.array([[0, 1], [2, 0]]), np.array([[6], [5]]), np.array([[2],
                                                                                            [1]])
        backend, ops = cornu.backend, cornu.ops
        found = backend.ctc_batch_cost(y_true, y_pred, steps, labels)
        self.assertEqual(found.shape, (2, 1))
        np.testing.assert_allclose(found[:, 0], ops.ctc_loss(
            y_true, ops.log(y_pred), labels[:, 0], steps[:, 0], mask_index=3), rtol=1e-4)
        padded = backend.ctc_batch_cost(np.array([[0, 1, 99], [2, 99, 99]]), y_pred, steps,
                                        np.full((2, 1), 3))     # as of TensorFlow
        np.testing.assert_allclose(padded, found, rtol=1e-5)
        paths, scores = backend.ctc_decode(y_pred, np.array([6.0, 5.0]))
        self.assertEqual((len(paths), paths[0].shape, scores.shape), (1, (2, 6), (2, 1)))
        self.assertEqual(len(backend.ctc_decode(y_pred, steps[:, 0], False, 9, 2)[0]), 2)

    def test_channels_may_be_first_by_default(self):
        x = np.random.default_rng(0).normal(size=(2, 3, 5, 6)).astype("float32")
        layer = cornu.layers.Conv2D(4, 3)
        last = layer(np.moveaxis(x, 1, -1))
        cornu.config.set_image_data_format("channels_first")
        try:
            first = cornu.layers.Conv2D(4, 3)
            first.build((None, 3, 5, 6))
            first.set_weights(layer.get_weights())
            np.testing.assert_allclose(np.moveaxis(first(x), 1, -1), last, rtol=1e-5, atol=1e-6)
            made = cornu.ops.conv(x, layer.kernel.numpy())
            np.testing.assert_allclose(np.moveaxis(made, 1, -1), last, rtol=1e-5, atol=1e-6)
        finally:
            cornu.config.set_image_data_format("channels_last")

    def test_auto_is_silent_without_interactive_logging(self):
        self.assertTrue(cornu.utils.is_interactive_logging_enabled())
        cornu.utils.disable_interactive_logging()
        try:
            self.assertEqual(cornu._models.training._verbose("auto"), cornu._models.training._verbose(0))
        finally:
            cornu.utils.enable_interactive_logging()
        self.assertNotEqual(cornu._models.training._verbose("auto"), cornu._models.training._verbose(0))

    def test_policies(self):
        policy = cornu.mixed_precision.Policy("mixed_bfloat16")
        self.assertEqual((policy.name, policy.compute_dtype, policy.variable_dtype),
                         ("mixed_bfloat16", "bfloat16", "float32"))
        self.assertEqual(cornu.mixed_precision.dtype_policy().name, "float32")
        cornu.mixed_precision.set_global_policy(policy)
        try:
            self.assertEqual(cornu.config.dtype_policy(), policy)
        finally:
            cornu.mixed_precision.set_dtype_policy("float32")
        self.assertEqual(cornu.layers.Dense(2, dtype=policy).dtype_policy, "mixed_bfloat16")
        again = cornu.dtype_policies.deserialize(cornu.dtype_policies.serialize(policy))
        self.assertEqual(again, policy)
        with self.assertRaisesRegex(ValueError, "mixed_bfloat16"):
            cornu.mixed_precision.Policy("mixed_bfloat61")


class Tree(unittest.TestCase):
    """Right values are those of the documentation of keras.tree."""

    def test_flatten_and_pack(self):
        tree, point = cornu.tree, collections.namedtuple("Point", "a b")
        self.assertEqual(tree.flatten({100: "w", 6: "h"}), ["h", "w"])
        self.assertEqual(tree.flatten(collections.OrderedDict([(2, "x"), (1, "y")])), ["x", "y"])
        self.assertEqual(tree.flatten([[1, (2, None)], [[3]]]), [1, 2, None, 3])
        self.assertEqual(tree.flatten_with_path([{"foo": 42}]), [((0, "foo"), 42)])
        self.assertEqual(tree.pack_sequence_as({"b": 0, "a": [0, 0]}, "xyz"),
                         {"b": "z", "a": ["x", "y"]})
        self.assertEqual(tree.map_structure(lambda v: v * 2, point(1, 2)), point(2, 4))
        self.assertEqual(tree.map_structure(lambda x, y: x * y, [[1], [2]], [[3], [4]]),
                         [[3], [8]])
        self.assertEqual(tree.map_structure_up_to([None, [None, None]], str, [[1, 1], [2, 2]]),
                         ["[1, 1]", ["2", "2"]])
        self.assertEqual(tree.lists_to_tuples([[1], {"a": [2]}]), ((1,), {"a": (2,)}))
        self.assertEqual(tree.map_shape_structure(len, {"a": (None, 3), "b": [(1,)]}),
                         {"a": 2, "b": [1]})
        seen = []
        tree.traverse(seen.append, [(1, 2), {"a": 4}], top_down=False)
        self.assertEqual(seen, [1, 2, (1, 2), 4, {"a": 4}, [(1, 2), {"a": 4}]])
        self.assertEqual(tree.traverse(lambda x: tree.MAP_TO_NONE if x == 1 else None, [1, 2]),
                         [None, 2])

    def test_errors(self):
        for a, b in (([1], (1,)), ([1, 2], [1]), ({"a": 1}, {"b": 1}), ([1], [[1]])):
            with self.assertRaisesRegex(ValueError, "structures differ"):
                cornu.tree.assert_same_structure(a, b)
        cornu.tree.assert_same_structure([(0, 1)], [(2, 3)])
        cornu.tree.assert_same_paths([0, 1], (2, 3))
        with self.assertRaisesRegex(ValueError, "first alone has the paths"):
            cornu.tree.assert_same_paths([0, 1], [0])
        with self.assertRaisesRegex(ValueError, "3 leaves are given, expected 2"):
            cornu.tree.pack_sequence_as([0, 0], [1, 2, 3])


class Saving(unittest.TestCase):
    def test_registered_names(self):
        @cornu.saving.register_keras_serializable("surface")
        class Thing:
            def __init__(self, n=1):
                self.n = n

            def get_config(self):
                return {"n": self.n}

            @classmethod
            def from_config(cls, config):
                return cls(**config)

        known = cornu.saving.serialize_keras_object(Thing(3))
        self.assertEqual(known["registered_name"], "surface>Thing")
        self.assertEqual(known["config"], {"n": 3})
        self.assertEqual(cornu.saving.deserialize_keras_object(known).n, 3)
        self.assertIs(cornu.utils.get_custom_objects()["surface>Thing"], Thing)
        self.assertEqual(cornu.utils.get_registered_name(Thing), "surface>Thing")
        self.assertIs(cornu.utils.get_registered_object("surface>Thing"), Thing)
        del cornu.saving.get_custom_objects()["surface>Thing"]
        with self.assertRaisesRegex(TypeError, "no 'Thing'"):
            cornu.saving.deserialize_keras_object(known)
        with cornu.saving.custom_object_scope({"Thing": Thing}):
            self.assertEqual(cornu.saving.deserialize_keras_object(known).n, 3)
        self.assertIsNone(cornu.saving.get_registered_object("Thing"))
        with self.assertRaisesRegex(ValueError, "has no get_config"):
            cornu.saving.register_keras_serializable()(int)

    def test_files_know_classes_by_custom_objects(self):
        class Twice(cornu.Layer):
            def call(self, x):
                return 2 * x

        x = cornu.Input((3,))
        model = cornu.Model(x, cornu.layers.Dense(2)(Twice(name="twice")(x)))
        data = np.ones((2, 3), np.float32)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.safetensors")
            model.save(path)
            known = cornu.models.load_model(path, custom_objects={"Twice": Twice})
            with cornu.saving.custom_object_scope({"Twice": Twice}):
                scoped = cornu.load(path)
            without = cornu.load(path)
        gc.collect()
        for found, kind in ((known, Twice), (scoped, Twice), (without, cornu.layers.BuiltIn)):
            self.assertIs(type(found.get_layer("twice")), kind)
            np.testing.assert_array_equal(found.predict(data, verbose=0),
                                          model.predict(data, verbose=0))

    def test_objects_of_the_package(self):
        objects = {"a": [cornu.layers.Dense(3, name="x"), cornu.regularizers.L2(0.5)],
                   "b": (1, np.array([1, 2])), "c": cornu.activations.relu}
        found = cornu.saving.deserialize_keras_object(cornu.saving.serialize_keras_object(objects))
        self.assertEqual(found["a"][0].get_config(), objects["a"][0].get_config())
        self.assertEqual(found["a"][1].get_config(), {"l2": 0.5})
        self.assertEqual((found["b"][0], found["b"][1].tolist(), found["c"]), (1, [1, 2], "relu"))


class Models(unittest.TestCase):
    def models(self):
        x = cornu.Input((4,))
        return [cornu.Model(x, cornu.layers.Dense(2, name="d")(x), name="m"),
                cornu.Sequential([cornu.Input((4,)), cornu.layers.Dense(2)], name="s")]

    def test_configurations(self):
        for model in self.models():
            again = type(model).from_config(model.get_config())
            self.assertIs(type(again.get_config()), dict)
            self.assertEqual((again.name, again.get_config()), (model.name, model.get_config()))
            self.assertEqual(again.count_params(), 10)
            self.assertFalse(again.compiled)
            self.assertEqual(cornu.models.clone_model(model).get_config(), model.get_config())

    def test_files_are_kept_without_overwrite(self):
        model = self.models()[0]
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "m.safetensors")
            cornu.models.save_model(model, path)
            for save in (model.save, model.save_weights):
                save(path)
                with self.assertRaisesRegex(FileExistsError, "exists, and overwrite is False"):
                    save(path, overwrite=False)
            model.export(os.path.join(folder, "m.onnx"), format="onnx")
            for path, kind in (("m.onnx", "litert"), ("m", "openvino")):
                with self.assertRaisesRegex(ValueError, "expected .onnx. for a path in .onnx"):
                    model.export(os.path.join(folder, path), format=kind)

    def test_input_shape_of_the_first_layer(self):
        layers = cornu.layers
        for first in (layers.Dense(4, input_shape=(6,)), layers.Dense(4, input_dim=6)):
            model = cornu.Sequential([first, layers.Dense(2)])
            self.assertEqual((model.built, model.input_shape), (True, (None, 6)))
        model = cornu.Sequential()
        model.add(layers.Flatten(input_shape=(3, 2)))
        self.assertEqual(model.output_shape, (None, 6))
        self.assertEqual(layers.InputLayer(input_shape=(3,)).shape, (None, 3))
        self.assertEqual(layers.Embedding(input_dim=5, output_dim=2).get_config()["input_dim"], 5)
        self.assertEqual(cornu.Input((3,), sparse=False).shape, (None, 3))
        with self.assertRaisesRegex(NotImplementedError, "sparse, ragged and optional"):
            cornu.Input((3,), ragged=True)

    def test_summaries_by_lines(self):
        lines = []
        self.models()[0].summary(60, print_fn=lambda text, line_break=False: lines.append(text))
        text = "\n".join(lines)
        self.assertIn("Total params: 10", text)
        self.assertLessEqual(max(len(line) for line in text.split("\n")), 60)


if __name__ == "__main__":
    unittest.main()
