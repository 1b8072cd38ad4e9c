"""keras.ops on symbolic tensors, beside what Keras computes (tests/golden/operations)."""

import inspect
import itertools
import json
import os
import unittest

import numpy as np

import cornu
from cornu import ops
from cornu._binding.described import described

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
with open(os.path.join(ROOT, "tests", "golden", "operations", "operations.json")) as _file:
    KERAS = json.load(_file)
DATA = {name: np.array(values, KERAS["dtypes"][name]).reshape(KERAS["shapes"][name])
        for name, values in KERAS["inputs"].items()}


def word(parameter):
    """A parameter as in nn/layers/operations/signatures.def."""
    usual = parameter.get("default", inspect)
    return ("@" if parameter.get("operand") else "") + ("*" if parameter.get("many") else "") + \
        parameter["name"] + ("" if usual is inspect else "=" + (
            usual if isinstance(usual, str) else json.dumps(usual, separators=(",", ":"))))


class Case:
    """A call of Keras', as its arguments on symbolic tensors of a new model."""

    def __init__(self, case):
        self.case, self.inputs = case, {}
        self.args = [self.symbolic(value) for value in case["args"]]
        self.function = getattr(cornu.ops, case["function"])
        self.expected = [np.array(values, np.float32).reshape(shape)
                         for values, shape in zip(case["results"], case["shapes"])]

    def symbolic(self, value):
        if isinstance(value, dict):
            name = value["input"]
            if name not in self.inputs:
                self.inputs[name] = cornu.Input(DATA[name].shape[1:], dtype=DATA[name].dtype)
            return self.inputs[name]
        if isinstance(value, list) and any(isinstance(v, dict) for v in value):
            return [self.symbolic(v) for v in value]
        array = np.array(value)
        return array.astype(np.float32) if array.ndim and array.dtype == float else value

    def values(self, results):
        results = results if isinstance(results, list) else [results]
        model = cornu.Model(list(self.inputs.values()), results)
        found = model.predict([DATA[name] for name in self.inputs], verbose=0)
        return found if isinstance(found, list) else [found]

    def check(self, results):
        found = self.values(results)
        for a, b in zip(found, self.expected):
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-6)
        assert len(found) == len(self.expected)


class Operations(unittest.TestCase):
    def test_by_position(self):
        for case in KERAS["cases"]:
            with self.subTest(case["function"]):
                made = Case(case)
                made.check(made.function(*made.args))
        self.assertGreater(len(KERAS["cases"]), 150)

    def test_by_name(self):
        for case in KERAS["cases"]:
            with self.subTest(case["function"]):
                made = Case(case)
                if case["names"]:
                    made.check(made.function(**dict(zip(case["names"], made.args))))

    def test_signatures_are_keras(self):
        ours = {entry["class_name"]: entry for entry in described["operations"]}
        for case in KERAS["cases"] + KERAS["whole"]:
            self.assertEqual(" ".join(word(p) for p in ours[case["class"]]["arguments"]),
                             case["signature"], "nn/layers/operations/signatures.def")

    def test_modules_are_keras(self):
        self.assertIs(cornu.ops.image.resize, cornu.ops.resize)
        self.assertIs(cornu.ops.nn.softmax, cornu.ops.softmax)

    def test_what_is_left_over_is_refused(self):
        x = cornu.Input((4,))
        for message, call in (
                ("clip: missing a required argument: 'x_max'", lambda: cornu.ops.clip(x, 1)),
                ("clip: too many positional", lambda: cornu.ops.clip(x, 1, 2, 3)),
                ("clip: multiple values", lambda: cornu.ops.clip(x, 1, 2, x_min=3)),
                ("softmax: got an unexpected", lambda: cornu.ops.softmax(x, axes=1))):
            with self.assertRaisesRegex(TypeError, message):
                call()
        with self.assertRaisesRegex(NotImplementedError, "argument initial, 3.0, is not avail"):
            cornu.ops.max(x, 1, initial=3.0)
        self.assertEqual(cornu.ops.max(x, 1, initial=None).shape, (None,))


class Operators(unittest.TestCase):
    """Python's operators, and indices, as NumPy has them."""

    def same(self, function):
        data = DATA["x"]
        x = cornu.Input(data.shape[1:])
        found = cornu.Model(x, function(x)).predict(data, verbose=0)
        np.testing.assert_allclose(found, np.float32(function(data)), rtol=1e-5, atol=1e-6)

    def test_arithmetic_and_comparisons(self):
        for function in (lambda x: 3 - x, lambda x: x // 0.5, lambda x: 2.0 ** x, lambda x: x % 0.7,
                         lambda x: 1 / (x + 9), lambda x: x < 0.25, lambda x: x >= 0,
                         lambda x: (x > 0) & (x < 1), lambda x: (x > 1) | (x < 0),
                         lambda x: ~(x > 0), lambda x: abs(-x), lambda x: 5 % (x + 3),
                         lambda x: x + np.arange(4, dtype=np.float32),
                         lambda x: np.arange(4, dtype=np.float32) * x,
                         lambda x: x * np.ones((1, 3, 4), np.float32)):
            self.same(function)

    def test_indices(self):
        for function in (lambda x: x[:, 1], lambda x: x[..., 0], lambda x: x[:, :, ::2],
                         lambda x: x[:, -2:, None], lambda x: x[:, ::-1], lambda x: x[:, 1, 1:3]):
            self.same(function)

    def test_what_has_no_values_says_so(self):
        x = cornu.Input((3,))
        with self.assertRaisesRegex(TypeError, "iterate"):
            list(x)
        with self.assertRaisesRegex(TypeError, "neither true nor false"):
            bool(x > 0)


