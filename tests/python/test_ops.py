"""keras.ops on symbolic tensors, beside what Keras computes (tests/golden/operations)."""

import inspect
import json
import os
import unittest

import numpy as np

import cornu
from cornu._described import described

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


if __name__ == "__main__":
    unittest.main()
