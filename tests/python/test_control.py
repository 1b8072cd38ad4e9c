"""ops.cond, while_loop, fori_loop, scan, map: of arrays, and of symbolic tensors."""

import unittest

import numpy as np

import cornu
from cornu import ops

DATA = np.random.default_rng(4).standard_normal((3, 4)).astype(np.float32)


def same(function, wanted):
    """Of the array, and of a symbolic tensor in a model."""
    np.testing.assert_allclose(function(DATA), wanted, rtol=1e-5, atol=1e-6)
    x = cornu.Input((4,))
    found = cornu.Model(x, function(x)).predict(DATA, verbose=0)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


class Branches(unittest.TestCase):
    def test_cond(self):
        for sign in 1, -1:
            same(lambda x: ops.cond(ops.sum(x) * sign > 0, lambda: x + 1, lambda: x * 2),
                 DATA + 1 if DATA.sum() * sign > 0 else DATA * 2)
        self.assertEqual(ops.cond(True, lambda: 1, lambda: 2), 1)

    def test_structures_are_selected(self):
        x = cornu.Input((4,))
        made = ops.cond(ops.sum(x) > 1e9, lambda: {"a": x, "b": [x]},
                        lambda: {"a": x + 1, "b": [x * 2]})
        a, b = cornu.Model(x, [made["a"], made["b"][0]]).predict(DATA, verbose=0)
        np.testing.assert_allclose(a, DATA + 1)
        np.testing.assert_allclose(b, DATA * 2)

    def test_switch(self):
        same(lambda x: ops.switch(ops.cast(ops.sum(x) * 0 + 1, "int32"),
                                  [lambda v: v, lambda v: v + 5, lambda v: -v], x), DATA + 5)
        self.assertEqual(ops.switch(7, [lambda v: v, lambda v: -v], 3), -3)


class Loops(unittest.TestCase):
    def test_known_bounds(self):
        same(lambda x: ops.fori_loop(0, 3, lambda i, v: v * 2 + i, x), 8 * DATA + 4)
        same(lambda x: ops.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, v * 2), (0, x))[1],
             DATA * 8)

    def test_a_condition_on_data(self):
        def grown(x):
            return ops.while_loop(lambda v: ops.max(v) < 50, lambda v: v * 2, x,
                                  maximum_iterations=20)
        wanted = DATA
        while wanted.max() < 50:
            wanted = wanted * 2
        same(grown, wanted)
        with self.assertRaisesRegex(NotImplementedError, "maximum_iterations.*test_control.py"):
            ops.while_loop(lambda v: ops.max(v) < 50, lambda v: v * 2, cornu.Input((4,)))

    def test_scan(self):
        def summed(x):
            carry, all_of_them = ops.scan(lambda c, t: (c + t, c * t), x[:, 0] * 0,
                                          ops.transpose(x))
            return ops.stack([carry, ops.sum(all_of_them, 0)], 1)
        before = np.cumsum(DATA, 1) - DATA
        same(summed, np.stack([DATA.sum(1), (before * DATA).sum(1)], 1))
        carry, made = ops.scan(lambda c, x: (c + x, c), np.float32(0), np.arange(4.), reverse=True)
        self.assertEqual((float(carry), made.tolist()), (6.0, [6.0, 5.0, 3.0, 0.0]))

    def test_map(self):
        same(lambda x: ops.transpose(ops.map(lambda t: t * 2, ops.transpose(x))), DATA * 2)
        np.testing.assert_allclose(ops.vectorized_map(ops.sum, DATA), DATA.sum(1), rtol=1e-5)
        np.testing.assert_allclose(ops.associative_scan(ops.add, DATA, axis=1),
                                   np.cumsum(DATA, 1), rtol=1e-5)

    def test_what_is_not_known_says_so(self):
        x = cornu.Input((4,))
        for message, call in (
                ("vectorized_map: axis 0", lambda: ops.vectorized_map(ops.sum, x)),
                ("fori_loop: upper is a tensor", lambda: ops.fori_loop(
                    0, ops.cast(ops.sum(x), "int32"), lambda i, v: v, x)),
                ("fori_loop: 100000 steps", lambda: ops.fori_loop(0, 100000, lambda i, v: v, x))):
            with self.assertRaisesRegex((TypeError, ValueError), message + ".*test_control.py"):
                call()


if __name__ == "__main__":
    unittest.main()