class Composed(unittest.TestCase):
    """Operations that are a few others, beside NumPy's."""

    x = np.array([[1.0, np.nan, 3.0], [4.0, 0.5, np.nan]], "float32")

    def both(self, function, x, wanted):
        """On arrays, and in a model."""
        np.testing.assert_allclose(function(x), wanted, rtol=1e-5)
        given = cornu.Input(x.shape[1:], batch_size=len(x))

        class Own(cornu.layers.Layer):
            def call(self, x):
                return function(x)
        made = cornu.Model(given, Own()(given))(x)
        np.testing.assert_allclose(made, wanted, rtol=1e-5)

    def test_of_tensors(self):
        ops, x = cornu.ops, self.x
        self.both(lambda v: ops.nanargmax(v, axis=1), x, [2, 0])
        self.both(lambda v: ops.nanargmin(v, axis=1), x, [0, 1])
        self.assertEqual(int(ops.nanargmax(np.full(3, np.nan, "float32"))), -1)
        rows = np.random.default_rng(0).normal(size=(3, 8)).astype("float32")
        self.both(ops.corrcoef, rows, np.corrcoef(rows))
        parted = np.take_along_axis(rows, np.asarray(ops.argpartition(rows, 3)), -1)
        np.testing.assert_array_equal(parted[:, 3], np.partition(rows, 3)[:, 3])
        for name, axis in (("vsplit", 0), ("hsplit", 1), ("dsplit", 2)):
            cube = np.arange(64.0, dtype="float32").reshape(4, 4, 4)
            for made, wanted in zip(getattr(ops, name)(cube, 2), np.split(cube, 2, axis)):
                np.testing.assert_array_equal(made, wanted)
        self.assertEqual((ops.dtype(rows), ops.dtype(cornu.Input((2,), dtype="int32"))),
                         ("float32", "int32"))

    def test_of_arrays_alone(self):
        ops, a = cornu.ops, np.array([[4.0, 1.0], [1.0, 3.0]], "float32")
        np.testing.assert_allclose(ops.eigh(a)[0], np.linalg.eigvalsh(a), rtol=1e-6)
        u, s, v = ops.svd(a)
        np.testing.assert_allclose((u * s) @ v, a, rtol=1e-5)
        np.testing.assert_allclose(np.matmul(*ops.qr(a)), a, rtol=1e-5)
        np.testing.assert_allclose(ops.pinv(a) @ a, np.eye(2), atol=1e-6)
        self.assertEqual(ops.bincount(np.array([0, 2, 2]), minlength=5).tolist(), [1, 0, 2, 0, 0])
        self.assertEqual([v.tolist() for v in ops.nonzero(np.array([0, 3, 4]))], [[1, 2]])
        self.assertEqual(ops.unique(np.array([3, 1, 3])).tolist(), [1, 3])
        with self.assertRaisesRegex(NotImplementedError, "ops.unique is computed of arrays"):
            ops.unique(cornu.Input((3,)))

    def test_sums_of_products(self):
        rng = np.random.default_rng(0)
        a, b, c = rng.random((2, 3, 4)), rng.random((2, 5, 4)), rng.random((4, 3))
        for text, given in (("abc, aBc -> abB", (a, b)), ("abc,adc,ce", (a, b, c)),
                            ("...bc->...c", (a,)), ("ij,ji", (c, c.T))):
            np.testing.assert_allclose(ops.einsum(text, *given), np.einsum(text, *given),
                                       rtol=1e-5)
        self.assertEqual(ops.einsum("i,i", np.array([2, 3]), np.array([5, 7])), 31)
        for text, said in (("ab,bc", "names 2 axes in operand 0"), ("abc->d", "'d', which no")):
            with self.assertRaisesRegex(Exception, said):
                ops.einsum(text, a, *([] if "->" in text else [b]))

    def test_ctc_decode(self):
        logits = np.random.default_rng(3).normal(size=(2, 5, 3)).astype("float32")
        logs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
        lengths = np.array([5, 4])
        found, scores = ops.ctc_decode(logits, lengths, "beam_search", 100, 2, mask_index=2)
        for row, length in enumerate(lengths):
            paths = {}      # by all alignments
            for aligned in itertools.product(range(3), repeat=int(length)):
                path = tuple(c for c, _ in itertools.groupby(aligned) if c != 2)
                score = sum(logs[row, i, c] for i, c in enumerate(aligned))
                paths[path] = np.logaddexp(paths.get(path, -np.inf), score)
            best = sorted(paths, key=paths.get)[:-3:-1]
            for i, path in enumerate(best):
                self.assertEqual([c for c in found[i, row].numpy().tolist() if c >= 0],
                                 list(path))
                self.assertAlmostEqual(float(scores[row, i]), paths[path], places=5)
        found, scores = ops.ctc_decode(logits, lengths, mask_index=2)
        for row, length in enumerate(lengths):
            aligned = logits[row, :length].argmax(-1).tolist()
            path = [c for c, _ in itertools.groupby(aligned) if c != 2]
            self.assertEqual(found[0, row].numpy().tolist(), path + [-1] * (5 - len(path)))
        np.testing.assert_allclose(scores[:, 0], [-logits[0].max(-1).sum(),
                                                  -logits[1, :4].max(-1).sum()], rtol=1e-6)

    def test_dtypes_that_there_are_not(self):
        for call in (lambda: cornu.ops.cast(cornu.Input((2,)), "float8_e4m3fn"),
                     lambda: cornu.ops.cast(np.ones(2, "float32"), "complex64")):
            with self.assertRaisesRegex(NotImplementedError, 'the dtype "(float8|complex).*" is '
                                        "not available, expected bool, uint8, int32"):
                call()
        for narrow, wide in (("int8", "int32"), ("uint16", "int32"), ("uint64", "int64")):
            self.assertEqual(cornu.ops.cast(np.ones(2, "float32"), narrow).dtype, wide)
            self.assertEqual(cornu.ops.cast(cornu.Input((2,)), narrow).dtype, wide)

    def test_input_spec(self):
        class Own(cornu.layers.Layer):
            def __init__(self):
                super().__init__(name="own")
                self.input_spec = cornu.InputSpec(min_ndim=2, axes={-1: 4})

            def call(self, x):
                return x * 2.0
        self.assertEqual(Own()(cornu.Input((4,))).shape, (None, 4))
        with self.assertRaisesRegex(ValueError, "Input 0 of layer 'own' is incompatible with the "
                                    "layer: expected axis -1 to have the extent 4"):
            Own()(cornu.Input((3,)))
        for given, shape, text in (({"ndim": 3}, (2, 3), "expected ndim=3, found ndim=2"),
                                   ({"max_ndim": 1}, (2, 3), "expected max_ndim=1"),
                                   ({"shape": (None, 5)}, (2, 3), "axis 1 to have the extent 5"),
                                   ({"shape": (None, 5)}, (2, 5), None)):
            found = cornu.InputSpec(**given).problem(shape)
            self.assertTrue(found is None if text is None else text in found, found)


