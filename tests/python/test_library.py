"""The library as Python sees it: layouts, errors, arrays."""

import ctypes
import os
import subprocess
import tempfile
import unittest

import numpy as np

import cornu
from cornu._binding.arrays import Borrowed
from cornu._binding.library import lib, struct

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


class Layouts(unittest.TestCase):
    def test_structs_are_those_of_the_compiler(self):
        """A C program prints the sizes and offsets of all fields that ctypes has."""
        expected, lines = [], []
        for name, layout in sorted(lib._layouts.items()):
            made = lib.type(name)
            expected.append("%s %d" % (name, ctypes.sizeof(made)))
            lines.append('printf("%s %%zu\\n", sizeof(%s));' % (name, name))
            for field, *_ in layout["fields"]:
                at = getattr(made, field)
                expected.append("%s.%s %d %d" % (name, field, at.offset, at.size))
                lines.append('printf("%s.%s %%zu %%zu\\n", offsetof(%s, %s), '
                             'sizeof(((%s *)0)->%s));' % (name, field, name, field, name, field))
        self.assertGreater(len(expected), 200)
        with tempfile.TemporaryDirectory() as folder:
            source, program = os.path.join(folder, "a.c"), os.path.join(folder, "a")
            with open(source, "w") as file:
                file.write("#include <cornu/cornu.h>\n#include <stddef.h>\n#include <stdio.h>\n"
                           "int main(void) {\n%s\n}\n" % "\n".join(lines))
            try:
                subprocess.run([os.environ.get("CC", "cc"), "-I",
                                os.path.join(ROOT, "build", "include"), source, "-o", program],
                               check=True)
            except FileNotFoundError:
                self.skipTest("a C compiler: apt-get install gcc")
            said = subprocess.run([program], check=True, capture_output=True, text=True).stdout
        self.assertEqual(said.split("\n")[:-1], expected)

    def test_functions_are_there(self):
        for name in lib._types:
            self.assertTrue(callable(getattr(lib, name)), name)

    def test_version(self):
        with open(os.path.join(ROOT, "device", "version.h")) as file:
            self.assertIn('"%s"' % cornu.__version__, file.read())


class Errors(unittest.TestCase):
    def test_a_failure_is_an_exception_of_its_kind(self):
        with self.assertRaises(ValueError) as caught:
            cornu.layers.Dense(-3)
        self.assertIsInstance(caught.exception, cornu.CornuError)
        self.assertIsInstance(caught.exception, cornu.errors.ArgumentError)
        self.assertIn("units is -3", str(caught.exception))
        with self.assertRaises(NotImplementedError):
            cornu.layers.Dense(3, no_such_argument=1)
        with self.assertRaises(OSError):
            cornu.load("/nonexistent/model.safetensors")

    def test_nothing_stays_pending(self):
        for _ in range(3):
            with self.assertRaises(cornu.CornuError):
                cornu.layers.Dense(0)
        self.assertFalse(lib.cornu_error_pending())
        self.assertEqual(cornu.layers.Dense(2)(cornu.Input((3,))).shape, (None, 2))

    def test_a_failed_model_leaves_other_tensors(self):
        a, b = cornu.Input((3,)), cornu.Input((3,))
        x = cornu.layers.Dense(2)(a)
        with self.assertRaisesRegex(ValueError, "depends on the input"):
            cornu.Model(b, x)
        self.assertEqual(cornu.Model(a, x).output_shape, (None, 2))


class Arrays(unittest.TestCase):
    def address(self, values):
        lent = Borrowed()
        return lent.array(values).data, lent

    def test_contiguous_arrays_are_not_copied(self):
        for dtype in ("float32", "float64", "float16", "int64", "int32", "uint32", "uint8", "bool"):
            values = np.ones((3, 4), dtype)
            self.assertEqual(self.address(values)[0], values.ctypes.data, dtype)

    def test_others_are_copied_right(self):
        values = np.arange(24, dtype=np.float32).reshape(4, 6)
        for view in (values[::2], values.T, values[:, 1:3], values.astype(">f4"),
                     values.astype(np.int16)):
            lent = Borrowed()
            array = lent.array(view)
            self.assertNotEqual(array.data, view.ctypes.data)
            np.testing.assert_array_equal(lent._kept[0], view)
            self.assertEqual(tuple(array.type.shape.extent[:2]), view.shape)

    def test_other_types_are_refused(self):
        with self.assertRaisesRegex(TypeError, "complex"):
            self.address(np.ones(3, complex))
        with self.assertRaisesRegex(TypeError, "expected arrays of numbers or strings"):
            self.address(iter([1.0]))
        with self.assertRaisesRegex(ValueError, "9 axes"):
            self.address(np.ones((1,) * 9))

    def test_weights_are_those_of_arrays_of_other_types(self):
        """What is converted for a call lives until it is done."""
        for units in (3, 16, 64, 1000):
            values = np.random.default_rng(units).standard_normal((5, units))      # float64
            layer = cornu.layers.Dense(units)
            layer.build((None, 5))
            layer.kernel.assign(values)
            np.testing.assert_array_equal(layer.kernel, values.astype("float32"))
            layer.set_weights([-values, np.ones(units)])
            np.testing.assert_array_equal(layer.kernel, -values.astype("float32"))
            np.testing.assert_array_equal(layer.bias, np.ones(units))

    def test_predictions_do_not_depend_on_the_layout(self):
        x = np.random.default_rng(0).standard_normal((20, 6)).astype(np.float32)
        model = cornu.Sequential([cornu.Input((6,)), cornu.layers.Dense(2)])
        expected = model.predict(x, verbose=0)
        for same in (np.asfortranarray(x), x.astype(">f4"), x.astype(np.float64), x.tolist()):
            np.testing.assert_array_equal(model.predict(same, verbose=0), expected)

    def test_strings(self):
        model = cornu.Sequential([cornu.Input((), dtype="string"),
                                  cornu.layers.StringLookup(vocabulary=["a", "b"])])
        self.assertEqual(model.predict(np.array(["b", "a", "z"]), verbose=0).tolist(), [2, 1, 0])

    def test_a_struct_is_zero(self):
        self.assertEqual(bytes(struct("CornuFitConfig")).strip(b"\0"), b"")


if __name__ == "__main__":
    unittest.main()