class Empty(unittest.TestCase):
    """Tensors of no elements within models, as crops of images of one pixel."""

    def test_slices_and_crops(self):
        x = np.random.default_rng(0).random((2, 3, 4)).astype("float32")
        inputs = cornu.Input((3, 4))
        for call in (lambda x: x[:, 2:2], lambda x: x[:, 0:2:-1],
                     lambda x: ops.concatenate([x[:, 2:1], x[:, :1]], 1),
                     lambda x: ops.sum(x[:, 3:], 1),
                     lambda x: ops.matmul(x[:, :, 0:0], ops.transpose(x[:, :, 0:0], (0, 2, 1)))):
            model = cornu.Model(inputs, call(inputs))
            made, wanted = model.predict(x, verbose=0), np.asarray(call(x))
            self.assertEqual(made.shape, wanted.shape)
            np.testing.assert_array_equal(made, wanted)

    def test_a_shift_of_images_of_one_pixel_is_trained(self):
        inputs = cornu.Input((1, 1, 2))
        cut = ops.image.crop_images(inputs, top_cropping=0, left_cropping=1, target_height=1,
                                    target_width=0)
        self.assertEqual(cut.shape, (None, 1, 0, 2))
        shifted = ops.image.pad_images(cut, top_padding=0, left_padding=1, target_height=1,
                                       target_width=1)
        both = ops.concatenate([shifted, inputs], -1)
        model = cornu.Sequential([cornu.Model(inputs, both), cornu.layers.Flatten(),
                                  cornu.layers.Dense(1, kernel_initializer="ones")])
        x = np.random.default_rng(0).random((6, 1, 1, 2)).astype("float32")
        np.testing.assert_allclose(model.predict(x, verbose=0)[:, 0], x.sum((1, 2, 3)), rtol=1e-6)
        model.compile(cornu.optimizers.SGD(0.1), "mse")
        model.fit(x, np.ones(6), batch_size=6, verbose=0)
        error = 2 * (x.sum((1, 2, 3)) - 1) / 6
        wanted = np.ones(4) - 0.1 * np.concatenate([np.zeros(2), error @ x[:, 0, 0]])
        np.testing.assert_allclose(model.get_weights()[0][:, 0], wanted, rtol=1e-5)


if __name__ == "__main__":
    unittest.main()
